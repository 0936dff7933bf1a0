// SPDX-License-Identifier: Apache-2.0
#include "messages/log_line.hpp"

#include <set>
#include <string>

#include <catch2/catch.hpp>

namespace signalbox {

TEST_CASE("one line: control characters are escaped, and every other character stays",
          "[messages][log]") {
  CHECK(one_line("cluster \"orders\\a\": 100 %") == "cluster \"orders\\a\": 100 %");
  CHECK(one_line("a\nb\r\tc") == "a\\nb\\r\\tc");
  CHECK(one_line("\x1b[2Jgone\x7f") == "\\x1b[2Jgone\\x7f");
  CHECK(one_line(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(one_line("Zürich 🚦 ≤ 5") == "Zürich 🚦 ≤ 5");
  CHECK(one_line("\xC2\x9B[2J") == "\\xc2\\x9b[2J");  // U+009B begins a control sequence.
  CHECK(one_line("\xC2\xA0") == "\xC2\xA0");
  CHECK(one_line("") == "");
}

TEST_CASE("one line: bytes that are no UTF-8 are escaped", "[messages][log]") {
  CHECK(one_line("a\xFFz") == "a\\xffz");
  CHECK(one_line("\xC3") == "\\xc3");           // The second byte is missing.
  CHECK(one_line("\xC3(") == "\\xc3(");         // The second byte is no continuation byte.
  CHECK(one_line("\xC0\xAF") == "\\xc0\\xaf");  // '/' in two bytes instead of one.
  CHECK(one_line("\xE0\x80\xAF") == "\\xe0\\x80\\xaf");
  CHECK(one_line("\xED\xA0\x80") == "\\xed\\xa0\\x80");  // U+D800, a surrogate.
  CHECK(one_line("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(one_line("\xF0\x9F\x9A") == "\\xf0\\x9f\\x9a");
}

TEST_CASE("log kinds have names of their own", "[messages][log]") {
  std::set<std::string> names;
  for (std::size_t kind = 0; kind < kLogKinds; ++kind)
    names.emplace(to_string(static_cast<LogKind>(kind)));
  CHECK(names.size() == kLogKinds);
  CHECK_FALSE(names.contains("?"));
  CHECK(to_string(LogKind::kConfigRefused) == "config_refused");
}

TEST_CASE("log lines: the text says how many were left out", "[messages][log]") {
  LogLine line{LogLevel::kInfo, LogKind::kPriority, "moved"};
  CHECK(text_of(line) == "moved");
  line.left_out = 3;
  CHECK(text_of(line) == "moved (3 like it were left out before)");
}

TEST_CASE("log levels have names", "[messages][log]") {
  CHECK(to_string(LogLevel::kInfo) == "info");
  CHECK(to_string(LogLevel::kNotice) == "notice");
  CHECK(to_string(LogLevel::kWarning) == "warning");
  CHECK(to_string(LogLevel::kError) == "error");
}

}  // namespace signalbox
