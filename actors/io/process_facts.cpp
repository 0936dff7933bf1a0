// SPDX-License-Identifier: Apache-2.0
#include "actors/io/process_facts.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <sys/resource.h>
#include <unistd.h>

namespace signalbox::actors {
namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::optional<std::uint64_t> descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return limit.rlim_cur;
}

// The descriptor of /proc/self/fd, open while this function reads the folder, is not counted. If
// the folder cannot be opened because no descriptor is left, all that the limit allows are open.
std::optional<std::uint64_t> count_descriptors() {
  std::error_code error;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; entry != end;
       entry.increment(error)) {
    if (error) return std::nullopt;
    ++count;
  }
  if (error == std::errc::too_many_files_open) return descriptor_limit();
  if (error || count == 0) return std::nullopt;
  return count - 1;
}

}  // namespace

std::optional<double> boot_time_in(absl::string_view system_stat) {
  for (absl::string_view line : absl::StrSplit(system_stat, '\n')) {
    double value = 0;
    if (absl::ConsumePrefix(&line, "btime ") && absl::SimpleAtod(line, &value)) return value;
  }
  return std::nullopt;
}

ProcessFacts read_process() {
  // Read only once: the boot time never changes, and /proc/stat is long on machines with many CPUs.
  static const std::optional<double> boot_time = boot_time_in(text_of("/proc/stat"));
  return {.stat = text_of("/proc/self/stat"),
          .ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK)),
          .page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE)),
          .boot_time = boot_time,
          .open_descriptors = count_descriptors(),
          .most_descriptors = descriptor_limit()};
}

}  // namespace signalbox::actors
