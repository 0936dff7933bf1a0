// SPDX-License-Identifier: Apache-2.0
//
// KeptPicker — a picker that is made from parts, and made again only when a part has changed.
//
//   parts ─▶ KeptPicker::get ─▶ the same picker while the parts are equal ─▶ Published
//
// A policy publishes a picker only if it is another one than before: waiting calls would pick again
// in vain.

#pragma once

#include <tuple>
#include <utility>

#include "messages/pick.hpp"

namespace signalbox::lb {

template <typename... Parts>
class KeptPicker {
 public:
  /// `make` gets the parts, and returns the picker.
  template <typename Make>
  const PickerPtr& get(const Make& make, Parts... parts) {
    std::tuple<Parts...> next(std::move(parts)...);
    if (picker_ == nullptr || parts_ != next) {
      parts_ = std::move(next);
      picker_ = std::apply(make, parts_);
    }
    return picker_;
  }

 private:
  std::tuple<Parts...> parts_;
  PickerPtr picker_;
};

}  // namespace signalbox::lb
