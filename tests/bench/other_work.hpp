// SPDX-License-Identifier: Apache-2.0
//
// OtherWork — stands in for a call and the rest of the program, so that the code after it is timed
// with cold caches, as in a server that does other work between two executions of the code.
//
// It writes to 8 MiB of memory: more than most second-level caches hold. If the system gives it
// pages of 4 KiB, these are 2,048 pages, so it also replaces most entries of the processor's TLB.

#pragma once

#include <cstddef>
#include <vector>

namespace signalbox::bench {

class OtherWork {
 public:
  void run() {
    constexpr std::size_t kLine = 64;
    for (std::size_t at = 0; at < memory_.size(); at += kLine)
      ++memory_[at];
    asm volatile("" : : "r"(memory_.data()) : "memory");  // The compiler must not drop the writes.
  }

 private:
  std::vector<unsigned char> memory_ = std::vector<unsigned char>(std::size_t{8} << 20U);
};

}  // namespace signalbox::bench
