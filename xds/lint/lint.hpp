// SPDX-License-Identifier: Apache-2.0
//
// lint — what looks wrong in a file of resources although each resource is valid.
//
//   parse_resources_text ─▶ [lint] ─▶ warnings ─▶ `signalbox check`
//
// Two questions, one file each:
//   unread_fields  which fields are set that signalbox does not read, though Envoy would do
//                  something else because of them?
//   loose_ends     does the file hang together: does each name lead to a resource, does each
//                  cluster have endpoints, does each domain have a target?
//
// A file is taken for a whole world, as the bootstrap's "signalbox.resources" takes it. Nothing
// here refuses anything: a warning says what calls will meet.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "xds/resource_file.hpp"

namespace signalbox::xds {

struct LintWarning {
  std::size_t resource = 0;  ///< The index in the file's list.
  std::string text;  ///< The type, the name, the path of the field, and what is to be known.

  friend bool operator==(const LintWarning&, const LintWarning&) = default;
};

/// In the order of the resources. `resources` are those of one file, each of them valid.
std::vector<LintWarning> lint(const std::vector<ResourceBytes>& resources);

// --- the two questions -----------------------------------------------------

/// What was found in one resource: the path of the field, and what is to be known.
struct LintFinding {
  std::string path;
  std::string what;
};

std::vector<LintFinding> unread_fields(const ResourceBytes& resource);

/// One list for each resource.
std::vector<std::vector<LintFinding>> loose_ends(const std::vector<ResourceBytes>& resources);

}  // namespace signalbox::xds
