// SPDX-License-Identifier: Apache-2.0
#include "xds/client/resource_text.hpp"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

std::string describe(const ResourceKey& key) {
  return absl::StrCat(to_string(key.type), " resource ", in_quotes(key.name));
}

std::string listed(absl::Span<const std::string> names) {
  constexpr std::size_t kMaxNames = 8;
  const auto shown = names.first(std::min(names.size(), kMaxNames));
  const std::string text =
      absl::StrJoin(shown, ", ", [](std::string* out, const std::string& name) {
        absl::StrAppend(out, in_quotes(name));
      });
  if (shown.size() == names.size()) return text;
  return absl::StrCat(text, " and ", names.size() - shown.size(), " more");
}

std::string with_resource(const ResourceKey& key, absl::string_view message) {
  const std::string resource = describe(key);
  if (absl::StartsWith(message, resource)) return std::string(message);
  return absl::StrCat(resource, ": ", message);
}

}  // namespace signalbox::xds
