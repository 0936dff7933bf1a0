// SPDX-License-Identifier: Apache-2.0
//
// lint — warns of probable mistakes in a file of resources that are each valid.
//
//   read_resources ─▶ [lint] ─▶ warnings ─▶ `signalbox check`
//
// Two checks, one source file each:
//   unread_fields  fields that are set, that signalbox does not read, and that change the behaviour
//                  of Envoy; values that signalbox does not act on
//   loose_ends     names without a resource, routes without a listener, endpoints without calls,
//                  domains without a target, session cookies without a route
//
// The file is assumed to be the complete configuration, as with the bootstrap's
// "signalbox.resources". A warning refuses no resource.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "xds/resource_file.hpp"

namespace signalbox::xds {

struct LintWarning {
  std::size_t resource = 0;  ///< The index of the resource in the file's list.
  /// The resource's type and name, the path of the field, and the warning.
  std::string text;

  friend bool operator==(const LintWarning&, const LintWarning&) = default;
};

/// Checks the resources of one file, which must all be valid. The warnings are in the order of the
/// resources.
std::vector<LintWarning> lint(const std::vector<ResourceBytes>& resources);

// --- the two checks --------------------------------------------------------

/// One finding in a resource: the path of the field, and the warning.
struct LintFinding {
  std::string path;
  std::string what;
};

std::vector<LintFinding> unread_fields(const ResourceBytes& resource);

/// Returns one list of findings for each resource, in the order of `resources`.
std::vector<std::vector<LintFinding>> loose_ends(const std::vector<ResourceBytes>& resources);

}  // namespace signalbox::xds
