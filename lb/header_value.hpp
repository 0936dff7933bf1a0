// SPDX-License-Identifier: Apache-2.0
//
// HeaderValue, CallHeaders — the value of a call's header as routes and hashes see it.
//
//   HeaderSource ─▶ [HeaderValue] ─▶ one text, or none
//               └─▶ [CallHeaders] ─▶ the same, a few remembered for all the routes that ask
//
// If a header has several values, they are joined by ","; a single value is not copied. "-bin"
// headers count as absent. "content-type" is always "application/grpc" (gRFC A28 and gRPC's
// practice).

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "messages/pick.hpp"

namespace signalbox::lb {

class HeaderValue {
 public:
  /// `name` is in lower case. If `headers` is null, only "content-type" has a value.
  HeaderValue(const HeaderSource* headers, absl::string_view name) {
    if (name == "content-type") {
      view_ = "application/grpc";
    } else if (headers != nullptr && !absl::EndsWith(name, "-bin")) {
      headers->each(name, [this](absl::string_view value) { add(value); });
    }
  }

  HeaderValue(const HeaderValue&) = delete;
  HeaderValue& operator=(const HeaderValue&) = delete;

  /// The value; nullopt: none. Valid as long as this object and the headers.
  const std::optional<absl::string_view>& get() const { return view_; }

 private:
  void add(absl::string_view value) {
    if (!view_) {
      view_ = value;
      return;
    }
    if (joined_.empty()) joined_ = std::string(*view_);
    absl::StrAppend(&joined_, ",", value);
    view_ = joined_;
  }

  std::optional<absl::string_view> view_;
  std::string joined_;
};

/// Reads the headers of one call, each once if possible. The caller numbers the names that it
/// needs: 0, 1, 2, … The values of the first kRemembered names are remembered; others are read each
/// time.
class CallHeaders {
 public:
  static constexpr std::size_t kRemembered = 4;

  explicit CallHeaders(const HeaderSource* source) : source_(source) {}

  /// The value of the header `name`, which has the number `place`; nullopt: none. Valid at least
  /// until the next call of get().
  const std::optional<absl::string_view>& get(std::size_t place, absl::string_view name) {
    std::optional<HeaderValue>& value = values_[std::min(place, kRemembered)];
    if (!value || place >= kRemembered) value.emplace(source_, name);
    return value->get();
  }

 private:
  const HeaderSource* source_;
  std::array<std::optional<HeaderValue>, kRemembered + 1> values_;
};

}  // namespace signalbox::lb
