// SPDX-License-Identifier: Apache-2.0
//
// The main() of all Catch2 programs. With AddressSanitizer it also looks for leaks, in place of the
// sanitizer's own look at the end of the process. A program also fails if a call outlived what it
// held.
#define CATCH_CONFIG_RUNNER
#include <iostream>

#include <catch2/catch.hpp>
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>  // Catch2 3.
#endif

#include "messages/counting/use_counter.hpp"

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

// A Use that ends after the Tracked object that it holds counts in a counter that was given back.
// The counter's next user then begins at a wrong number, in whatever test that may be.
bool has_wrong_counters() {
  constexpr int kTaken = 16'384;  // Most programs use less at a time.
  for (int i = 0; i < kTaken; ++i) {
    if (signalbox::UseCounter::take().sum() == 0) continue;
    std::cerr
        << "An object was destroyed while a call held it (messages/counting/tracked.hpp). Keep the "
           "object until the call has ended, or give it a Retirement. To find the test, run "
           "one at a time.\n";
    return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  if (has_wrong_counters() || has_leaks()) return 1;
  return failed;
}
