// SPDX-License-Identifier: Apache-2.0
//
// judge_reach() decides whether a server can have processed a call that failed. It decides from
// gRPC's error text, from the number of trailer entries, and from how far the call got
// (CallFacts). Where these leave it open, it asks whether the connection leaves READY. The tables
// here have facts and the decision.
// tests/e2e/grpc_channel_going_away_test.cpp makes gRPC produce such facts.
#include "actors/io/call_reach.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::actors {
namespace {

constexpr char kRefusedStream[] = "Received RST_STREAM with error code 7";
constexpr bool kTaken = true;
constexpr bool kNotTaken = false;

/// The answer to judge_reach()'s question whether the connection leaves READY. kUnasked: it must
/// not ask, since its decision does not depend on the answer.
enum class Connection { kUnasked, kStays, kLeaves };

struct Row {
  const char* call;
  const char* message;  ///< The message that gRPC's error text quotes; null: gRPC quotes none.
  std::size_t trailer_entries;
  bool was_taken;
  Connection connection;
  Reach reach;
};

std::string error_of(const Row& row) {
  if (row.message == nullptr) return "UNKNOWN:Failed to pick a subchannel";
  return std::string("UNKNOWN:Error received from peer ipv4:127.0.0.1:80 {grpc_message:\"") +
         row.message + "\", grpc_status:14}";
}

void check(const Row& row, bool has_no_transport) {
  INFO(row.call);
  const std::string error = error_of(row);
  CallFacts facts{error, row.trailer_entries, false, has_no_transport, row.was_taken};
  bool is_asked = false;
  const auto leaves_ready = [&] {
    is_asked = true;
    return row.connection == Connection::kLeaves;
  };
  CHECK(judge_reach(facts, leaves_ready) == row.reach);
  CHECK(is_asked == (row.connection != Connection::kUnasked));
  // Headers prove that the call reached a server, because only a server sends headers.
  facts.has_headers = true;
  is_asked = false;
  CHECK(judge_reach(facts, leaves_ready) == Reach::kServer);
  CHECK_FALSE(is_asked);
}

}  // namespace

TEST_CASE("call reach: a call for which gRPC names no transport", "[actors][io][A6]") {
  using enum Connection;
  const std::vector<Row> rows{
      {"never given to a transport", nullptr, 1, kNotTaken, kUnasked, Reach::kNowhere},
      {"cancelled, and the peer said nothing", nullptr, 1, kTaken, kUnasked, Reach::kNowhere},
      {"a server's own text", "overloaded", 2, kTaken, kUnasked, Reach::kServer},
      {"left out by GOAWAY", "GOAWAY received", 2, kTaken, kLeaves, Reach::kNowhere},
      {"the same, and the entry is lost",
       "GOAWAY received",
       1,
       kNotTaken,
       kLeaves,
       Reach::kNowhere},
      {"in progress when it broke off", "GOAWAY received", 1, kTaken, kLeaves, Reach::kServer},
      {"a proxy passes the text on", "GOAWAY received", 2, kNotTaken, kStays, Reach::kServer},
      {"the transport closed before", "Transport closed", 1, kNotTaken, kLeaves, Reach::kNowhere},
      {"the transport closed under it", "Transport closed", 1, kTaken, kLeaves, Reach::kServer},
      {"a longer text", "GOAWAY received; Error code: 0", 2, kTaken, kUnasked, Reach::kServer},
      {"REFUSED_STREAM amid a write", kRefusedStream, 1, kTaken, kUnasked, Reach::kRefused},
      {"the same text, by a server", kRefusedStream, 2, kTaken, kUnasked, Reach::kServer},
  };
  for (const Row& row : rows)
    check(row, true);
}

TEST_CASE("call reach: a call that had a transport", "[actors][io][A6]") {
  using enum Connection;
  const std::vector<Row> rows{
      {"left out by GOAWAY", "GOAWAY received", 2, kTaken, kLeaves, Reach::kRefused},
      {"a proxy passes the text on", "GOAWAY received", 2, kTaken, kStays, Reach::kServer},
      {"in progress when it broke off", "GOAWAY received", 1, kTaken, kUnasked, Reach::kServer},
      {"a server's status with more", "GOAWAY received", 3, kTaken, kUnasked, Reach::kServer},
      {"left out, and closed", "Transport closed", 2, kTaken, kLeaves, Reach::kRefused},
      {"REFUSED_STREAM, by gRPC", kRefusedStream, 1, kTaken, kUnasked, Reach::kRefused},
      {"the same text, by a server", kRefusedStream, 2, kTaken, kUnasked, Reach::kServer},
      {"another RST_STREAM",
       "Received RST_STREAM with error code 2",
       1,
       kTaken,
       kUnasked,
       Reach::kServer},
      {"the connection was lost", nullptr, 1, kTaken, kUnasked, Reach::kServer},
  };
  for (const Row& row : rows)
    check(row, false);
}

}  // namespace signalbox::actors
