// SPDX-License-Identifier: Apache-2.0
//
// FuzzTarget — the interface of every program of this folder: one function that takes bytes.
//
//   libFuzzer (clang) ──▶ LLVMFuzzerTestOneInput ◀── replay.cpp (any compiler)
//         │                                               │
//         └────────▶ LLVMFuzzerCustomMutator ◀────────────┘   only in targets that define it
//
// One source of a target must define LLVMFuzzerTestOneInput. It should also define
// LLVMFuzzerCustomMutator if random changes of bytes seldom make valid input. Linked with libFuzzer
// the target searches for failures; linked with replay.cpp it is a test of its corpus.
// SIGNALBOX_FUZZ_EXPECT aborts with a text on stderr when a condition does not hold.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"

extern "C" {
/// Tries one input, and aborts if a rule is broken. Must return 0. libFuzzer prescribes the names
/// and signatures of these functions.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Changes the `size` bytes at `data`, which have room for `max_size`; returns the new size.
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data,
                                    std::size_t size,
                                    std::size_t max_size,
                                    unsigned int seed);

/// Changes bytes without knowing their meaning. libFuzzer or replay.cpp defines it.
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
}

namespace signalbox::fuzz {

inline absl::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

[[noreturn]] inline void report_broken(const char* rule, const std::string& found) {
  std::fprintf(stderr, "\nfuzz: BROKEN: %s\n  found: %s\n", rule, found.c_str());
  std::abort();
}

}  // namespace signalbox::fuzz

/// `rule`: what must hold. `found`: what was found instead; evaluated only on failure.
#define SIGNALBOX_FUZZ_EXPECT(condition, rule, found) \
  do {                                                \
    if (!(condition)) {                               \
      ::signalbox::fuzz::report_broken(rule, found);  \
    }                                                 \
  } while (false)
