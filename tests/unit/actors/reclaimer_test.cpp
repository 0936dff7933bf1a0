// SPDX-License-Identifier: Apache-2.0
#include "actors/reclaimer.hpp"

#include <atomic>
#include <future>
#include <optional>

#include <catch2/catch.hpp>

namespace signalbox::actors {
namespace {

struct Witness final : Tracked {
  explicit Witness(std::promise<void>& destroyed_promise) : destroyed(destroyed_promise) {}

  ~Witness() override { destroyed.set_value(); }

  std::promise<void>& destroyed;
};

constexpr auto kSoon = std::chrono::seconds(20);

bool happened(std::future<void>& event) {
  return event.wait_for(kSoon) == std::future_status::ready;
}

}  // namespace

TEST_CASE("reclaimer: a snapshot is destroyed, and told, only when its readers have left",
          "[actors][reclaimer]") {
  lb::SnapshotCell cell;
  ReclaimerThread thread;
  std::promise<void> told;
  auto telling = told.get_future();
  {
    std::optional<lb::SnapshotCell::Reader> reader;
    reader.emplace(cell);
    auto next = std::make_unique<lb::Snapshot>();
    next->sequence = 1;
    thread.handle()->retire(cell.exchange(std::move(next)), [&] { told.set_value(); });
    CHECK(telling.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
    CHECK((*reader)->sequence == 0);
  }
  CHECK(happened(telling));
}

TEST_CASE("reclaimer: an object that calls use lives until the last of them has ended",
          "[actors][reclaimer]") {
  std::promise<void> destroyed;
  auto destruction = destroyed.get_future();
  ReclaimerThread thread;
  auto object = make_tracked<Witness>(thread.handle(), destroyed);
  std::optional<Use> call;
  call.emplace(*object);
  object.reset();
  CHECK(destruction.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  call.reset();
  CHECK(happened(destruction));
}

TEST_CASE("reclaimer: a call may end after the runtime; what it used is destroyed then",
          "[actors][reclaimer]") {
  std::promise<void> destroyed;
  auto destruction = destroyed.get_future();
  std::optional<Use> call;
  {
    ReclaimerThread thread;
    auto object = make_tracked<Witness>(thread.handle(), destroyed);
    call.emplace(*object);
  }
  CHECK(destruction.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  call.reset();
  CHECK(happened(destruction));
}

TEST_CASE("reclaimer: the handle works on after the thread has ended", "[actors][reclaimer]") {
  std::shared_ptr<Reclaimer> handle;
  {
    const ReclaimerThread thread;
    handle = thread.handle();
  }
  lb::SnapshotCell cell;
  bool told = false;
  handle->retire(cell.exchange(std::make_unique<lb::Snapshot>()), [&] { told = true; });
  CHECK(told);

  std::promise<void> destroyed;
  auto destruction = destroyed.get_future();
  make_tracked<Witness>(handle, destroyed).reset();
  CHECK(happened(destruction));
}

}  // namespace signalbox::actors
