// SPDX-License-Identifier: Apache-2.0
#include "tools/load/ring.hpp"

#include <memory>
#include <thread>

#include <catch2/catch.hpp>

namespace signalbox::tools {

TEST_CASE("ring: is full, is emptied in order, and goes round", "[load][ring]") {
  Ring<int, 4> ring;
  CHECK_FALSE(ring.pop());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i)
      CHECK(ring.push(round * 4 + i));
    CHECK_FALSE(ring.push(99));
    for (int i = 0; i < 4; ++i)
      CHECK(ring.pop() == round * 4 + i);
    CHECK_FALSE(ring.pop());
  }
}

TEST_CASE("ring: every value of another thread comes once, in order", "[load][ring]") {
  constexpr int kValues = 100'000;
  const auto ring = std::make_unique<Ring<int, 64>>();
  std::thread writer([&] {
    for (int i = 0; i < kValues; ++i) {
      while (!ring->push(i))
        std::this_thread::yield();
    }
  });
  int wrong = 0;
  for (int i = 0; i < kValues; ++i) {
    std::optional<int> value;
    while (!(value = ring->pop()))
      std::this_thread::yield();
    if (*value != i) ++wrong;
  }
  writer.join();
  CHECK(wrong == 0);
  CHECK_FALSE(ring->pop());
}

}  // namespace signalbox::tools
