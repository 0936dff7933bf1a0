// SPDX-License-Identifier: Apache-2.0
#include "actors/io/process_facts.hpp"

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/resource.h>

#include "metrics/process.hpp"
#include "tests/support/no_descriptors.hpp"

namespace signalbox::actors {
namespace {

std::map<std::string, double> values_now() {
  std::map<std::string, double> values;
  for (const metrics::Family& family : metrics::process_families(read_process()))
    values.emplace(std::string(family.row->name), family.series.front().value);
  return values;
}

}  // namespace

TEST_CASE("process facts: the system's start is the line btime", "[io][process]") {
  CHECK(boot_time_in("cpu 1 2\nintr 5 btime 4\nbtime 1700000000\nprocesses 9\n") == 1'700'000'000);
  CHECK_FALSE(boot_time_in(""));
  CHECK_FALSE(boot_time_in("btime\nbtime soon\n"));
}

TEST_CASE("process facts: this process has every metric, and open files count", "[io][process]") {
  const auto before = values_now();
  std::vector<std::FILE*> files(64);
  for (std::FILE*& file : files)
    REQUIRE((file = std::fopen("/dev/null", "r")) != nullptr);
  const auto after = values_now();
  for (std::FILE* const file : files)
    std::fclose(file);

  CHECK(before.size() == 6);
  // Other threads of the test program may close some files meanwhile, so half of 64 is enough.
  CHECK(after.at("process_open_fds") >= before.at("process_open_fds") + 32);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(after.at("process_max_fds") == static_cast<double>(limit.rlim_cur));
  CHECK(after.at("process_cpu_seconds_total") >= before.at("process_cpu_seconds_total"));
  CHECK(after.at("process_resident_memory_bytes") > 0);
  CHECK(after.at("process_resident_memory_bytes") < after.at("process_virtual_memory_bytes"));
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  // The kernel counts boot and start times in coarse units, so the sum may be up to 1 s late.
  CHECK(after.at("process_start_time_seconds") <= now.count() + 1);
  CHECK(after.at("process_start_time_seconds") > 1'500'000'000);
}

TEST_CASE("process facts: a process without descriptors has as many open as it may have",
          "[io][process][S18]") {
  // UBSan's checks in a CHECK need descriptors, so the facts are read before it.
  const ProcessFacts facts = [] {
    const test::FewDescriptors none(0);
    return read_process();
  }();
  CHECK(facts.open_descriptors.has_value());
  CHECK(facts.open_descriptors == facts.most_descriptors);
}

}  // namespace signalbox::actors
