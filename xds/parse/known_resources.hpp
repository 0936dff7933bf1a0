// SPDX-License-Identifier: Apache-2.0
//
// KnownResources — the valid resources of the last response of each type, so that repeated
// resources are not parsed again.
//
//   ResponseParser ─▶ find(bytes) ─▶ the resource as it was parsed, by the same pointer
//                  ─▶ find_named(name) ─▶ the endpoints that the cluster had, for their addresses
//                  ─▶ keep(response)
//
// A response often has all requested resources of its type, though only one of a thousand has
// changed. Equal bytes mean an equal resource. The memory of an unchanged resource is
// estimated, but the resource is not parsed again. Code that uses the resource recognises it by its
// pointer.
//
// Invariants
//   R1  Only valid resources are kept. An invalid resource is parsed again, and its error is
//       reported again.
//   R2  For each type, only the resources of the last response are kept, so the memory is that of
//       one response.
//
// Each ADS session has a KnownResources of its own, because sessions differ in options and server.

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
  KnownResources() = default;
  KnownResources(const KnownResources&) = delete;  // The keys are views into the values.
  KnownResources& operator=(const KnownResources&) = delete;

  /// Drops all resources if `options` differ from the options of the previous call.
  void parse_with(const ParseOptions& options);

  /// The parsed resource of these bytes; null if the last response of the type had no valid
  /// resource of these bytes.
  const ReceivedResource* find(ResourceType type, absl::string_view bytes) const;

  /// The parsed resource of this name; null if the last response of the type had no valid one.
  const ReceivedResource* find_named(ResourceType type, absl::string_view name) const;

  /// The valid patterns of the last response of the type: they need not be compiled again.
  RegexBudget::Patterns patterns(ResourceType type) const;

  /// Replaces the last response of its type, and its patterns.
  void keep(const ResourcesReceived& received, RegexBudget::Patterns patterns = {});

 private:
  struct OfType {
    std::vector<ReceivedResource> resources;
    /// The index of each resource in `resources`. Keys: the resources' bytes.
    absl::flat_hash_map<absl::string_view, std::size_t> places;
    /// The same. Keys: the resources' names.
    absl::flat_hash_map<absl::string_view, std::size_t> named;
    RegexBudget::Patterns patterns;
  };

  ParseOptions options_;
  std::map<ResourceType, OfType> types_;
};

}  // namespace signalbox::xds
