// SPDX-License-Identifier: Apache-2.0
//
// The main() of all Catch2 programs. With AddressSanitizer it also looks for leaks, in place of the
// sanitizer's own look at the end of the process.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>  // Catch2 3.
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>

extern "C" const char* __asan_default_options() {
  return "leak_check_at_exit=0";
}
#endif

namespace {

// On a busy machine one look can miss a running thread, and report what only that thread names. A
// leak is found by every look.
bool has_leaks() {
#if defined(__SANITIZE_ADDRESS__)
  constexpr int kLooks = 3;
  int leaks = 0;
  while (leaks < kLooks && __lsan_do_recoverable_leak_check() != 0)
    ++leaks;
  return leaks == kLooks;
#else
  return false;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  if (has_leaks()) return 1;
  return failed;
}
