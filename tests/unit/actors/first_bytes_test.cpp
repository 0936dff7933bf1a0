// SPDX-License-Identifier: Apache-2.0
#include "actors/io/first_bytes.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace signalbox::actors {
namespace {

using namespace std::string_literals;
using Kind = FirstBytes::Kind;

const std::string kEmptySettings = "\0\0\0\4\0\0\0\0\0"s;
const std::string kSettings = "\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x64"s;
const std::string kGoaway = "\0\0\x8\7\0\0\0\0\0\0\0\0\0\0\0\0\xb"s;

TEST_CASE("first_bytes: what a server sends first says what it is", "[io][connector]") {
  struct Row {
    const char* when;
    std::string bytes;
    Kind kind;
    std::string text;
  };

  const auto row = GENERATE(values<Row>({
      {"nothing", "", Kind::kIncomplete, "the server has sent nothing"},
      {"empty SETTINGS", kEmptySettings, Kind::kSettings, ""},
      {"SETTINGS", kSettings, Kind::kSettings, ""},
      {"SETTINGS and more", kSettings + kGoaway, Kind::kSettings, ""},
      {"one byte of SETTINGS",
       kSettings.substr(0, 1),
       Kind::kIncomplete,
       "the server has sent 1 byte, not a whole SETTINGS frame"},
      {"half of a frame's header",
       kSettings.substr(0, 5),
       Kind::kIncomplete,
       "the server has sent 5 bytes, not a whole SETTINGS frame"},
      {"half of SETTINGS",
       kSettings.substr(0, 14),
       Kind::kIncomplete,
       "the server has sent 14 bytes, not a whole SETTINGS frame"},
      {"SETTINGS of an odd length",
       "\0\0\5\4\0\0\0\0\0"s,
       Kind::kOther,
       "the server's SETTINGS frame has the invalid length 5"},
      {"SETTINGS beyond the largest frame",
       "\0\xff\xfc\4\0\0\0\0\0"s,
       Kind::kOther,
       "the server's SETTINGS frame has the invalid length 65532"},
      {"an acknowledgement",
       "\0\0\0\4\1\0\0\0\0"s,
       Kind::kOther,
       "the server's first SETTINGS frame is an acknowledgement, or has a stream"},
      {"SETTINGS of a stream",
       "\0\0\0\4\0\0\0\0\1"s,
       Kind::kOther,
       "the server's first SETTINGS frame is an acknowledgement, or has a stream"},
      {"GOAWAY",
       kGoaway,
       Kind::kOther,
       "the server sent GOAWAY instead of SETTINGS, with error code 11"},
      {"the beginning of GOAWAY",
       kGoaway.substr(0, 9),
       Kind::kOther,
       "the server sent GOAWAY instead of SETTINGS"},
      {"a PING",
       "\0\0\x8\6\0\0\0\0\0"s,
       Kind::kOther,
       "the server's first bytes are an HTTP/2 frame of type 6, not SETTINGS"},
      {"HTTP/1.1",
       "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n",
       Kind::kOther,
       "the server speaks HTTP/1, not HTTP/2: \"HTTP/1.1 400 Bad Request\""},
      {"the beginning of HTTP/1.1",
       "HTT",
       Kind::kIncomplete,
       "the server has sent 3 bytes, not a whole SETTINGS frame"},
      {"a TLS alert", "\x15\3\1\0\2\2\x46"s, Kind::kOther, "the server speaks TLS"},
      {"SSH",
       "SSH-2.0-OpenSSH_9.2\r\n",
       Kind::kOther,
       "the server does not speak HTTP/2: \"SSH-2.0-OpenSSH_9.2\""},
      {"bytes that could steer a terminal",
       "\x1b[2J",
       Kind::kOther,
       "the server does not speak HTTP/2: \"\\x1b[2J\""},
  }));
  DYNAMIC_SECTION(row.when) {
    const FirstBytes judged = judge_first_bytes(row.bytes);
    CHECK(judged.kind == row.kind);
    CHECK(judged.text == row.text);
  }
}

TEST_CASE("first_bytes: SETTINGS are incomplete until their last byte", "[io][connector]") {
  for (std::size_t size = 0; size < kSettings.size(); ++size) {
    CAPTURE(size);
    CHECK(judge_first_bytes(kSettings.substr(0, size)).kind == Kind::kIncomplete);
  }
}

TEST_CASE("first_bytes: of long SETTINGS, only as many bytes are awaited as are peeked at",
          "[io][connector]") {
  const std::string frame = "\0\x0c\0\4\0\0\0\0\0"s + std::string(3072, '\0');
  CHECK(judge_first_bytes(frame.substr(0, kMostFirstBytes - 1)).kind == Kind::kIncomplete);
  CHECK(judge_first_bytes(frame.substr(0, kMostFirstBytes)).kind == Kind::kSettings);
}

TEST_CASE("first_bytes: SETTINGS say how many calls a connection takes at a time",
          "[io][connector][A105-7]") {
  const auto settings = [](const std::string& body) {
    return judge_first_bytes("\0\0"s + static_cast<char>(body.size()) + "\4\0\0\0\0\0"s + body);
  };
  const std::string window = "\0\4\0\0\xff\xff"s;
  CHECK(settings("\0\3\0\0\0\x64"s).stream_limit == 100U);
  CHECK(settings(window + "\0\3\x7f\xff\xff\xff"s).stream_limit == 0x7fffffffU);
  CHECK(settings("\0\3\0\0\0\7"s + window + "\0\3\0\0\0\x8"s).stream_limit == 8U);  // The last.
  CHECK(settings(window).stream_limit == std::nullopt);
  CHECK(settings("\0\3\0\0\0\0"s).stream_limit == std::nullopt);
  // The limit behind the part that is peeked at is not seen.
  const std::string frame = "\0\x0c\0\4\0\0\0\0\0"s + std::string(3066, '\0') + "\0\3\0\0\0\7"s;
  CHECK(judge_first_bytes(frame.substr(0, kMostFirstBytes)).stream_limit == std::nullopt);
}

}  // namespace
}  // namespace signalbox::actors
