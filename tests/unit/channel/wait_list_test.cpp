// SPDX-License-Identifier: Apache-2.0
#include "channel/pick/wait_list.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include <catch2/catch.hpp>

namespace signalbox::channel {
namespace {

using Clock = std::chrono::steady_clock;

TEST_CASE("wait_list: who need not wait does not, and is not left in the list", "[channel]") {
  WaitList list;
  CHECK(list.wait([] { return true; }, Clock::time_point::max()));
  CHECK(list.size() == 0);
}

TEST_CASE("wait_list: a thread waits until a publication changes what it waits for", "[channel]") {
  WaitList list;
  std::atomic<bool> is_news = false;
  std::atomic<int> looks = 0;
  bool was_news = false;
  std::thread waiting([&] {
    const auto look = [&] {
      const bool seen = is_news;
      ++looks;
      return seen;
    };
    was_news = list.wait(look, Clock::time_point::max());
  });
  while (looks == 0)
    std::this_thread::yield();
  list.publish();  // look() is still false, so the thread waits on.
  while (looks == 1)
    std::this_thread::yield();
  CHECK(list.size() == 1);
  is_news = true;
  list.publish();
  waiting.join();
  CHECK(was_news);
  CHECK(looks == 4);  // When it begins, after two publications, and at its end.
  CHECK(list.size() == 0);
}

TEST_CASE("wait_list: the deadline ends a wait, and what came with it counts", "[channel]") {
  const bool is_news = GENERATE(false, true);
  WaitList list;
  int looks = 0;
  CHECK(list.wait([&] { return ++looks > 1 && is_news; }, Clock::now()) == is_news);
  CHECK(looks == 2);
  CHECK(list.size() == 0);
}

TEST_CASE("wait_list: who waits for a list that is closed waits for nothing", "[channel]") {
  const bool is_news = GENERATE(false, true);
  WaitList list;
  list.close();
  CHECK_FALSE(list.wait([&] { return is_news; }, Clock::time_point::max()));
  CHECK(list.size() == 0);
}

}  // namespace
}  // namespace signalbox::channel
