// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/error_text.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "xds/client/resource_text.hpp"

namespace signalbox::xds {

ErrorText::ErrorText(std::string target, std::string node_id)
    : target_(std::move(target)), node_id_(std::move(node_id)) {}

std::string ErrorText::explain(const ResourceKey& key, const absl::Status& error) const {
  return explain(with_resource(key, error.message()));
}

std::string ErrorText::explain(absl::string_view reason) const {
  const std::string brackets = node_id_.empty() ? "" : absl::StrCat(" (", node(), ")");
  return absl::StrCat(target_, ": ", reason, brackets);
}

std::string ErrorText::node() const {
  return node_id_.empty() ? std::string() : absl::StrCat("node ID: ", node_id_);
}

absl::Status ErrorText::unavailable(const ResourceKey& key, const absl::Status& error) const {
  return absl::UnavailableError(explain(key, error));
}

absl::Status ErrorText::unavailable(absl::string_view reason) const {
  return absl::UnavailableError(explain(reason));
}

std::string join_notes(absl::string_view left, absl::string_view right) {
  const absl::string_view separator = left.empty() || right.empty() ? "" : "; ";
  return absl::StrCat(left, separator, right);
}

}  // namespace signalbox::xds
