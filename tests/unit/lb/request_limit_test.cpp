// SPDX-License-Identifier: Apache-2.0
#include "lb/request_limit.hpp"

#include <barrier>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "messages/cluster_settings.hpp"

namespace signalbox::lb {
namespace {

const ClusterName kOrders{"orders"};

int take_all(const RequestLimit& limit, std::uint32_t most) {
  int taken = 0;
  while (limit.take(most))
    ++taken;
  return taken;
}

// Begins and ends a call on each of 2 × kStripes threads. They live at the same time, so they use
// nearly all stripes. If calls left unused tokens with their stripe, nearly all stripes would then
// have some.
void pass_through_threads(const RequestLimit& limit, std::uint32_t most) {
  constexpr std::size_t kThreads = 2 * kStripes;
  std::barrier all_have_passed(static_cast<std::ptrdiff_t>(kThreads));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      if (limit.take(most)) limit.put_back(most);
      all_have_passed.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace

TEST_CASE("request_limit: so many calls, and not one more", "[lb][cluster_impl][A32]") {
  // From 128 on a stripe takes its first tokens in a batch; below, calls take tokens one by one.
  const std::uint32_t most = GENERATE(0U, 1U, 2U, 9U, 127U, 128U, 129U, 1024U, 5000U);
  CAPTURE(most);
  const RequestLimit limit;
  SECTION("when one thread calls") {}
  SECTION("when other threads have called before") {
    pass_through_threads(limit, most);
  }
  CHECK(limit.in_flight() == 0);
  CHECK(take_all(limit, most) == static_cast<int>(most));
  CHECK(limit.in_flight() == std::int64_t{most});
  CHECK_FALSE(limit.take(most));
  for (std::uint32_t i = 0; i < most; ++i) {
    limit.put_back(most);
    REQUIRE(limit.take(most));
    REQUIRE_FALSE(limit.take(most));
  }
}

TEST_CASE("request_limit: what begins on one thread may end on another",
          "[lb][cluster_impl][A32]") {
  const std::uint32_t most = GENERATE(3U, 300U);
  const RequestLimit limit;
  for (int round = 0; round < 20; ++round) {
    REQUIRE(take_all(limit, most) == static_cast<int>(most));
    std::thread([&] {
      for (std::uint32_t i = 0; i < most; ++i)
        limit.put_back(most);
    }).join();
    REQUIRE(limit.in_flight() == 0);
  }
}

TEST_CASE("request_limit: a change holds at once, and the count stays",
          "[lb][cluster_impl][A32][A37-29]") {
  const RequestLimit limit;
  pass_through_threads(limit, 1024);
  for (int i = 0; i < 100; ++i)
    REQUIRE(limit.take(1024));
  CHECK_FALSE(limit.take(10));
  CHECK_FALSE(limit.take(100));
  CHECK(limit.take(101));
  CHECK(limit.in_flight() == 101);
  for (int i = 0; i < 91; ++i)
    limit.put_back(10);
  CHECK_FALSE(limit.take(10));
  limit.put_back(10);
  CHECK(limit.take(10));
  CHECK_FALSE(limit.take(10));
  CHECK(take_all(limit, 2000) == 1990);
}

TEST_CASE("request_limit: is one for each cluster and EDS service",
          "[lb][cluster_impl][A32][A37-11][A37-29]") {
  RequestLimits limits;
  const RequestLimitPtr one = limits.of(kOrders, "east");
  CHECK(limits.of(kOrders, "east") == one);
  CHECK(limits.of(kOrders, "west") != one);
  CHECK(limits.of(kOrders, "") != one);
  CHECK(limits.of(ClusterName("invoices"), "east") != one);
  CHECK(RequestLimits::of_process() == RequestLimits::of_process());
}

TEST_CASE("request_limit: lives as long as somebody holds it", "[lb][cluster_impl][A37-29]") {
  RequestLimits limits;
  RequestLimitPtr held = limits.of(kOrders, "east");
  REQUIRE(held->take(10));
  const std::weak_ptr<const RequestLimit> watched = held;
  held.reset();
  CHECK(watched.expired());
  CHECK(limits.of(kOrders, "east")->in_flight() == 0);

  SECTION("and clusters that come and go are forgotten") {
    for (int i = 0; i < 10'000; ++i)
      limits.of(ClusterName("c" + std::to_string(i)), "");
    CHECK(limits.size() < 100);
  }
}

TEST_CASE("request_gate: counts whom it turns away, and says why",
          "[lb][cluster_impl][A32][A37-30]") {
  const auto refused = std::make_shared<const EventCount>();
  const RequestGate gate(std::make_shared<const RequestLimit>(), 1, kOrders, refused);
  CHECK(gate.limit() == 1);
  CHECK_FALSE(gate.is_full());
  REQUIRE(gate.enter());
  CHECK(gate.is_full());
  REQUIRE_FALSE(gate.enter());
  CHECK(gate.refuse() ==
        absl::UnavailableError("cluster orders: circuit breaker: 1 calls in flight, the limit; "
                               "circuit_breakers.thresholds.max_requests raises it"));
  CHECK(refused->sum(0) == 1);
  gate.ended({});
  CHECK(gate.enter());
}

TEST_CASE("request_gate: says when the limit is the default", "[lb][cluster_impl][A32]") {
  const RequestGate gate(
      std::make_shared<const RequestLimit>(), kDefaultMaxRequests, kOrders, nullptr);
  CHECK(gate.refuse() == absl::UnavailableError(
                             "cluster orders: circuit breaker: 1024 calls in flight, the default; "
                             "circuit_breakers.thresholds.max_requests raises it"));
}

}  // namespace signalbox::lb
