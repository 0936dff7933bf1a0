// SPDX-License-Identifier: Apache-2.0
//
// NoDescriptors — a process that has no file descriptor left.
//
//   test ─▶ [NoDescriptors] ─▶ the program under test opens, watches: EMFILE

#pragma once

#include <catch2/catch.hpp>
#include <sys/resource.h>

namespace signalbox::test {

/// While it lives, this process gets no new file descriptor.
class NoDescriptors {
 public:
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit none = before_;
    none.rlim_cur = 3;  // Taken, by the standard streams; and so many may be polled at once.
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }

  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace signalbox::test
