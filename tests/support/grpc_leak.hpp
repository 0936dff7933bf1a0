// SPDX-License-Identifier: Apache-2.0
//
// GrpcLeak — while an object of this type lives, LeakSanitizer ignores new allocations of the
// thread that made the object. Use it only for a leak in gRPC itself that a test cannot avoid.
//
// A call that is prepared and never started leaks its request: gRPC 1.51 keeps the serialised
// request in the call's arena, and frees the arena without destroying what is in it.

#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace signalbox::test {

class GrpcLeak {
 public:
  GrpcLeak() = default;
  GrpcLeak(const GrpcLeak&) = delete;
  GrpcLeak& operator=(const GrpcLeak&) = delete;

  // Not defaulted: without the sanitizer, compilers would warn that an object of this type is
  // unused.
  ~GrpcLeak() {}

#if defined(__SANITIZE_ADDRESS__)
 private:
  const __lsan::ScopedDisabler disabler_;
#endif
};

}  // namespace signalbox::test
