// SPDX-License-Identifier: Apache-2.0
//
// The parts of the PSM interop programs: flags, rpc-behavior, the custom policy's board, and the
// statistics of RPCs.
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/interop/psm/behavior_policy.hpp"
#include "tests/interop/psm/flags.hpp"
#include "tests/interop/psm/rpc_behavior.hpp"
#include "tests/interop/psm/rpc_stats.hpp"

namespace signalbox::psm {
namespace {

using Catch::Matchers::Contains;
using grpc::testing::ClientConfigureRequest;

constexpr RpcType kEmpty = ClientConfigureRequest::EMPTY_CALL;
constexpr RpcType kUnary = ClientConfigureRequest::UNARY_CALL;

StatsRequest asks_for(int rpcs, const std::vector<std::string>& keys = {}) {
  StatsRequest request;
  request.set_num_rpcs(rpcs);
  for (const std::string& key : keys)
    request.add_metadata_keys(key);
  return request;
}

RpcOutcome from(const std::string& peer, RpcType type = kUnary) {
  return {.type = type, .code = grpc::StatusCode::OK, .peer = peer, .metadata = {}};
}

RpcOutcome failed(grpc::StatusCode code) {
  return {.type = kUnary, .code = code, .peer = "", .metadata = {}};
}

void add(RpcOutcome& outcome,
         const std::string& key,
         const std::string& value,
         StatsResponse::MetadataType type) {
  StatsResponse::MetadataEntry& entry = *outcome.metadata.add_metadata();
  entry.set_key(key);
  entry.set_value(value);
  entry.set_type(type);
}

const auto kNever = [] { return false; };

}  // namespace

TEST_CASE("interop client flags: the ecosystem's command line is understood", "[psm]") {
  const auto flags = parse_client_flags({"--server=xds:///listener_0",
                                         "--stats_port=8079",
                                         "--qps=25",
                                         "--rpc=EmptyCall,UnaryCall",
                                         "--metadata=EmptyCall:a:b:c,UnaryCall:d:e",
                                         "--expect_status=UNAVAILABLE",
                                         "--rpc_timeout_sec=7",
                                         "--secure_mode=false",
                                         "--enable_csm_observability=false",
                                         "--print_response"});
  REQUIRE(flags.ok());
  CHECK(flags->server == "xds:///listener_0");
  CHECK(flags->stats_port == 8079);
  CHECK(flags->qps == 25);
  CHECK(flags->rpcs == std::vector<RpcConfig>{{.type = kEmpty, .metadata = {{"a", "b:c"}}},
                                              {.type = kUnary, .metadata = {{"d", "e"}}}});
  CHECK(flags->expect_status == grpc::StatusCode::UNAVAILABLE);
  CHECK(flags->rpc_timeout == std::chrono::seconds(7));
  CHECK(flags->print_response);
}

TEST_CASE("interop client flags: the metadata of a method that is not called is dropped", "[psm]") {
  const auto flags =
      parse_client_flags({"--server=xds:///a", "--metadata=EmptyCall:a:b,UnaryCall:c:d"});
  REQUIRE(flags.ok());
  CHECK(flags->rpcs == std::vector<RpcConfig>{{.type = kUnary, .metadata = {{"c", "d"}}}});
}

TEST_CASE("interop client flags: an error names the flag and the value", "[psm]") {
  struct Row {
    std::vector<std::string> arguments;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {{}, "--server: must be a target such as xds:///name, found \"\""},
      {{"--server=localhost:1"},
       "--server: must be a target such as xds:///name, found \"localhost:1\""},
      {{"--qps=fast"}, "--qps: must be a number from 1 to 10000, found \"fast\""},
      {{"--qps=0"}, "--qps: must be a number from 1 to 10000, found \"0\""},
      {{"--qps"}, "--qps: has no value"},
      {{"--rpc=UnaryCall,Ping"}, "--rpc: must be EmptyCall or UnaryCall, found \"Ping\""},
      {{"--server=xds:///a", "--metadata=UnaryCall:a"},
       "--metadata: must be METHOD:KEY:VALUE, found \"UnaryCall:a\""},
      {{"--expect_status=FINE"},
       "--expect_status: must be the name of a gRPC status code, found \"FINE\""},
      {{"--print_response=maybe"}, "--print_response: must be true or false, found \"maybe\""},
      {{"--enable_csm_observability=true"}, "--enable_csm_observability: must be false: signalbox"},
      {{"--color=red"}, "--color: no such flag; there are --server, --stats_port"},
      {{"-qps=1"}, "\"-qps=1\": a flag has the form --name=value"},
  }));
  const auto flags = parse_client_flags(row.arguments);
  REQUIRE_FALSE(flags.ok());
  CHECK_THAT(std::string(flags.status().message()), Contains(row.error));
}

TEST_CASE("interop server flags: the name in answers is the machine's, or that of the flag",
          "[psm]") {
  const auto plain = parse_server_flags({"--port=0", "--secure_mode=false"});
  REQUIRE(plain.ok());
  CHECK_FALSE(plain->host_name.empty());
  const auto named = parse_server_flags({"--host_name_override=server1", "--server_id=7"});
  REQUIRE(named.ok());
  CHECK(named->host_name == "server1");
  CHECK(named->server_id == "7");
  CHECK_THAT(
      std::string(parse_server_flags({"--secure_mode=true"}).status().message()),
      Contains("--secure_mode: must be false: signalbox is a client and has no xDS servers"));
}

TEST_CASE("interop flags: --help has every flag", "[psm]") {
  CHECK_THAT(client_help(), Contains("--rpc: ") && Contains("--listen_address: "));
  CHECK_THAT(server_help(), Contains("--host_name_override: "));
}

TEST_CASE("rpc-behavior: behaviours hold in their order, for the named backend", "[psm]") {
  struct Row {
    std::vector<std::string> headers;
    int previous_attempts;
    int seconds;
    bool keeps_open;
    int code;
  };

  const auto row = GENERATE(values<Row>({
      {{}, 0, 0, false, 0},
      {{"error-code-14"}, 0, 0, false, 14},
      {{"error-code-0"}, 0, 0, false, 0},
      {{"sleep-2"}, 0, 2, false, 0},
      {{"sleep-2,error-code-15"}, 0, 2, false, 15},
      {{"error-code-15,sleep-2"}, 0, 0, false, 15},
      {{"sleep-1", "sleep-2"}, 0, 3, false, 0},
      {{"keep-open"}, 0, 0, true, 0},
      {{"hostname=me error-code-2"}, 0, 0, false, 2},
      {{"hostname=other error-code-2"}, 0, 0, false, 0},
      {{"hostname=other error-code-2, sleep-4"}, 0, 4, false, 0},
      {{"succeed-on-retry-attempt-2,error-code-14"}, 1, 0, false, 14},
      {{"succeed-on-retry-attempt-2,error-code-14"}, 2, 0, false, 0},
  }));
  CAPTURE(row.headers);
  const auto reaction = reaction_to(row.headers, "me", row.previous_attempts);
  REQUIRE(reaction.ok());
  CHECK(reaction->delay == std::chrono::seconds(row.seconds));
  CHECK(reaction->keeps_open == row.keeps_open);
  CHECK(reaction->status.error_code() == row.code);
}

TEST_CASE("rpc-behavior: an error quotes the behaviour", "[psm]") {
  struct Row {
    std::string header, error;
  };

  const auto row = GENERATE(values<Row>({
      {"dance", "found \"dance\""},
      {"", "found \"\""},
      {"sleep-x", "sleep-N needs 0 to 3600 seconds, found \"sleep-x\""},
      {"sleep-3601", "sleep-N needs 0 to 3600 seconds, found \"sleep-3601\""},
      {"error-code-17", "error-code-N needs a gRPC status code, 0 to 16, found \"error-code-17\""},
      {"succeed-on-retry-attempt-", "needs a number of attempts"},
      {"hostname=me", "found \"hostname=me\""},
      {"hostname= sleep-1", "found \"hostname= sleep-1\""},
  }));
  const auto reaction = reaction_to({row.header}, "me", 0);
  REQUIRE_FALSE(reaction.ok());
  CHECK_THAT(std::string(reaction.status().message()), Contains(row.error));
}

TEST_CASE("behavior board: a cluster's value goes with the last of its policies", "[psm]") {
  BehaviorBoard board;
  const ClusterName cluster("c");
  board.join(cluster);
  board.join(cluster);
  board.set(cluster, "error-code-15");
  board.leave(cluster);
  CHECK(board.get("c") == "error-code-15");
  board.leave(cluster);
  CHECK(board.get("c").empty());
}

TEST_CASE("client stats: only the RPCs that are sent after the request count", "[psm]") {
  StatsWatcher watcher(5, asks_for(3));
  watcher.ended(4, from("a"));
  watcher.ended(8, from("a"));
  CHECK_FALSE(watcher.is_complete());
  CHECK(watcher.response().num_failures() == 3);
  watcher.ended(7, from("a"));
  watcher.ended(5, from("b", kEmpty));
  watcher.ended(6, from("a", kEmpty));
  CHECK(watcher.is_complete());
  const StatsResponse response = watcher.response();
  CHECK(response.num_failures() == 0);
  CHECK(response.rpcs_by_peer().at("a") == 2);
  CHECK(response.rpcs_by_peer().at("b") == 1);
  CHECK(response.rpcs_by_method().at("EmptyCall").rpcs_by_peer().at("a") == 1);
  CHECK(response.rpcs_by_method().at("UnaryCall").rpcs_by_peer().at("a") == 1);
  CHECK(response.metadatas_by_peer().empty());
}

TEST_CASE("client stats: RPCs without a peer and RPCs that have not ended are failures", "[psm]") {
  StatsWatcher watcher(1, asks_for(3));
  watcher.ended(1, failed(grpc::StatusCode::UNAVAILABLE));
  CHECK(watcher.response().num_failures() == 3);
  watcher.ended(2, from("a"));
  CHECK(watcher.response().num_failures() == 2);
}

TEST_CASE("client stats: metadata is kept for the keys that are asked for", "[psm]") {
  RpcOutcome outcome = from("a");
  add(outcome, "set-cookie", "c=1; HttpOnly", StatsResponse::INITIAL);
  add(outcome, "hostname", "a", StatsResponse::INITIAL);
  add(outcome, "load", "9", StatsResponse::TRAILING);
  const auto kept = [&](const std::vector<std::string>& keys) {
    StatsWatcher watcher(1, asks_for(3, keys));
    watcher.ended(1, outcome);
    watcher.ended(2, failed(grpc::StatusCode::INTERNAL));
    watcher.ended(3, from("a"));
    std::vector<std::string> texts;
    const StatsResponse response = watcher.response();
    if (response.metadatas_by_peer().empty()) return texts;
    const auto& rpcs = response.metadatas_by_peer().at("a").rpc_metadata();
    CHECK(rpcs.size() == 2);
    CHECK(rpcs.at(1).metadata().empty());
    for (const auto& rpc : rpcs) {
      for (const auto& entry : rpc.metadata())
        texts.push_back(std::to_string(entry.type()) + " " + entry.key() + ": " + entry.value());
    }
    CHECK_FALSE(texts.empty());
    return texts;
  };
  CHECK(kept({"Set-Cookie"}) == std::vector<std::string>{"1 set-cookie: c=1; HttpOnly"});
  CHECK(kept({"load", "none"}) == std::vector<std::string>{"2 load: 9"});
  CHECK(kept({"*"}).size() == 3);
  CHECK(kept({"none"}).empty());
}

TEST_CASE("client stats: a watch ends with its RPCs, with its time, or when it is given up",
          "[psm]") {
  RpcStats stats;
  const RpcId before = stats.began(kUnary);
  CHECK(stats.watch(asks_for(0), kNever).num_failures() == 0);
  // Without any time, the answer is what is known at once.
  CHECK(stats.watch(asks_for(1), kNever).num_failures() == 1);
  StatsRequest patient = asks_for(1);
  patient.set_timeout_sec(1200);
  CHECK(stats.watch(patient, [] { return true; }).num_failures() == 1);
  std::thread rpcs;
  const StatsResponse watched = stats.watch(patient, [&] {
    if (rpcs.joinable()) return false;
    rpcs = std::thread([&] {
      stats.ended(before, from("a"));
      const RpcId own = stats.began(kUnary);
      stats.ended(own, from("b"));
    });
    return false;
  });
  rpcs.join();
  CHECK(watched.num_failures() == 0);
  CHECK(watched.rpcs_by_peer().count("a") == 0);
  CHECK(watched.rpcs_by_peer().at("b") == 1);
}

// Test drivers still read the deprecated maps.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("accumulated stats: the keys are the enum's names, and results are counted by code",
          "[psm]") {
  RpcStats stats(grpc::StatusCode::DATA_LOSS);
  const RpcId first = stats.began(kUnary);
  const RpcId second = stats.began(kUnary);
  stats.began(kEmpty);
  CHECK_FALSE(stats.ended(first, from("a")));  // A failure, but none has succeeded yet.
  CHECK_FALSE(stats.ended(second, failed(grpc::StatusCode::DATA_LOSS)));
  const RpcId third = stats.began(kUnary);
  CHECK(stats.ended(third, failed(grpc::StatusCode::CANCELLED)));
  const AccumulatedResponse all = stats.accumulated();
  const auto& unary = all.stats_per_method().at("UNARY_CALL");
  CHECK(unary.rpcs_started() == 3);
  CHECK(unary.result().at(0) == 1);
  CHECK(unary.result().at(1) == 1);
  CHECK(unary.result().at(15) == 1);
  CHECK(all.stats_per_method().at("EMPTY_CALL").rpcs_started() == 1);

  using Counts = std::map<std::string, int>;
  const auto counts = [](const auto& map) { return Counts(map.begin(), map.end()); };
  CHECK(counts(all.num_rpcs_started_by_method()) == Counts{{"UNARY_CALL", 3}, {"EMPTY_CALL", 1}});
  CHECK(counts(all.num_rpcs_succeeded_by_method()) == Counts{{"UNARY_CALL", 1}});
  CHECK(counts(all.num_rpcs_failed_by_method()) == Counts{{"UNARY_CALL", 2}});
}

#pragma GCC diagnostic pop

}  // namespace signalbox::psm
