// SPDX-License-Identifier: Apache-2.0
#include "tools/load/curl_loop.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "absl/strings/str_cat.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tools/load/file_limit.hpp"

namespace signalbox::tools {
namespace {

constexpr std::size_t kMostEvents = 256;

bool listen_to(int epoll, int descriptor, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = descriptor}};
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void empty(int descriptor) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(descriptor, &count, sizeof count);
}

int curl_events_of(std::uint32_t events) {
  int all = 0;
  if ((events & EPOLLIN) != 0) all |= CURL_CSELECT_IN;
  if ((events & EPOLLOUT) != 0) all |= CURL_CSELECT_OUT;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) all |= CURL_CSELECT_ERR;
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CurlLoop>> CurlLoop::make(std::int64_t connections) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  raise_file_limit();
  std::unique_ptr<CurlLoop> loop(new CurlLoop);
  loop->epoll_ = actors::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  loop->timer_ = actors::Descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  loop->bell_ = actors::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listen_to(*loop->epoll_, *loop->timer_, EPOLLIN) ||
      !listen_to(*loop->epoll_, *loop->bell_, EPOLLIN))
    return absl::UnavailableError(
        absl::StrCat("cannot wait for HTTP responses: ", std::strerror(errno)));
  loop->multi_.reset(curl_multi_init());
  CURLM* const multi = loop->multi_.get();
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, &CurlLoop::on_socket);
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, loop.get());
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, &CurlLoop::on_timer);
  curl_multi_setopt(multi, CURLMOPT_TIMERDATA, loop.get());
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(connections));
  return loop;
}

CurlLoop::~CurlLoop() = default;

void CurlLoop::add(CURL* easy) {
  curl_multi_add_handle(multi_.get(), easy);
}

void CurlLoop::remove(CURL* easy) {
  curl_multi_remove_handle(multi_.get(), easy);
}

void CurlLoop::run(Clock::time_point until) {
  expire();
  wait(due_ ? std::min(until, *due_) : until);
  expire();
}

std::optional<CurlLoop::Ended> CurlLoop::next_ended() {
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const Ended ended{.easy = message->easy_handle, .result = message->data.result};
    remove(ended.easy);  // `message` is not valid any more.
    return ended;
  }
  return std::nullopt;
}

void CurlLoop::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(*bell_, &one, sizeof one);
}

// libcurl's callback: puts a socket into the epoll set, changes its events, or removes it. `known`
// is null if the socket is not in the set. curl_multi_assign() sets `known` for the next call; any
// pointer but null serves.
int CurlLoop::on_socket(CURL*, curl_socket_t socket, int what, void* loop, void* known) {
  auto& me = *static_cast<CurlLoop*>(loop);
  if (what == CURL_POLL_REMOVE) {
    ::epoll_ctl(*me.epoll_, EPOLL_CTL_DEL, socket, nullptr);
    return 0;
  }
  epoll_event event{.events = 0, .data = {.fd = socket}};
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  ::epoll_ctl(*me.epoll_, known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event);
  curl_multi_assign(me.multi_.get(), socket, &me);
  return 0;
}

int CurlLoop::on_timer(CURLM*, long timeout_ms, void* loop) {
  auto& me = *static_cast<CurlLoop*>(loop);
  me.due_.reset();
  if (timeout_ms >= 0) me.due_ = Clock::now() + std::chrono::milliseconds(timeout_ms);
  return 0;
}

void CurlLoop::wait(Clock::time_point until) {
  const bool is_over = until <= Clock::now();
  if (!is_over) {
    const auto at = until.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at);
    const itimerspec time{
        .it_interval = {},
        .it_value = {.tv_sec = seconds.count(),
                     .tv_nsec = static_cast<long>(std::chrono::nanoseconds(at - seconds).count())}};
    ::timerfd_settime(*timer_, TFD_TIMER_ABSTIME, &time, nullptr);
  }
  std::array<epoll_event, kMostEvents> events;
  const int count =
      ::epoll_wait(*epoll_, events.data(), static_cast<int>(events.size()), is_over ? 0 : -1);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == *timer_ || event.data.fd == *bell_) {
      empty(event.data.fd);
      continue;
    }
    int running = 0;
    curl_multi_socket_action(multi_.get(), event.data.fd, curl_events_of(event.events), &running);
  }
}

void CurlLoop::expire() {
  if (!due_ || *due_ > Clock::now()) return;
  due_.reset();
  int running = 0;
  curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
}

}  // namespace signalbox::tools
