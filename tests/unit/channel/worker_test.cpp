// SPDX-License-Identifier: Apache-2.0
#include "channel/services/worker.hpp"

#include <cstddef>
#include <future>

#include <catch2/catch.hpp>

#include "channel/services/stream_count.hpp"

namespace signalbox::channel {

TEST_CASE("worker: jobs run in order, and a full queue refuses the next one",
          "[channel][services]") {
  std::promise<void> started;
  std::promise<void> gate;
  std::promise<void> done;
  std::size_t ran = 0;  // Only the worker writes it.
  {
    Worker worker;
    REQUIRE(worker.post([&] {
      started.set_value();
      gate.get_future().wait();
    }));
    started.get_future().wait();
    for (std::size_t job = 1; job < Worker::kMaxJobs; ++job)
      REQUIRE(worker.post([&] { ++ran; }));
    REQUIRE(worker.post([&] { done.set_value(); }));
    CHECK_FALSE(worker.post([&] { ++ran; }));
    gate.set_value();
    done.get_future().wait();
  }
  CHECK(ran == Worker::kMaxJobs - 1);
}

TEST_CASE("stream_count: a seat that is given back may be taken again", "[channel][services]") {
  StreamCount count(2);
  auto first = count.enter();
  const auto second = count.enter();
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(count.enter() == nullptr);
  CHECK(count.enter() == nullptr);
  first.reset();
  CHECK(count.enter() != nullptr);
}

}  // namespace signalbox::channel
