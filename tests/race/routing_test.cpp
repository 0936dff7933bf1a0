// SPDX-License-Identifier: Apache-2.0
//
// Threads route, pick, hold, pick again and let go, while configurations, pickers, clusters and
// connections are replaced and reclaimed as the runtime does it.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "actors/reclaimer.hpp"
#include "lb/pick/router.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox {
namespace {

using actors::Reclaimer;
using actors::ReclaimerThread;
using testing::all_to;
using testing::answering;
using testing::to;

// Counts the objects of one kind. A CountedConnection also has a plain number, which its destructor
// overwrites.
struct Census {
  std::atomic<int> born{0};
  std::atomic<int> died{0};

  int alive() const { return born - died; }
};

constexpr std::uint64_t kAlive = 0x600d;

class CountedConnection final : public Connection {
 public:
  explicit CountedConnection(std::shared_ptr<Census> census)
      : Connection(Address("10.0.0.1:80")), census_(std::move(census)) {
    ++census_->born;
  }

  ~CountedConnection() override {
    mark_ = 0;
    ++census_->died;
  }

  bool is_alive() const { return mark_ == kAlive; }

 private:
  const std::shared_ptr<Census> census_;
  volatile std::uint64_t mark_ = kAlive;
};

// A ClusterRef has no Census. Its CallStats are destroyed with it, and are counted instead.
std::shared_ptr<const CallStats> counted_stats(const std::shared_ptr<Census>& census) {
  ++census->born;
  return {new CallStats, [census](const CallStats* stats) {
            delete stats;
            ++census->died;
          }};
}

class World {
 public:
  // Publishes a snapshot with a new connection. The first and each eighth also have new clusters.
  void publish() {
    ++sequence_;
    if (clusters_.empty() || sequence_ % 8 == 0) renew_clusters();
    auto snapshot = std::make_unique<lb::Snapshot>();
    snapshot->generation = sequence_;
    snapshot->sequence = sequence_;
    snapshot->selector = selector_;
    const std::uint64_t answer = sequence_ % 4;
    snapshot->picker =
        answering([answer, connection = make_tracked<CountedConnection>(handle(), connections_)](
                      const PickArgs& args) {
          PickResult result;
          if ((args.seed + answer) % 4 != 0) result.outcome = Complete{connection.get()};
          return result;
        });
    handle()->retire(cell_->exchange(std::move(snapshot)), [this] { ++reclaimed_; });
  }

  // Publishes an empty snapshot, after which no pick finds a route.
  void close() {
    handle()->retire(cell_->exchange(std::make_unique<lb::Snapshot>()), [this] { ++reclaimed_; });
    selector_.reset();
    clusters_.clear();
  }

  lb::Router router() const { return lb::Router(cell_); }

  const Census& connections() const { return *connections_; }

  const Census& clusters() const { return *cluster_stats_; }

  int reclaimed() const { return reclaimed_; }

 private:
  std::shared_ptr<Reclaimer> handle() const { return reclaimer_.handle(); }

  void renew_clusters() {
    const XdsConfig config = all_to(to({{"a", 1}, {"b", 2}, {"c", 1}}));
    clusters_.clear();
    for (const ClusterName& name : lb::clusters_of(config)) {
      clusters_[name] = make_tracked<lb::ClusterRef>(handle(), name, counted_stats(cluster_stats_));
    }
    selector_ = lb::make_config_selector(config, clusters_);
  }

  std::shared_ptr<Census> connections_ = std::make_shared<Census>();
  std::shared_ptr<Census> cluster_stats_ = std::make_shared<Census>();
  std::atomic<int> reclaimed_{0};
  std::shared_ptr<lb::SnapshotCell> cell_ = std::make_shared<lb::SnapshotCell>();
  lb::ClusterRefs clusters_;
  lb::ConfigSelectorPtr selector_;
  std::uint64_t sequence_ = 0;
  ReclaimerThread reclaimer_;
};

bool is_whole(const lb::Pick& pick) {
  if (pick.cluster() != nullptr && pick.cluster()->name().str().size() != 1) return false;
  if (pick.outcome() != PickOutcome::kComplete) return pick.connection() == nullptr;
  return pick.cluster() != nullptr &&
         static_cast<const CountedConnection*>(pick.connection())->is_alive();
}

// Makes calls, as one data-plane thread. Checks each pick when it is made, and again when another
// pick replaces it. Returns how often a pick was not whole (is_whole).
int make_calls(const lb::Router& router, std::uint64_t seed, const std::atomic<bool>& done) {
  constexpr std::size_t kHeld = 32;
  std::vector<std::optional<lb::Pick>> held(kHeld);
  int broken = 0;
  for (std::uint64_t i = 0; !done.load(std::memory_order_relaxed); ++i) {
    const lb::CallArgs call{"/orders/Place", nullptr, seed + i};
    lb::Pick pick = router.pick(call);
    if (pick.cluster() != nullptr) pick.cluster()->stats()->count_started();
    if (pick.outcome() == PickOutcome::kQueue) router.repick(pick, call);
    if (!is_whole(pick)) ++broken;
    std::optional<lb::Pick>& slot = held[draw(seed + i, Salt::kEndpoint) % kHeld];
    if (slot) {
      if (!is_whole(*slot)) ++broken;
      if (slot->cluster() != nullptr) slot->cluster()->stats()->count_completed(0);
    }
    slot = std::move(pick);
  }
  return broken;
}

}  // namespace

TEST_CASE("router: what a pick holds lives as long as the pick, S1", "[lb][router][race]") {
  constexpr int kThreads = 3;
  constexpr int kPublications = 3'000;
  const auto world = std::make_unique<World>();
  std::atomic<bool> done{false};
  std::atomic<int> broken{0};
  std::vector<std::thread> calls;
  world->publish();
  for (int i = 0; i < kThreads; ++i) {
    const auto seed = static_cast<std::uint64_t>(i) << 32U;
    calls.emplace_back([&, seed] { broken += make_calls(world->router(), seed, done); });
  }
  for (int i = 1; i < kPublications; ++i) {
    world->publish();
    // Publications are at most 64 ahead of the reclaimer, so that old snapshots do not pile up.
    while (world->reclaimed() < i - 64)
      std::this_thread::yield();
  }
  done = true;
  for (std::thread& thread : calls)
    thread.join();
  CHECK(broken == 0);
  CHECK(world->connections().born == kPublications);
  CHECK(world->clusters().born > kPublications / 8);

  world->close();
  // A snapshot counts as reclaimed once it is destroyed. Objects that picks held may live longer.
  while (world->connections().alive() != 0 || world->clusters().alive() != 0 ||
         world->reclaimed() <= kPublications) {
    std::this_thread::yield();
  }
  CHECK(world->reclaimed() == kPublications + 1);
}

TEST_CASE("router: a pick outlives cell, clusters and reclaimer", "[lb][router][race]") {
  auto world = std::make_unique<World>();
  world->publish();
  std::vector<lb::Pick> held;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 64; ++seed)
    held.push_back(world->router().pick({"/orders/Place", nullptr, seed}));
  world->close();
  world = nullptr;
  std::atomic<int> broken{0};
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t k = i; k < held.size(); k += 4) {
        if (!is_whole(held[k])) ++broken;
        held[k] = lb::Pick();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(broken == 0);
  // The picks outlived their world. A thread of the process destroys what they held, while the next
  // runtime of the process publishes.
  World next;
  next.publish();
}

}  // namespace signalbox
