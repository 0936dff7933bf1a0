// SPDX-License-Identifier: Apache-2.0
#include "xds/client/resource_text.hpp"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

std::string describe(const ResourceKey& key) {
  return absl::StrCat(to_string(key.type), " resource ", in_quotes(key.name));
}

std::string with_resource(const ResourceKey& key, absl::string_view message) {
  const std::string resource = describe(key);
  if (absl::StartsWith(message, resource)) return std::string(message);
  return absl::StrCat(resource, ": ", message);
}

}  // namespace signalbox::xds
