// SPDX-License-Identifier: Apache-2.0
#include "xds/client/resource_name.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "xds/percent_encoding.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

// Sorted by key. In a text, "=" comes after "-", "." and digits.
std::string in_order(absl::string_view parameters) {
  std::vector<absl::string_view> pairs = absl::StrSplit(parameters, '&', absl::SkipEmpty());
  std::ranges::sort(pairs, {}, [](absl::string_view pair) {
    return std::pair(pair.substr(0, pair.find('=')), pair);
  });
  return absl::StrJoin(pairs, "&");
}

}  // namespace

absl::StatusOr<ResourceName> parse_resource_name(const ResourceKey& key) {
  absl::string_view rest = key.name;
  if (!absl::ConsumePrefix(&rest, "xdstp:")) return ResourceName{std::nullopt, key.name};

  rest = rest.substr(0, rest.find('#'));
  const auto [path, parameters] = std::pair<absl::string_view, absl::string_view>(
      absl::StrSplit(rest, absl::MaxSplits('?', 1)));
  absl::string_view id = path;
  std::optional<std::string> authority = "";
  if (absl::ConsumePrefix(&id, "//")) {
    const absl::string_view encoded = id.substr(0, id.find('/'));
    id.remove_prefix(encoded.size());
    authority = percent_decode(encoded);
  }
  const std::string type = absl::StrCat("/", api_name(type_url_of(key.type)), "/");
  if (!authority || !absl::ConsumePrefix(&id, type) || id.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name must be xdstp://<authority>", type, "<id>, found ", key.name));
  }
  const std::string ordered = in_order(parameters);
  return ResourceName{std::move(authority),
                      absl::StrCat("xdstp:", path, ordered.empty() ? "" : "?", ordered)};
}

}  // namespace signalbox::xds
