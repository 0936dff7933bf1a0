// SPDX-License-Identifier: Apache-2.0
#include "metrics/process.hpp"

#include <map>
#include <string>

#include <catch2/catch.hpp>

namespace signalbox::metrics {
namespace {

std::map<std::string, double> values_of(const ProcessFacts& facts) {
  std::map<std::string, double> values;
  for (const Family& family : process_families(facts)) {
    REQUIRE(family.series.size() == 1);
    CHECK(family.series.front().labels.empty());
    values.emplace(std::string(family.row->name), family.series.front().value);
  }
  return values;
}

// Fields 14, 15, 22, 23 and 24 of proc(5) are 150, 50, 3000, 8192 and 7.
const std::string kFields =
    " S 1 10 10 0 -1 4194304 500 0 1 0 150 50 9 9 20 0 4 0 3000 8192 7 18446744073709551615 1 1\n";

ProcessFacts facts_with(const std::string& stat) {
  return {.stat = stat,
          .ticks_per_second = 100,
          .page_bytes = 4096,
          .boot_time = 1'000'000,
          .open_descriptors = 12,
          .most_descriptors = 1024};
}

}  // namespace

TEST_CASE("process: the standard metrics, whatever the program's name is", "[metrics][process]") {
  const auto* const name = GENERATE("signalbox", "a b", "x) S 1 (y", "()");
  CAPTURE(name);
  CHECK(values_of(facts_with("42 (" + std::string(name) + ")" + kFields)) ==
        std::map<std::string, double>{{"process_cpu_seconds_total", 2},
                                      {"process_open_fds", 12},
                                      {"process_max_fds", 1024},
                                      {"process_virtual_memory_bytes", 8192},
                                      {"process_resident_memory_bytes", 7 * 4096},
                                      {"process_start_time_seconds", 1'000'030}});
}

TEST_CASE("process: what the system does not tell is left out", "[metrics][process]") {
  CHECK(values_of({}).empty());
  const auto* const stat = GENERATE("", "42", "42 (a)", "42 (a) S 1 2 3", "42 (a) S x y z\n");
  CAPTURE(stat);
  const std::map<std::string, double> descriptors{{"process_open_fds", 12},
                                                  {"process_max_fds", 1024}};
  CHECK(values_of(facts_with(stat)) == descriptors);
  ProcessFacts unknown_boot = facts_with("42 (a)" + kFields);
  unknown_boot.boot_time.reset();
  CHECK_FALSE(values_of(unknown_boot).contains("process_start_time_seconds"));
  CHECK(values_of(unknown_boot).size() == 5);
}

}  // namespace signalbox::metrics
