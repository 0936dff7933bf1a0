// SPDX-License-Identifier: Apache-2.0
#include "metrics/process.hpp"

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace signalbox::metrics {
namespace {

// The values of /proc/self/stat that are exported, in the units of the metrics.
struct Stat {
  double cpu_seconds = 0;
  double started_seconds = 0;  // Since the system started.
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

// The man page proc(5) lists the fields of the file. Field 2 is the program's name in parentheses.
// The name may itself contain spaces and parentheses, so the text is split only after the last
// parenthesis, from field 3 on.
std::optional<Stat> parse_stat(const ProcessFacts& facts) {
  const std::size_t name_end = facts.stat.rfind(')');
  if (name_end == std::string::npos || facts.ticks_per_second <= 0) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(facts.stat).substr(name_end + 1),
                     absl::ByAnyChar(" \n"),
                     absl::SkipEmpty());
  const auto field = [&](std::size_t number) -> std::optional<double> {
    double value = 0;
    const std::size_t place = number - 3;
    if (place >= fields.size() || !absl::SimpleAtod(fields[place], &value)) return std::nullopt;
    return value;
  };
  const auto user = field(14);
  const auto system = field(15);
  const auto started = field(22);
  const auto virtual_bytes = field(23);
  const auto resident_pages = field(24);
  if (!user || !system || !started || !virtual_bytes || !resident_pages) return std::nullopt;
  return Stat{(*user + *system) / facts.ticks_per_second,
              *started / facts.ticks_per_second,
              *virtual_bytes,
              *resident_pages * facts.page_bytes};
}

}  // namespace

std::vector<Family> process_families(const ProcessFacts& facts) {
  std::vector<Family> families;
  const auto add = [&](Metric metric, double value) {
    families.push_back({&row_of(metric), {{{}, value, {}}}});
  };
  const std::optional<Stat> stat = parse_stat(facts);
  if (stat) add(Metric::kProcessCpu, stat->cpu_seconds);
  if (facts.open_descriptors)
    add(Metric::kProcessOpenFds, static_cast<double>(*facts.open_descriptors));
  if (facts.most_descriptors)
    add(Metric::kProcessMaxFds, static_cast<double>(*facts.most_descriptors));
  if (stat) {
    add(Metric::kProcessVirtualMemory, stat->virtual_bytes);
    add(Metric::kProcessResidentMemory, stat->resident_bytes);
    if (facts.boot_time) add(Metric::kProcessStart, *facts.boot_time + stat->started_seconds);
  }
  return families;
}

}  // namespace signalbox::metrics
