// SPDX-License-Identifier: Apache-2.0
//
// KnownResources — what a server sent last, so that what it repeats is not parsed again.
//
//   decode_response ─▶ find(bytes) ─▶ the resource as it was parsed, by the same pointer
//                   ─▶ keep(response)
//
// A response names everything of its type that was asked for, though mostly one resource of a
// thousand has changed. Equal bytes mean an equal resource: an unchanged one costs a look-up, and
// those behind the parser see by its pointer that it is the same.
//
// Invariants
//   R1  Only what parsed without an error is known: an error is found again, and told again.
//   R2  Of each type, what the last response held is known, and nothing else: so it is never more
//       than one message.
//
// A plain value; one for each session, since options and servers differ.

#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "messages/xds_events.hpp"
#include "xds/parse/parse_options.hpp"
#include "xds/parse/regex_budget.hpp"

namespace signalbox::xds {

class KnownResources {
 public:
  /// Under other options than before nothing is known.
  void parse_with(const ParseOptions& options);

  /// Null where these bytes were not in the last response of the type.
  const ReceivedResource* find(ResourceType type, absl::string_view bytes) const;

  /// The valid patterns of the last response of the type: they need not be compiled again.
  RegexBudget::Patterns patterns(ResourceType type) const;

  /// The next last response of its type, and its patterns.
  void keep(const ResourcesReceived& received, RegexBudget::Patterns patterns = {});

 private:
  struct OfType {
    std::vector<ReceivedResource> resources;
    absl::flat_hash_map<absl::string_view, std::size_t> places;  ///< By what ::bytes point to.
    RegexBudget::Patterns patterns;
  };

  ParseOptions options_;
  std::map<ResourceType, OfType> types_;
};

}  // namespace signalbox::xds
