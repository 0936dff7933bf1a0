// SPDX-License-Identifier: Apache-2.0
//
// Threads pick for sessions, with cookies and without. Meanwhile the hosts that override_host's
// picker knows, their health and their connections are replaced, and the session marks are read as
// the subchannel map reads them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "actors/io/large_pages.hpp"
#include "actors/reclaimer.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/tree/override_host_picker.hpp"
#include "tests/support/session_fixture.hpp"

namespace signalbox::session_test {
namespace {

using actors::ReclaimerThread;
using testing::all_to;
using testing::base64;
using testing::filter;
using testing::host_in;
using testing::session_by;
using testing::TestHeaders;
using testing::to;

constexpr int kHosts = 4;
constexpr Instant kStart{std::chrono::hours(1)};

Address host(int number) {
  return Address(absl::StrCat("10.0.0.", number, ":80"));
}

// Counts the asks of picks (requests to connect or create a subchannel) and drops them.
class CountedAsks final : public AskTarget {
 public:
  void tell(const PickAsk& /*ask*/) const override { ++asks; }

  mutable std::atomic<int> asks{0};
};

class World {
 public:
  World() {
    const XdsConfig config =
        testing::with_filters(all_to(to("c")), {filter("session", session_by("s"))});
    for (const ClusterName& name : lb::clusters_of(config))
      clusters_[name] = std::make_shared<lb::ClusterRef>(name, stats_);
    selector_ = lb::make_config_selector(config, clusters_);
  }

  // Publishes a new table of hosts. One host in it is DRAINING, and one has a new connection. The
  // number of the turn decides which hosts are READY, IDLE or without a subchannel.
  void publish() {
    const int turn = turn_++;
    const int changed = turn % kHosts;
    const auto table = table_of(turn);
    lb::HostStates states(table->size());
    for (int at = 0; at < kHosts; ++at) {
      const auto place = table->find(host(at).str());
      if (at == changed) connections_[at] = new_connection(at);
      SubchannelStateChanged told{.address = host(at), .status = absl::OkStatus()};
      told.state = ConnectivityState::kReady;
      told.connection = connections_[at];
      if (told.connection == nullptr) continue;
      if ((turn + at) % 7 == 0) {
        told.state = ConnectivityState::kIdle;
        told.connection = nullptr;
      }
      if ((turn + at) % 11 != 0) states[*place] = told;
    }
    table_ = table;
    const auto child = lb::make_connection_picker(connections_[changed]);
    auto snapshot = std::make_unique<lb::Snapshot>();
    snapshot->sequence = static_cast<std::uint64_t>(turn) + 1;
    snapshot->selector = selector_;
    snapshot->picker =
        lb::make_override_host_picker(child, lb::make_host_slots(table, states), asks_);
    reclaimer_.handle()->retire(cell_->exchange(std::move(snapshot)), [this] { ++reclaimed_; });
  }

  void close() {
    reclaimer_.handle()->retire(cell_->exchange(std::make_unique<lb::Snapshot>()),
                                [this] { ++reclaimed_; });
  }

  // Reads the marks that picks set, as the subchannel map does. Returns whether every time of use
  // is in the past.
  bool look_at(const SessionMarks& marks) const {
    return std::ranges::all_of(marks, [this](const auto& marked) {
      const SessionMark& mark = *marked.second.mark;
      if (!mark.used_after(kStart)) return true;
      const Instant used = mark.last_used();
      return used <= now();
    });
  }

  SessionMarksPtr published_marks() const { return table_->marks(); }

  lb::Router router() const {
    lb::SessionTerms terms{.target = "xds:///orders", .now = [this] { return now(); }};
    return lb::Router(cell_, {}, std::make_shared<const lb::Sessions>(std::move(terms)));
  }

  // The clock of all threads; tick() moves it on.
  Instant now() const { return kStart + std::chrono::milliseconds(clock_.load()); }

  void tick() { ++clock_; }

  int reclaimed() const { return reclaimed_; }

  const CallStats& stats() const { return *stats_; }

  int asks() const { return asks_->asks; }

 private:
  lb::HostTablePtr table_of(int turn) const {
    Locality locality;
    for (int at = 0; at < kHosts; ++at) {
      Endpoint endpoint;
      endpoint.addresses = {host(at)};
      endpoint.health =
          (turn / kHosts) % kHosts == at ? HealthStatus::kDraining : HealthStatus::kHealthy;
      locality.endpoints.push_back(endpoint);
    }
    Endpoints endpoints;
    endpoints.priorities.push_back({{std::make_shared<const Locality>(std::move(locality))}});
    const HealthStatusSet all{HealthStatus::kHealthy, HealthStatus::kDraining};
    return std::make_shared<const lb::HostTable>(
        std::make_shared<const Endpoints>(std::move(endpoints)),
        all,
        table_.get(),
        ClusterName(),
        &actors::large_pages());
  }

  ConnectionPtr new_connection(int at) const {
    return make_tracked<Connection>(reclaimer_.handle(), host(at));
  }

  std::shared_ptr<const CallStats> stats_ = std::make_shared<CallStats>();
  std::shared_ptr<CountedAsks> asks_ = std::make_shared<CountedAsks>();
  std::atomic<std::int64_t> clock_{1};
  std::atomic<int> reclaimed_{0};
  std::shared_ptr<lb::SnapshotCell> cell_ = std::make_shared<lb::SnapshotCell>();
  lb::ClusterRefs clusters_;
  lb::ConfigSelectorPtr selector_;
  lb::HostTablePtr table_;
  std::vector<ConnectionPtr> connections_ = std::vector<ConnectionPtr>(kHosts);
  int turn_ = 0;
  ReclaimerThread reclaimer_;
};

// One data-plane thread. Returns how many picks set a wrong cookie, or set none although they had
// to.
int make_calls(const lb::Router& router, World& world, int seed, const std::atomic<bool>& done) {
  int broken = 0;
  for (int i = seed; !done.load(std::memory_order_relaxed); ++i) {
    world.tick();
    const std::string own = host(i % (kHosts + 1)).str();  // Host number kHosts does not exist.
    TestHeaders::List list;
    if (i % 7 != 0) list.emplace_back("cookie", "s=" + base64(own + ";c"));
    const TestHeaders headers(std::move(list));
    const lb::CallArgs call{"/orders/Place", &headers, static_cast<std::uint64_t>(i)};
    lb::Pick pick = router.pick(call);
    for (int again = 0; again < 3 && pick.outcome() == PickOutcome::kQueue; ++again)
      router.repick(pick, call);
    if (pick.outcome() != PickOutcome::kComplete) {
      if (!pick.set_cookie().empty()) ++broken;
      continue;
    }
    // A complete pick has a connection. If the call stays on its cookie's host, the pick sets no
    // cookie; otherwise the set cookie must name the connection's address.
    const std::string there = pick.connection()->address().str();
    const bool stays = i % 7 != 0 && there == own;
    const std::string expected = stays ? "" : there + ";c";
    const std::string told = pick.set_cookie().empty() ? "" : host_in(pick.set_cookie());
    if (told != expected) ++broken;
    pick.end(0);
  }
  return broken;
}

}  // namespace

TEST_CASE("sessions: picks, marks and snapshots, beside each other",
          "[lb][session][race][A55-33][A75-49]") {
  constexpr int kThreads = 3;
  constexpr int kPublications = 2'000;
  World world;
  std::atomic<bool> done{false};
  std::atomic<int> broken{0};
  world.publish();
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { broken += make_calls(world.router(), world, i << 24, done); });
  }
  const SessionMarksPtr marks = world.published_marks();  // Later tables have the same marks.
  threads.emplace_back([&] {
    while (!done.load(std::memory_order_relaxed)) {
      if (!world.look_at(*marks)) ++broken;
    }
  });
  for (int i = 1; i < kPublications; ++i) {
    world.publish();
    // Publications are at most 64 ahead of the reclaimer, so that old snapshots do not pile up.
    while (world.reclaimed() < i - 64)
      std::this_thread::yield();
  }
  done = true;
  for (std::thread& thread : threads)
    thread.join();
  CHECK(broken == 0);
  CHECK(marks->size() == kHosts);
  for (const auto& [address, marked] : *marks)
    CHECK(marked.mark->used_after(kStart));
  CHECK(world.stats().affinity(AffinityResult::kHit) > 0);
  CHECK(world.stats().affinity(AffinityResult::kHitDraining) > 0);
  CHECK(world.stats().affinity(AffinityResult::kNew) > 0);
  CHECK(world.stats().affinity(AffinityResult::kUnknownHost) > 0);
  CHECK(world.asks() > 0);
  CHECK(world.asks() <= kPublications * kHosts);  // At most one ask for each host and publication.
  world.close();
  while (world.reclaimed() <= kPublications)
    std::this_thread::yield();
}

}  // namespace signalbox::session_test
