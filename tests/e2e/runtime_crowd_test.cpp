// SPDX-License-Identifier: Apache-2.0
//
// Calls go on, /ready is answered, and memory is bounded, while crowds ask a runtime for its pages.
//
//   a crowd of scrapers, clients that never read, one dump after another ─▶ admin pages ─▶ Runtime
//                                                   Traffic ─▶ calls ─▶ BackendProcess ◀─┘
//
// The test measures the memory of its own process, so it is a program of its own.
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "channel/admin/http_server.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/support/http_crowd.hpp"
#include "tests/support/http_peer.hpp"
#include "tools/admin_client.hpp"

namespace signalbox::test {
namespace {

using Clock = std::chrono::steady_clock;
using channel::HttpPeer;
using channel::HttpServer;

constexpr double kMegabyte = 1e6;

// AddressSanitizer keeps freed memory.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kIsMemoryOurs = false;
#else
constexpr bool kIsMemoryOurs = true;
#endif

// From now on peak_megabytes() is about the time after this call.
void forget_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
}

// The most memory that this process has had.
double peak_megabytes() {
  std::ifstream lines("/proc/self/status");
  std::string word;
  while (lines >> word) {
    double kib = 0;
    if (word == "VmHWM:" && lines >> kib) return kib * 1024 / kMegabyte;
    std::getline(lines, word);
  }
  FAIL("no VmHWM");
  return 0;
}

// The most memory that a crowd may add: kMaxWaitingBytes of responses that wait for their readers,
// and 40 MB for sockets, threads, and memory that the allocator keeps.
constexpr double kMostMegabytes =
    static_cast<double>(HttpServer::kMaxWaitingBytes) / kMegabyte + 40;

// Ten thousand endpoints of a cluster with ring_hash, which connects to an endpoint only when a
// call asks for it.
std::string ten_thousand_idle_endpoints() {
  constexpr int kEndpoints = 10'000;
  std::vector<std::string> addresses;
  addresses.reserve(kEndpoints);
  for (int i = 0; i < kEndpoints; ++i)
    addresses.push_back(absl::StrCat("10.0.", i / 256, ".", i % 256, ":80"));
  return listener_yaml("large", "large") + routes_yaml("large", "many") +
         cluster_yaml("many", "", ", lb_policy: RING_HASH") + endpoints_yaml("many", {addresses});
}

// A runtime with two targets and its admin pages. "orders" has two backends and calls under way.
// "large" has ten thousand endpoints and no calls.
class CrowdedWorld {
 public:
  CrowdedWorld()
      : plane_(start_plane(simple_yaml("orders", "c", {one_.address, two_.address}) +
                           ten_thousand_idle_endpoints())),
        runtime_(start_runtime(options_for(plane_->address()))),
        orders_(runtime_->channel("xds:///orders")),
        large_(runtime_->channel("xds:///large")) {
    const auto served = runtime_->serve_admin("127.0.0.1:0");
    REQUIRE(served.ok());
    address_ = channel::parse_admin_address(*served).value();
    forget_peak();
    REQUIRE(call(orders_).ok());
    REQUIRE(eventually(
        [&] { return get("/config_dump?type=EDS").find("10.0.39.15") != std::string::npos; }));
    traffic_.emplace(orders_, /*threads=*/2);
  }

  int port() const { return std::get<channel::LoopbackAddress>(address_).port; }

  std::string get(const std::string& page) const {
    auto answer = tools::admin_get(address_, page, kPatience);
    INFO(page << " " << answer.status().ToString());
    REQUIRE(answer.ok());
    return *std::move(answer);
  }

  std::string ready() const { return get("/ready?target=xds:%2F%2F%2Forders"); }

  /// Fails the test if a call has failed, or if no call ends any more.
  void check_that_calls_go_on() {
    const std::size_t before = traffic_->completed();
    CHECK(eventually([&] { return traffic_->completed() >= before + 10; }));
    const std::vector<std::string> failures = traffic_->finish();
    INFO((failures.empty() ? "no failure" : failures.front()));
    CHECK(failures.empty());
    CHECK(runtime_->ready("xds:///orders") == true);
    CHECK(metric(*runtime_, "signalbox_endpoints", {"cluster=\"c\"", "state=\"ready\""}) == 2);
    CHECK_FALSE(metric(*runtime_, "signalbox_actor_deaths_total").value_or(0) > 0);
  }

 private:
  const BackendProcess one_{"one"};
  const BackendProcess two_{"two"};
  const std::unique_ptr<ControlPlane> plane_;
  const std::unique_ptr<Runtime> runtime_;
  const std::shared_ptr<grpc::ChannelInterface> orders_;
  const std::shared_ptr<grpc::ChannelInterface> large_;
  channel::AdminAddress address_;
  std::optional<Traffic> traffic_;
};

}  // namespace

TEST_CASE("runtime: ten thousand scrapers at once do not touch it", "[e2e][runtime][admin]") {
  CrowdedWorld world;
  REQUIRE_FALSE(world.get("/metrics").empty());
  const double before = peak_megabytes();
  channel::CrowdEnds ends;
  channel::http_crowd(world.port(), "/metrics", ends);
  INFO(ends.served << " served, " << ends.busy << " busy, of " << ends.clients);
  CHECK(ends.other == 0);
  CHECK(ends.served > 0);
  const double after = peak_megabytes();
  INFO("from " << before << " to " << after << " MB");
  CHECK((!kIsMemoryOurs || after - before < kMostMegabytes));
  CHECK(world.ready() == "LIVE\n");
  CHECK_FALSE(world.get("/metrics").empty());
  world.check_that_calls_go_on();
}

TEST_CASE("runtime: clients that ask for a large dump and never read it cost a bounded memory",
          "[e2e][runtime][admin]") {
  CrowdedWorld world;
  const std::size_t bytes = world.get("/config_dump").size();
  const double before = peak_megabytes();
  // Without the server's limits (waiting bytes, connections), the responses to these clients would
  // take four times kMaxWaitingBytes.
  const std::size_t clients = 4 * HttpServer::kMaxWaitingBytes / bytes + 1;
  std::vector<std::unique_ptr<HttpPeer>> deaf;
  for (std::size_t i = 0; i < clients; ++i) {
    deaf.push_back(std::make_unique<HttpPeer>(world.port()));
    REQUIRE(deaf.back()->send("GET /config_dump HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  // Once the limit of waiting bytes or of connections is reached, requests are refused (503).
  CHECK(eventually([&] {
    return channel::ask(world.port(), "GET /config_dump HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .starts_with("HTTP/1.1 503");
  }));
  CHECK(world.ready() == "LIVE\n");
  const double after = peak_megabytes();
  INFO(clients << " clients, " << bytes << " bytes each; from " << before << " to " << after
               << " MB");
  CHECK((!kIsMemoryOurs || after - before < kMostMegabytes));
  deaf.clear();
  // The requests of the clients that have gone are answered first, and sanitizers make dumps slow.
  CHECK(eventually(
      [&] {
        return channel::ask(world.port(), "GET /config_dump HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .starts_with("HTTP/1.1 200");
      },
      5 * kPatience));
  world.check_that_calls_go_on();
}

TEST_CASE("runtime: /ready is answered while a dump of ten thousand endpoints is made",
          "[e2e][runtime][admin]") {
  constexpr int kDumps = 5;
  CrowdedWorld world;

  struct Interval {
    Clock::time_point begin;
    Clock::time_point end;
  };

  const auto timed = [](const auto& ask) {
    const auto begin = Clock::now();
    ask();
    return Interval{begin, Clock::now()};
  };
  std::vector<Interval> dumps;
  std::vector<std::string> wrong;
  std::atomic<bool> done{false};
  std::thread dumper([&] {
    for (int i = 0; i < kDumps; ++i) {
      HttpPeer peer(world.port());
      // The first byte comes when the whole dump is made.
      dumps.push_back(timed([&] {
        peer.send("GET /config_dump HTTP/1.1\r\nHost: localhost\r\n\r\n");
        peer.has_byte(kPatience);
      }));
      const std::string dump = peer.receive();
      if (!dump.starts_with("HTTP/1.1 200")) wrong.push_back(dump.substr(0, 100));
    }
    done = true;
  });
  std::vector<Interval> answers;
  std::vector<std::string> texts;
  while (!done)
    answers.push_back(timed([&] { texts.push_back(world.ready()); }));
  dumper.join();
  CHECK(wrong.empty());
  CHECK(texts == std::vector<std::string>(texts.size(), "LIVE\n"));
  // If /ready waited for dumps, at most one answer could lie within the making of each dump.
  std::size_t within = 0;
  for (const Interval& dump : dumps) {
    for (const Interval& answer : answers)
      within += answer.begin >= dump.begin && answer.end <= dump.end ? 1 : 0;
  }
  INFO(within << " of " << answers.size() << " answers within " << kDumps << " dumps");
  CHECK(within >= 3UL * kDumps);
  world.check_that_calls_go_on();
}

}  // namespace signalbox::test
