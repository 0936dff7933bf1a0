// SPDX-License-Identifier: Apache-2.0
//
// Document — YAML or JSON text as one tree of JSON values; for YAML, with the lines of the elements
// of the root's lists.
//
//   text ──▶ [parse_json_document | parse_yaml_document] ──▶ Document ──▶ bootstrap, resource_file
//
// A plain YAML scalar becomes null, a boolean or a number if JSON would read the same text as such
// a value; an empty scalar, `~`, `Null` and `NULL` become null too. A quoted scalar without a tag
// is a string. Aliases are expanded.
//
// Depth and number of values (after expansion) are limited. In YAML, the number of values is also
// limited by the size of the text, so that a small hostile text stays cheap. Text without aliases
// never reaches that limit: it has far fewer than kMaxValuesPerByte values for each byte.
// Exceptions of the JSON and the YAML library are caught here, and become statuses.

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <nlohmann/json.hpp>

#include "xds/limits.hpp"

namespace signalbox::xds {

/// The most levels of nested objects and lists. Sixteen nested LB policies (the default of
/// max_lb_policy_nesting) need eighty levels.
inline constexpr int kMaxDocumentDepth = 128;
/// The most values of a YAML text for each byte of the text, after its aliases are expanded.
inline constexpr std::size_t kMaxValuesPerByte = 16;

struct Document {
  nlohmann::json root;
  /// For each list of the root: the line of each element. Keys: the list's key. Empty for JSON.
  std::map<std::string, std::vector<int>> lines;
};

/// Errors name the line if it is known. They do not name the source of the text, which the caller
/// adds. RESOURCE_EXHAUSTED: the text has more than `max_values` values. The values in the text are
/// counted before the tree is built. Values that come from expanded aliases are counted while the
/// tree is built. INVALID_ARGUMENT: any other error.
absl::StatusOr<Document> parse_json_document(absl::string_view text,
                                             std::size_t max_values = kMaxFileValues);
absl::StatusOr<Document> parse_yaml_document(absl::string_view text,
                                             std::size_t max_values = kMaxFileValues);

}  // namespace signalbox::xds
