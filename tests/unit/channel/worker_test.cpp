// SPDX-License-Identifier: Apache-2.0
#include "channel/services/worker.hpp"

#include <cstddef>
#include <future>
#include <vector>

#include <catch2/catch.hpp>

#include "channel/services/stream_count.hpp"

namespace signalbox::channel {

TEST_CASE("worker: jobs run in order, and a full queue refuses the next one",
          "[channel][services]") {
  std::promise<void> started;
  std::promise<void> gate;
  std::promise<void> done;
  std::size_t ran = 0;  // Only the worker writes it.
  std::vector<AdminLimit> hits;
  {
    Worker worker([&](AdminLimit limit) { hits.push_back(limit); });
    REQUIRE(worker.post([&] {
      started.set_value();
      gate.get_future().wait();
    }));
    started.get_future().wait();
    for (std::size_t job = 1; job < 64; ++job)
      REQUIRE(worker.post([&] { ++ran; }));
    REQUIRE(worker.post([&] { done.set_value(); }));
    CHECK(hits.empty());
    CHECK_FALSE(worker.post([&] { ++ran; }));
    CHECK(hits == std::vector{AdminLimit::kGrpcRequests});
    gate.set_value();
    done.get_future().wait();
  }
  CHECK(ran == 63);
}

TEST_CASE("stream_count: a seat that is given back may be taken again", "[channel][services]") {
  int refused = 0;
  StreamCount count(2, [&] { ++refused; });
  auto first = count.enter();
  const auto second = count.enter();
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(refused == 0);
  CHECK(count.enter() == nullptr);
  CHECK(count.enter() == nullptr);
  CHECK(refused == 2);
  first.reset();
  CHECK(count.enter() != nullptr);
  CHECK(refused == 2);
}

}  // namespace signalbox::channel
