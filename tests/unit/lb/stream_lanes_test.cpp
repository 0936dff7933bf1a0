// SPDX-License-Identifier: Apache-2.0
//
// Threads that share an endpoint's streams. tests/spec/a105_connection_scaling_test has the rules
// one by one.
#include "lb/pick/stream_lanes.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/complete_pick.hpp"

namespace signalbox::lb {
namespace {

constexpr int kThreads = 4;
const Address kAddress{"10.0.0.1:80"};

// A connection that sees more calls than it allows.
struct Link : Connection {
  explicit Link(std::uint32_t limit) : Connection(kAddress, limit) {}

  void begin() const {
    if (++calls > *stream_limit()) is_exceeded = true;
  }

  mutable std::atomic<std::uint32_t> calls{0};
  mutable std::atomic<bool> is_exceeded{false};
};

// Without a Retirement, the test keeps the link until the last call on it has ended.
std::shared_ptr<const Link> link(std::uint32_t limit) {
  return std::make_shared<const Link>(limit);
}

// Lanes of dead connections live until the end of the test.
class Graveyard final : public Retirement {
 public:
  void retire(std::unique_ptr<const Tracked> object) override {
    const std::lock_guard lock(mutex_);
    objects_.push_back(std::move(object));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Tracked>> objects_;
};

// A bell that one thread rings and another one awaits.
struct Bell {
  void ring() {
    const std::lock_guard lock(mutex);
    has_rung = true;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool has_rung = false;
};

// Makes one call: waits for a stream if there is none. False: there is no connection.
bool call(const StreamLanes& lanes) {
  Pick pick = testing::complete_pick(kAddress);
  const auto answer = lanes.take(pick);
  if (answer == StreamLanes::Answer::kFull) {
    const auto bell = std::make_shared<Bell>();
    const auto wait = lanes.wait([bell] { bell->ring(); });
    std::unique_lock lock(bell->mutex);
    bell->changed.wait(lock, [&] { return bell->has_rung || wait->is_over(); });
    lock.unlock();
    if (wait->claim(pick) == StreamWait::Answer::kGone) return false;
  } else if (answer == StreamLanes::Answer::kGone) {
    return false;
  }
  const auto& connection = static_cast<const Link&>(*pick.connection());
  connection.begin();
  std::this_thread::yield();
  --connection.calls;
  pick.end(0);
  return true;
}

template <typename Work>
void on_threads(const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&work] { work(); });
  for (std::thread& thread : threads)
    thread.join();
}

TEST_CASE("stream_lanes: no connection gets more calls than it allows, and none is forgotten",
          "[lb][lanes][A105-8][A105-10]") {
  constexpr int kCalls = 500;
  const std::vector<std::shared_ptr<const Link>> links{link(1), link(2)};
  const auto graveyard = std::make_shared<Graveyard>();
  StreamLanes lanes(graveyard, [] {});
  std::uint64_t number = 0;
  for (const auto& each : links)
    lanes.add(++number, each, false);
  std::atomic<int> ended{0};
  on_threads([&] {
    for (int i = 0; i < kCalls; ++i)
      ended += call(lanes) ? 1 : 0;
  });
  CHECK(ended == kThreads * kCalls);
  for (const auto& each : links) {
    CHECK_FALSE(each->is_exceeded);
    CHECK(each->calls == 0);
  }
  CHECK_FALSE(lanes.has_demand());
}

TEST_CASE("stream_lanes: connections come and go under calls", "[lb][lanes][A105-8][A105-16]") {
  constexpr int kRounds = 500;
  const auto graveyard = std::make_shared<Graveyard>();
  StreamLanes lanes(graveyard, [] {});
  std::vector<std::shared_ptr<const Link>> links{link(1)};
  lanes.add(0, links.front(), false);
  std::atomic<bool> is_over{false};
  std::atomic<int> ended{0};
  std::thread owner([&] {
    // On a busy machine the calls may begin late.
    for (std::uint64_t round = 1; round <= kRounds || ended == 0; ++round) {
      links.push_back(link(1));
      lanes.add(round, links.back(), false);
      lanes.remove(round - 1);
      std::this_thread::yield();
    }
    is_over = true;
  });
  on_threads([&] {
    while (!is_over)
      ended += call(lanes) ? 1 : 0;
  });
  owner.join();
  CHECK(ended > 0);
  for (const auto& each : links) {
    CHECK_FALSE(each->is_exceeded);
    CHECK(each->calls == 0);
  }
  CHECK(call(lanes));
}

// A connection that holds the thread that asks for it, which is under the lock of the lanes.
struct Gate : Connection {
  Gate() : Connection(kAddress, 1U) {}

  bool takes_calls() const override {
    is_asked = is_shut.load();
    while (is_shut)
      std::this_thread::yield();
    return true;
  }

  mutable std::atomic<bool> is_asked{false};
  mutable std::atomic<bool> is_shut{false};
};

TEST_CASE("stream_lanes: a new connection does not drop the one of a call that is just ending",
          "[lb][lanes]") {
  constexpr std::uint64_t kRounds = 50;
  static thread_local bool is_adding = false;
  std::atomic<int> dropped{0};
  const auto graveyard = std::make_shared<Graveyard>();
  StreamLanes lanes(graveyard, [] {});
  // Dropped while a connection is added: that is, under the lock of the lanes.
  const auto counting_link = [&] {
    return std::shared_ptr<const Link>(new Link(1), [&](const Link* unused) {
      if (is_adding) ++dropped;
      graveyard->retire(std::unique_ptr<const Tracked>(unused));
    });
  };
  const auto gate = std::make_shared<const Gate>();
  lanes.add(0, gate, false);
  Pick first = testing::complete_pick(kAddress);
  REQUIRE(lanes.take(first) == StreamLanes::Answer::kTaken);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    lanes.add(2 * round + 1, counting_link(), false);
    Pick running = testing::complete_pick(kAddress);
    REQUIRE(lanes.take(running) == StreamLanes::Answer::kTaken);
    lanes.remove(2 * round + 1);
    // One thread has the lock. The owner and the ending call wait for it, in this order.
    gate->is_shut = true;
    std::thread holder([&] {
      Pick pick = testing::complete_pick(kAddress);
      static_cast<void>(lanes.take(pick));
    });
    while (!gate->is_asked)
      std::this_thread::yield();
    std::thread owner([&] {
      is_adding = true;
      lanes.add(2 * round + 2, counting_link(), false);
    });
    const auto give_way = [] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
      while (std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
    };
    give_way();
    std::thread caller([&] { running.end(0); });
    give_way();
    gate->is_shut = false;
    for (std::thread* thread : {&holder, &owner, &caller})
      thread->join();
    gate->is_asked = false;
    lanes.remove(2 * round + 2);
  }
  CHECK(dropped == 0);
}

TEST_CASE("stream_lanes: the text counts the streams and connections that are open",
          "[lb][lanes][A105-8]") {
  const std::vector<std::shared_ptr<const Link>> links{link(1), link(2)};
  const auto graveyard = std::make_shared<Graveyard>();
  StreamLanes lanes(graveyard, [] {});
  CHECK(lanes.text() == "all 0 streams of 0 connections are in use");
  lanes.add(1, links[0], false);
  lanes.add(2, links[1], false);
  std::vector<Pick> picks;
  for (int call = 0; call < 3; ++call) {
    picks.push_back(testing::complete_pick(kAddress));
    CHECK_FALSE(picks.back().has_stream());
    REQUIRE(lanes.take(picks.back()) == StreamLanes::Answer::kTaken);
    CHECK(picks.back().has_stream());
  }
  CHECK(lanes.text() == "all 3 streams of 2 connections are in use");
  lanes.remove(2);
  CHECK(lanes.text() == "all 1 stream of 1 connection are in use");
  picks.front().put_off();
  CHECK_FALSE(picks.front().has_stream());
  CHECK(lanes.text() == "all 0 streams of 1 connection are in use");
}

TEST_CASE("stream_lanes: the end of the lanes ends all waits, and calls keep their streams",
          "[lb][lanes][A105-9]") {
  const auto only = link(1);
  const auto graveyard = std::make_shared<Graveyard>();
  auto lanes = std::make_unique<StreamLanes>(graveyard, [] {});
  lanes->add(1, only, false);
  Pick running = testing::complete_pick(kAddress);
  REQUIRE(lanes->take(running) == StreamLanes::Answer::kTaken);
  int woken = 0;
  const auto wait = lanes->wait([&] { ++woken; });
  lanes = nullptr;
  CHECK(woken == 1);
  Pick pick = testing::complete_pick(kAddress);
  CHECK(wait->claim(pick) == StreamWait::Answer::kGone);
  CHECK(running.connection()->stream_limit() == 1U);
  running.end(0);
}

}  // namespace
}  // namespace signalbox::lb
