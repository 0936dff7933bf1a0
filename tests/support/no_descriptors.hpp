// SPDX-License-Identifier: Apache-2.0
//
// NoDescriptors, FewDescriptors — make attempts to open a file descriptor fail (EMFILE).
//
//   test ─▶ [NoDescriptors] ─▶ the program under test opens, watches: EMFILE

#pragma once

#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <unistd.h>

namespace signalbox::test {

/// During its lifetime the process gets no new file descriptor. Match texts (CHECK_THAT) later:
/// where UBSan sees a type for the first time, it needs a descriptor, and without one it reports an
/// error.
class NoDescriptors {
 public:
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit none = before_;
    // The three standard streams stay open. A lower limit would make poll() fail: it also bounds
    // the number of entries that poll() accepts.
    none.rlim_cur = 3;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }

  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// During its lifetime the process can open `more` descriptors. Descriptors that it closes can be
/// opened again.
class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int lowest = ::dup(STDIN_FILENO);
    REQUIRE(lowest >= 0);
    ::close(lowest);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest) + static_cast<rlim_t>(more);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }

  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace signalbox::test
