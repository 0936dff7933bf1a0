// SPDX-License-Identifier: Apache-2.0
//
// YAML or JSON text as one tree of JSON values, with the lines where the elements of lists begin.
//
//   text ──▶ [parse_json_document | parse_yaml_document] ──▶ Document ──▶ bootstrap, resource_file
//
// A plain YAML scalar is null, a boolean or a number where JSON would read it so; a quoted one is
// always a string. Aliases are expanded. Depth and size (after expansion) are limited, the latter
// by the text's own too, so that a small hostile text stays cheap: a text without aliases has fewer
// values than bytes. The exceptions of both libraries end here.

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

/// Sixteen LB policies in each other take eighty levels of it (max_lb_policy_nesting).
inline constexpr int kMaxDocumentDepth = 128;
/// Values of a text, for each of its bytes: aliases are expanded.
inline constexpr std::size_t kMaxValuesPerByte = 16;

struct Document {
  nlohmann::json root;
  std::map<std::string, std::vector<int>>
      lines;  // By key of the root: the line of each list element. Empty for JSON.
};

/// Errors name the line where there is one, but not the source of the text: the caller knows it.
/// RESOURCE_EXHAUSTED: the text has more values than `max_values`, which is found before anything
/// is built for them.
absl::StatusOr<Document> parse_json_document(absl::string_view text,
                                             std::size_t max_values = kMaxFileValues);
absl::StatusOr<Document> parse_yaml_document(absl::string_view text,
                                             std::size_t max_values = kMaxFileValues);

}  // namespace signalbox::xds
