// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/validation_errors.hpp"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "xds/limits.hpp"
#include "xds/utf8.hpp"

namespace signalbox::xds {
std::string Field::path() const {
  std::string path = parent_ == nullptr ? "" : parent_->path();
  if (!path.empty() && !name_.empty()) path += '.';
  absl::StrAppend(&path, name_);
  if (index_.has_value()) absl::StrAppend(&path, "[", *index_, "]");
  if (key_.has_value()) absl::StrAppend(&path, "[", in_quotes(*key_), "]");
  return path;
}

void Field::add(absl::string_view what) const {
  errors_->add(*this, RejectionReason::kSemantic, what);
}

void Field::add_undecodable(absl::string_view what) const {
  errors_->add(*this, RejectionReason::kParse, what);
}

void Field::add_over_limit(absl::string_view limit, absl::string_view what) const {
  if (errors_->rejection_.limit.empty()) errors_->rejection_.limit = std::string(limit);
  errors_->add(*this, RejectionReason::kLimit, absl::StrCat(what, " (limit ", limit, ")"));
}

const ParseOptions& Field::options() const {
  return *errors_->options_;
}

std::size_t Field::errors_so_far() const {
  return errors_->count_;
}

bool Field::is_enough() const {
  return errors_->count_ >= kManyErrors || is_abandoned(options());
}

void ValidationErrors::add(const Field& field, RejectionReason reason, absl::string_view what) {
  if (reason == RejectionReason::kLimit || rejection_.reason == RejectionReason::kSemantic)
    rejection_.reason = reason;
  if (++count_ > kMaxListedErrors) return;
  const std::string place = field.path();
  listed_.push_back(place.empty() ? std::string(what) : absl::StrCat(place, ": ", what));
}

ReceivedResource ValidationErrors::refuse(absl::string_view type, std::string resource_name) const {
  std::string text = absl::StrCat(
      type, " resource ", in_quotes(resource_name), ": ", absl::StrJoin(listed_, "; "));
  if (count_ > listed_.size()) {
    const char* least = count_ >= kManyErrors ? "at least " : "";
    absl::StrAppend(&text, "; and ", least, count_ - listed_.size(), " more errors");
  }
  return {std::move(resource_name), absl::InvalidArgumentError(text), rejection_};
}

std::string in_quotes(absl::string_view text) {
  // Quoted texts go into protobuf messages, which must be UTF-8.
  const absl::string_view shown = utf8_prefix(text, kMaxQuotedLength);
  const char* rest = shown.size() < text.size() ? "…" : "";
  const auto escaped = is_utf8(shown) ? absl::Utf8SafeCEscape(shown) : absl::CEscape(shown);
  return absl::StrCat("\"", escaped, rest, "\"");
}

}  // namespace signalbox::xds
