// SPDX-License-Identifier: Apache-2.0
//
// Deep — a shared pointer to a constant value, compared by the value.
//
//   struct WrrLocalityConfig { Deep<LbConfig> child; … operator==(…) = default; };
//
// A struct with Deep pointers needs no code for its comparison: the defaulted operator== compares
// the values that the pointers lead to. Null equals only null. A Deep and a std::shared_ptr convert
// into each other.

#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace signalbox {

/// Whether both are null, or both point to equal values.
template <typename T>
bool same_value(const std::shared_ptr<const T>& left, const std::shared_ptr<const T>& right) {
  return left == right || (left != nullptr && right != nullptr && *left == *right);
}

template <typename T>
class Deep {
 public:
  using Pointer = std::shared_ptr<const T>;

  explicit(false) Deep(std::nullptr_t = nullptr) {}

  explicit(false) Deep(Pointer pointer) : pointer_(std::move(pointer)) {}

  // NOLINTNEXTLINE(google-explicit-constructor): a Deep stands wherever its pointer may.
  operator const Pointer&() const { return pointer_; }

  const T* get() const { return pointer_.get(); }

  const T& operator*() const { return *pointer_; }

  const T* operator->() const { return pointer_.get(); }

  friend bool operator==(const Deep& left, const Deep& right) {
    return same_value(left.pointer_, right.pointer_);
  }

  friend bool operator==(const Deep& left, std::nullptr_t) { return left.pointer_ == nullptr; }

 private:
  Pointer pointer_;
};

}  // namespace signalbox
