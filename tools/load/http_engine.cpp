// SPDX-License-Identifier: Apache-2.0
#include "tools/load/http_engine.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <sys/prctl.h>

#include "tools/load/call_code.hpp"
#include "tools/load/http_transfer.hpp"

namespace signalbox::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The pause before a call is picked again, when no other endpoint is READY.
constexpr milliseconds kPause{20};
// The most calls that are begun before the loop looks at responses.
constexpr int kMostAtOnce = 64;
// Reading the thread's CPU clock is a system call, so only one round in so many reads it.
constexpr std::uint64_t kClockEvery = 32;
constexpr int kTimeout = kCurlErrors + CURLE_OPERATION_TIMEDOUT;

// gRPC's name of an address.
std::string peer_of(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return address;
  return absl::StrCat(absl::StartsWith(address, "[") ? "ipv6:" : "ipv4:", address);
}

}  // namespace

// The state of one call. After the call's end, the object is used for another call. Routes and
// filters read the call's headers from it.
class HttpEngine::Call final : public HeaderSource {
 public:
  enum class State : std::uint8_t { kFree, kPicking, kSending, kPausing };

  explicit Call(const HttpEngine& engine)
      : engine_(engine),
        transfer(engine.request_, engine.plan().headers, engine.plan().request.bytes) {
    curl_easy_setopt(transfer.easy(), CURLOPT_PRIVATE, this);
  }

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view value)> visit) const override {
    for (const auto& [key, value] : engine_.plan().headers) {
      if (key == name) visit(value);
    }
    if (name == "cookie" && !cookie.empty()) visit(cookie);
  }

  CallArgs args() {
    return {.path = engine_.route_path_,
            .headers = this,
            .seed = seed,
            .authority = &authority,
            .tried = &tried};
  }

  std::string address() const { return pick->connection()->address().str(); }

  bool was_tried() const {
    return std::ranges::find(tried, pick->connection()->address()) != tried.end();
  }

 private:
  const HttpEngine& engine_;

 public:
  BegunCall begun;
  State state = State::kFree;
  std::uint64_t number = 0;
  std::uint64_t seed = 0;
  Clock::time_point deadline;
  std::string cookie;     // The session's cookies; empty: none.
  std::string authority;  // The Host that the route asks for; empty: the request's.
  TriedAddresses tried;   // Endpoints that took no connection since the last pause.
  HeaderList more;        // Headers of this call alone.
  std::string failure;    // Why the last connection failed.
  std::optional<Pick> pick;
  Registration waiting;
  HttpTransfer transfer;
};

HttpEngine::HttpEngine(std::shared_ptr<Router> router,
                       std::unique_ptr<CurlLoop> loop,
                       HttpRequest request,
                       CallPlan plan)
    : OpenLoop(std::move(plan)),
      router_(std::move(router)),
      request_(std::move(request)),
      route_path_(request_.route_path()),
      loop_(std::move(loop)) {}

HttpEngine::~HttpEngine() {
  stop();
  cancel();
  if (thread_.joinable()) thread_.join();
}

nanoseconds HttpEngine::own_cpu() const {
  return nanoseconds(std::max<std::int64_t>(0, thread_cpu_ns_ - router_cpu_ns_));
}

void HttpEngine::launch() {
  thread_ = std::thread([this] { run(); });
}

void HttpEngine::run() {
  ::prctl(PR_SET_TIMERSLACK, 1);  // The default slack of 50 µs would count as lateness.
  thread_id_ = std::this_thread::get_id();
  auto due = next_due();
  for (std::uint64_t round = 0;; ++round) {
    due = send_due(due);
    take_picked();
    if (!due && !has_sent_all()) note_all_sent();
    if (round % kClockEvery == 0) thread_cpu_ns_ = thread_cpu().count();
    if (is_cancelling() && has_sent_all()) cancel_busy();
    if (has_sent_all() && is_idle()) break;
    auto until = Clock::now() + kLook;
    if (due) until = std::min<Clock::time_point>(until, *due);
    if (!pauses_.empty()) until = std::min<Clock::time_point>(until, pauses_.front().at);
    loop_->run(until);
    while (const auto ended = loop_->next_ended())
      take(*ended);
    resume();
  }
  thread_cpu_ns_ = thread_cpu().count();
}

std::optional<HttpEngine::Clock::time_point> HttpEngine::send_due(
    std::optional<Clock::time_point> due) {
  if (is_stopping()) return std::nullopt;
  for (int i = 0; due && i < kMostAtOnce && Clock::now() >= *due; ++i) {
    const std::uint64_t number = number_++;
    if (const auto begun = begin(*due, number)) {
      if (free_.empty()) free_.push_back(calls_.emplace_back(std::make_unique<Call>(*this)).get());
      Call& call = *free_.back();
      free_.pop_back();
      call.begun = *begun;
      call.number = number;
      pick(call);
    }
    due = next_due();
  }
  return due;
}

void HttpEngine::cancel_busy() {
  for (const auto& call : calls_) {
    if (call->state == Call::State::kFree) continue;
    // If cancel() returns false, the pick has ended: take_picked() gets it, and ends the call.
    if (call->state == Call::State::kPicking && !call->waiting.cancel()) continue;
    if (call->state == Call::State::kSending) loop_->remove(call->transfer.easy());
    end(*call, static_cast<int>(NoResponse::kCancelled), EndedCall::kNoEndpoint, "");
  }
  pauses_.clear();
}

// --- the steps of a call -------------------------------------------------------------------------

void HttpEngine::pick(Call& call) {
  call.state = Call::State::kPicking;
  call.seed = next_seed();
  call.deadline = call.begun.sent + plan().call_timeout;
  if (call.begun.session >= 0) call.cookie = jar(call.begun.session).cookie_header(request_.path);
  const SampledCpu cpu(call.number, router_cpu_ns_);
  call.waiting = router_->pick_async(call.args(), call.deadline, [this, &call](Pick pick) {
    call.pick = std::move(pick);
    // The engine may be destroyed as soon as this thread unlocks the mutex, so wake() runs before.
    const std::lock_guard lock(mutex_);
    picked_.push_back(&call);
    if (std::this_thread::get_id() != thread_id_) loop_->wake();
  });
}

void HttpEngine::take_picked() {
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(picked_);
  }
  for (Call* const call : taken_) {
    if (is_cancelling()) {
      end(*call, static_cast<int>(NoResponse::kCancelled), EndedCall::kNoEndpoint, "");
    } else if (call->pick->outcome() == PickOutcome::kComplete) {
      call->more = call->pick->take_headers();
      if (!call->cookie.empty()) call->more.emplace_back("cookie", call->cookie);
      send(*call);
    } else {
      end_unpicked(*call);
    }
  }
  taken_.clear();
}

void HttpEngine::send(Call& call) {
  call.state = Call::State::kSending;
  auto until = call.deadline;
  if (const auto timeout = call.pick->timeout())
    until = std::min<Clock::time_point>(until, call.begun.sent + *timeout);
  call.transfer.prepare(call.address(),
                        std::chrono::ceil<milliseconds>(until - Clock::now()),
                        call.authority,
                        call.more);
  loop_->add(call.transfer.easy());
}

void HttpEngine::take(const CurlLoop::Ended& ended) {
  void* of_easy = nullptr;
  curl_easy_getinfo(ended.easy, CURLINFO_PRIVATE, &of_easy);
  Call& call = *static_cast<Call*>(of_easy);
  if (ended.result == CURLE_OK) {
    end_reached(call, call.transfer.status(), call.address());
    return;
  }
  const CURLcode result = call.transfer.was_lost() ? CURLE_GOT_NOTHING : ended.result;
  const std::string why = absl::StrCat(call.address(), ": ", curl_easy_strerror(result));
  if (result != CURLE_COULDNT_CONNECT) {
    end_reached(call, kCurlErrors + result, why);
    return;
  }
  call.failure = why;
  call.tried.push_back(call.pick->connection()->address());
  pick_again(call);
}

// Picks again for a call that got no connection from an endpoint which the last pick took for
// READY. A new endpoint gets the request at once, and a failed pick ends the call. Otherwise the
// call pauses, because signalbox will soon notice that the endpoint takes no connections; or it
// ends if its deadline comes before the end of the pause.
void HttpEngine::pick_again(Call& call) {
  {
    const SampledCpu cpu(call.number, router_cpu_ns_);
    router_->repick(*call.pick, call.args());
  }
  const PickOutcome outcome = call.pick->outcome();
  if (outcome == PickOutcome::kComplete && !call.was_tried()) {
    send(call);
  } else if (outcome == PickOutcome::kFail || outcome == PickOutcome::kDrop) {
    router_->unserved(*call.pick);
    end_unpicked(call);
  } else if (Clock::now() + kPause >= call.deadline) {
    router_->unserved(*call.pick);
    end(call, kCurlErrors + CURLE_COULDNT_CONNECT, EndedCall::kNoEndpoint, call.failure);
  } else {
    call.pick->put_off();  // A call that pauses is no load of the endpoint.
    call.state = Call::State::kPausing;
    pauses_.push_back({Clock::now() + kPause, &call});
  }
}

void HttpEngine::resume() {
  while (!pauses_.empty() && pauses_.front().at <= Clock::now()) {
    Call& call = *pauses_.front().call;
    pauses_.pop_front();
    call.tried.clear();
    pick_again(call);
  }
}

// No endpoint could be picked: the pick failed, or waited until the deadline.
void HttpEngine::end_unpicked(Call& call) {
  const bool is_late = call.pick->outcome() == PickOutcome::kQueue;
  end(call,
      is_late ? kTimeout : static_cast<int>(NoResponse::kNoPick),
      EndedCall::kNoEndpoint,
      is_late ? "no endpoint was ready in time" : std::string(call.pick->status().message()));
}

void HttpEngine::end_reached(Call& call, int code, const std::string& why) {
  // A cookie that the jar refuses is not kept. If the session then moves, the move is counted.
  if (call.begun.session >= 0 && code < kCurlErrors) {
    CookieJar& jar = this->jar(call.begun.session);
    if (!call.pick->set_cookie().empty()) jar.save(call.pick->set_cookie()).IgnoreError();
    for (const std::string& cookie : call.transfer.set_cookies())
      jar.save(cookie).IgnoreError();
  }
  {
    const SampledCpu cpu(call.number, router_cpu_ns_);
    router_->started(*call.pick);
    router_->finished(*call.pick, grpc_code_of(code));
  }
  end(call, code, endpoint_of(peer_of(call.address())), why);
}

void HttpEngine::end(Call& call, int code, std::uint32_t endpoint, const std::string& why) {
  EndedCall ended = ended_call(call.begun, code);
  ended.endpoint = endpoint;
  if (is_failure(code)) ended.message = message_of(code_key(code), why);
  record(ended);
  call.state = Call::State::kFree;
  call.pick.reset();
  call.cookie.clear();
  call.tried.clear();
  call.more.clear();
  free_.push_back(&call);
  leave(ended.is_closed_loop);
}

}  // namespace signalbox::tools
