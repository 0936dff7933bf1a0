// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include <nlohmann/json.hpp>

#include "tools/commands.hpp"

namespace signalbox::tools {
namespace {

std::atomic<LogFormat>& chosen_format() {
  static std::atomic<LogFormat> format = LogFormat::kText;
  return format;
}

std::string json_line(absl::string_view command, absl::string_view text, LogLevel level) {
  const nlohmann::ordered_json line{
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone())},
      {"level", std::string(to_string(level))},
      {"command", std::string(command)},
      {"text", std::string(text)}};
  // Bytes that are no UTF-8 become U+FFFD.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string text_line(absl::string_view command, absl::string_view text) {
  const std::string lines =
      absl::StrJoin(absl::StrSplit(text, '\n'), "\n", [](std::string* out, absl::string_view line) {
        out->append(one_line(line));
      });
  return absl::StrCat("signalbox ", command, ": ", lines);
}

}  // namespace

void set_log_format(LogFormat format) {
  chosen_format() = format;
}

LogFormat log_format() {
  return chosen_format();
}

void say(absl::string_view command, absl::string_view text, LogLevel level) {
  const bool is_json = log_format() == LogFormat::kJson;
  const std::string line = is_json ? json_line(command, text, level) : text_line(command, text);
  // Not std::cerr: after one line for which there is no room, std::cerr writes nothing any more.
  std::fputs(absl::StrCat(line, "\n").c_str(), stderr);
}

int fail_to_ask(absl::string_view command, const absl::Status& status) {
  say(command, status.message());
  const bool is_usage = absl::IsNotFound(status) || absl::IsPermissionDenied(status) ||
                        absl::IsInvalidArgument(status);
  return is_usage ? kExitUsage : kExitFailed;
}

}  // namespace signalbox::tools
