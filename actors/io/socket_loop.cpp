// SPDX-License-Identifier: Apache-2.0
#include "actors/io/socket_loop.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace signalbox::actors {
namespace {

// The id of bell_, an eventfd with which post() wakes the loop's thread.
constexpr SocketLoop::Id kBell = 0;

}  // namespace

absl::StatusOr<std::unique_ptr<SocketLoop>> SocketLoop::make(absl::string_view unable) {
  Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  Descriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kBell;
  if (*epoll < 0 || *bell < 0 || ::epoll_ctl(*epoll, EPOLL_CTL_ADD, *bell, &event) != 0)
    return absl::UnavailableError(absl::StrCat(unable, ": ", std::strerror(errno)));
  return std::unique_ptr<SocketLoop>(new SocketLoop(std::move(epoll), std::move(bell)));
}

void SocketLoop::begin(Handler& handler) {
  std::call_once(begun_, [&] { thread_ = std::thread([this, &handler] { run(handler); }); });
}

void SocketLoop::stop() {
  post([this] { is_stopping_ = true; });
  if (thread_.joinable()) thread_.join();
}

void SocketLoop::post(std::function<void()> order) {
  const std::lock_guard lock(mutex_);
  orders_.push_back(std::move(order));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(*bell_, &one, sizeof(one));
}

bool SocketLoop::listen_for(Id id, int socket, std::uint32_t what) const {
  epoll_event event{};
  event.events = what;
  event.data.u64 = id;
  if (::epoll_ctl(*epoll_, EPOLL_CTL_MOD, socket, &event) == 0) return true;
  return errno == ENOENT && ::epoll_ctl(*epoll_, EPOLL_CTL_ADD, socket, &event) == 0;
}

void SocketLoop::forget(Id id, int socket) {
  ::epoll_ctl(*epoll_, EPOLL_CTL_DEL, socket, nullptr);
  set_due(id, Instant::max());
}

void SocketLoop::set_due(Id id, Instant due) {
  const auto known = times_.find(id);
  if (known != times_.end()) {
    due_.erase({known->second, id});
    times_.erase(known);
  }
  if (due == Instant::max()) return;
  times_.emplace(id, due);
  due_.emplace(due, id);
}

void SocketLoop::run(Handler& handler) {
  while (obey()) {
    std::array<epoll_event, 64> events{};
    const int count =
        ::epoll_wait(*epoll_, events.data(), static_cast<int>(events.size()), patience_ms());
    for (int i = 0; i < count; ++i) {
      const Id id = events[static_cast<std::size_t>(i)].data.u64;
      events_ = events[static_cast<std::size_t>(i)].events;
      if (id != kBell) handler.happened(id);
    }
    while (!due_.empty() && due_.begin()->first <= now()) {
      const Id id = due_.begin()->second;
      set_due(id, Instant::max());
      handler.is_due(id);
    }
  }
}

// Runs the functions that were posted. False: the loop must end.
bool SocketLoop::obey() {
  std::vector<std::function<void()>> orders;
  {
    const std::lock_guard lock(mutex_);
    std::uint64_t rings = 0;
    [[maybe_unused]] const auto read = ::read(*bell_, &rings, sizeof(rings));
    orders.swap(orders_);
  }
  for (const auto& order : orders)
    order();
  return !is_stopping_;
}

int SocketLoop::patience_ms() const {
  if (due_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_.begin()->first - now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

}  // namespace signalbox::actors
