// SPDX-License-Identifier: Apache-2.0
//
// Times the sealing (encryption) of a session's cookie, and its opening: with one key, and with the
// last of the greatest number of keys.

#include <string>

#include <benchmark/benchmark.h>

#include "lb/session/sealed_cookie.hpp"

namespace signalbox::bench {
namespace {

constexpr char kText[] = "10.0.0.1:8443,[2001:db8:0:1::1]:8443;orders-primary";
constexpr char kPurpose[] = "session of xds:///orders";

lb::SealKeys keys(std::size_t count) {
  lb::SealKeys all;
  for (std::size_t i = 0; i < count; ++i) {
    all.emplace_back();
    all.back().fill(static_cast<unsigned char>(count - i));
  }
  return all;
}

void seal_cookie(benchmark::State& state) {
  const lb::CookieSeal seal(keys(1));
  std::string value;
  for (auto _ : state) {
    value.clear();
    benchmark::DoNotOptimize(seal.seal(kText, kPurpose, value));
  }
}

// The cookie was sealed with the last of the keys, so opening it tries all other keys first.
void open_cookie(benchmark::State& state) {
  const lb::CookieSeal ours(keys(static_cast<std::size_t>(state.range(0))));
  const lb::CookieSeal theirs(keys(1));
  std::string value;
  std::string text;
  if (!theirs.seal(kText, kPurpose, value) ||
      ours.open(value, kPurpose, text) == lb::CookieSeal::Opened::kNo)
    state.SkipWithError("it cannot be opened");
  for (auto _ : state)
    benchmark::DoNotOptimize(ours.open(value, kPurpose, text));
}

BENCHMARK(seal_cookie);
BENCHMARK(open_cookie)->Arg(1)->Arg(lb::kMostSealKeys);

}  // namespace
}  // namespace signalbox::bench

BENCHMARK_MAIN();
