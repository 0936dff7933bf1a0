// SPDX-License-Identifier: Apache-2.0
//
// Threads explain calls beside threads that pick, while a tree with priorities, localities, drops
// and a limit loses endpoints, finds them again, and is published anew each time.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "actors/reclaimer.hpp"
#include "lb/pick/router.hpp"
#include "tests/support/router_fixture.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace signalbox::test {
namespace {

using testing::all_to;
using testing::to;

class World {
 public:
  World() {
    ClusterExtras extras;
    extras.drops = {{"some", 100'000}};
    extras.max_concurrent_requests = 2;
    extras.outlier_detection.emplace();
    extras.outlier_detection->failure_percentage = OutlierDetection::FailurePercentage{};
    xds_.eds("near", {"x*1:a,b y*3:c", "z:d,e"}, default_lb_policy(), extras);
    xds_.eds("far", {":f,g"}, default_lb_policy(), extras);
    xds_.aggregate("c", {"near", "far"});
    tree_.apply(manager_of({"c"}), xds_.config());
    const XdsConfig config = all_to(to("c"));
    for (const ClusterName& name : lb::clusters_of(config))
      clusters_[name] = std::make_shared<lb::ClusterRef>(name, std::make_shared<CallStats>());
    selector_ = lb::make_config_selector(config, clusters_);
  }

  // Disconnects or reconnects one endpoint, and publishes the tree's picker.
  void publish() {
    const std::string address(1, static_cast<char>('a' + turn_ % 7));
    turn_ / 7 % 2 == 0 ? tree_.up(address) : tree_.down(address);
    if (++turn_ % 5 == 0) tree_.advance(std::chrono::seconds(3));
    auto snapshot = std::make_unique<lb::Snapshot>();
    snapshot->sequence = static_cast<std::uint64_t>(turn_);
    snapshot->selector = selector_;
    snapshot->picker = tree_.picker();
    reclaimer_.handle()->retire(cell_->exchange(std::move(snapshot)), [this] { ++reclaimed_; });
  }

  lb::Router router() const { return lb::Router(cell_); }

  int turn() const { return turn_; }

  int reclaimed() const { return reclaimed_; }

 private:
  XdsWorld xds_;
  std::atomic<int> reclaimed_{0};
  actors::ReclaimerThread reclaimer_;
  TreeHarness tree_{{}, reclaimer_.handle()};
  int turn_ = 0;
  std::shared_ptr<lb::SnapshotCell> cell_ = std::make_shared<lb::SnapshotCell>();
  lb::ClusterRefs clusters_;
  lb::ConfigSelectorPtr selector_;
};

}  // namespace

TEST_CASE("router: explanations beside picks and publications", "[lb][router][explain][race]") {
  constexpr int kPublications = 1'000;
  World world;
  world.publish();
  std::atomic<bool> done{false};
  std::atomic<int> broken{0};
  std::atomic<int> explained{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      const lb::Router router = world.router();
      for (std::uint64_t seed = i << 32U; !done; ++seed) {
        const lb::Pick pick = router.pick({"/s/M", nullptr, seed});
        const bool is_whole =
            (pick.outcome() == PickOutcome::kComplete) == (pick.connection() != nullptr);
        if (!is_whole) ++broken;
      }
    });
    threads.emplace_back([&, i] {
      const lb::Router router = world.router();
      for (std::uint64_t seed = i << 32U; !done; ++seed) {
        const Explanation told = router.explain({"/s/M", nullptr, seed}, Instant());
        const bool is_whole = (told.outcome == PickOutcome::kComplete) == !told.address.empty() &&
                              told.cluster == "c" && !told.steps.empty();
        if (!is_whole) ++broken;
        ++explained;
      }
    });
  }
  // Runs all publications, and goes on until 100 explanations were made.
  for (int i = 1; i < kPublications || explained < 100; ++i) {
    world.publish();
    while (world.reclaimed() < world.turn() - 64)
      std::this_thread::yield();
  }
  done = true;
  for (std::thread& thread : threads)
    thread.join();
  CHECK(broken == 0);
}

}  // namespace signalbox::test
