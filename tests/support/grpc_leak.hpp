// SPDX-License-Identifier: Apache-2.0
//
// GrpcLeak — what is allocated during its life is no leak to LeakSanitizer. Only for a leak of
// gRPC's own, in a test that cannot do without it.
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

  ~GrpcLeak() {}  // Else compilers without the sanitizer call an object of this type unused.

#if defined(__SANITIZE_ADDRESS__)
 private:
  const __lsan::ScopedDisabler disabler_;
#endif
};

}  // namespace signalbox::test
