// SPDX-License-Identifier: Apache-2.0
#include "tools/load/open_loop.hpp"

#include <algorithm>
#include <ctime>
#include <thread>

#include "absl/strings/str_cat.h"

namespace signalbox::tools {
namespace {

using std::chrono::nanoseconds;

RateProfile whole_profile(const CallPlan& plan) {
  return with_warmup(plan.profile, std::chrono::duration<double>(plan.warmup).count());
}

}  // namespace

nanoseconds thread_cpu() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + nanoseconds(used.tv_nsec);
}

OpenLoop::SampledCpu::SampledCpu(std::uint64_t number, std::atomic<std::int64_t>& sum)
    : is_sampled_(number % kSampleEvery == 0), sum_(sum) {
  if (!is_sampled_) return;
  const nanoseconds earlier = thread_cpu();
  before_ = thread_cpu();
  reading_ = before_ - earlier;
}

OpenLoop::SampledCpu::~SampledCpu() {
  if (!is_sampled_) return;
  const nanoseconds work = std::max(nanoseconds(0), thread_cpu() - before_ - reading_);
  sum_ += static_cast<std::int64_t>(kSampleEvery) * work.count();
}

OpenLoop::OpenLoop(CallPlan plan)
    : plan_(std::move(plan)),
      schedule_(whole_profile(plan_), plan_.arrivals, plan_.seed, plan_.share) {
  for (std::size_t i = 0; i < plan_.sessions; ++i)
    jars_.push_back(std::make_unique<CookieJar>());
}

void OpenLoop::start(Clock::time_point begin) {
  begin_ = begin + plan_.warmup;
  launch();
}

OpenLoop::Drained OpenLoop::drain() {
  Drained drained;
  while (const auto call = sent_.pop())
    drained.sent.push_back(*call);
  while (const auto call = ended_.pop())
    drained.ended.push_back(*call);
  // The names are taken after the calls, so that the lists have every name of those calls.
  const std::lock_guard lock(mutex_);
  drained.endpoints = std::exchange(new_endpoints_, {});
  drained.messages = std::exchange(new_messages_, {});
  return drained;
}

std::int64_t OpenLoop::since_start(Clock::time_point time) const {
  return nanoseconds(time - begin_).count();
}

std::optional<OpenLoop::Clock::time_point> OpenLoop::next_due() {
  if (stopping_) return std::nullopt;
  const nanoseconds offset = schedule_.next();
  if (offset >= plan_.warmup + plan_.duration) return std::nullopt;
  return begin_ - plan_.warmup + offset;
}

std::optional<OpenLoop::BegunCall> OpenLoop::begin(Clock::time_point due, std::uint64_t number) {
  const auto now = Clock::now();
  const bool is_dropped = in_flight_ >= plan_.max_in_flight || now - due > plan_.call_timeout;
  const SentCall sent{
      .due_ns = since_start(due), .sent_ns = since_start(now), .is_dropped = is_dropped};
  while (!sent_.push(sent) && !cancelling_)
    std::this_thread::yield();
  if (is_dropped) return std::nullopt;
  BegunCall call{.due = due, .sent = now};
  if (!jars_.empty()) call.session = static_cast<std::int32_t>(number % jars_.size());
  call.is_closed_loop = closed_in_flight_ < plan_.closed_loop_callers;
  if (call.is_closed_loop) ++closed_in_flight_;
  ++in_flight_;
  return call;
}

EndedCall OpenLoop::ended_call(const BegunCall& call, int code) const {
  return {.due_ns = since_start(call.due),
          .sent_ns = since_start(call.sent),
          .ended_ns = since_start(Clock::now()),
          .session = call.session,
          .code = static_cast<std::uint16_t>(code),
          .is_closed_loop = call.is_closed_loop};
}

std::uint32_t OpenLoop::endpoint_of(const std::string& peer) {
  EndpointNumbers::Found found = endpoints_.find(peer);
  if (found.new_address) {
    const std::lock_guard lock(mutex_);
    new_endpoints_.push_back(*std::move(found.new_address));
  }
  return found.number;
}

std::uint32_t OpenLoop::message_of(absl::string_view code, absl::string_view why) {
  text_.clear();
  absl::StrAppend(&text_, code, ": ", why);
  const MessageCounts::Added added = messages_.add(text_);
  if (added.is_new) {
    const std::lock_guard lock(mutex_);
    new_messages_.push_back(text_);
  }
  return added.number;
}

void OpenLoop::record(const EndedCall& ended) {
  while (!ended_.push(ended) && !cancelling_)
    std::this_thread::yield();
}

void OpenLoop::leave(bool is_closed_loop) {
  if (is_closed_loop) --closed_in_flight_;
  --in_flight_;
}

}  // namespace signalbox::tools
