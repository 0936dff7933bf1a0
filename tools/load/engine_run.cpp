// SPDX-License-Identifier: Apache-2.0
#include "tools/load/engine_run.hpp"

#include <optional>
#include <utility>

#include "tools/load/call_code.hpp"

namespace signalbox::tools {
namespace {

using std::chrono::nanoseconds;

constexpr auto kRound = std::chrono::milliseconds(10);
constexpr auto kLastAnswers = std::chrono::seconds(2);  // Time after the last call's deadline.

}  // namespace

EngineRun::EngineRun(std::unique_ptr<OpenLoop> engine, Clock::time_point begin, Take take)
    : engine_(std::move(engine)),
      measured_(begin + engine_->plan().warmup),
      take_(std::move(take)) {
  engine_->start(begin);
  thread_ = std::thread([this] { run(); });
}

EngineRun::~EngineRun() {
  finish();
}

bool EngineRun::finish() {
  is_finishing_ = true;
  engine_->stop();
  if (thread_.joinable()) thread_.join();
  return is_whole_;
}

void EngineRun::run() {
  std::optional<Clock::time_point> last;
  for (;;) {
    // Asked before the rings are emptied: once it is true, no further call comes into the rings.
    const bool is_done = engine_->is_done();
    take_drained();
    if (is_finishing_ && !last) last = Clock::now() + engine_->plan().call_timeout + kLastAnswers;
    if (is_done || (last && Clock::now() > *last)) {
      is_whole_ = is_done;
      return;
    }
    std::this_thread::sleep_for(kRound);
  }
}

void EngineRun::take_drained() {
  const OpenLoop::Drained drained = engine_->drain();
  addresses_.insert(addresses_.end(), drained.endpoints.begin(), drained.endpoints.end());
  messages_.insert(messages_.end(), drained.messages.begin(), drained.messages.end());
  take_(*this, drained);
  taking_cpu_ = thread_cpu();
}

NamedCall EngineRun::named(const EndedCall& call) const {
  return {.due = measured_ + nanoseconds(call.due_ns),
          .sent = measured_ + nanoseconds(call.sent_ns),
          .ended = measured_ + nanoseconds(call.ended_ns),
          .code = call.code,
          .ok = !is_failure(call.code),
          .is_closed_loop = call.is_closed_loop,
          .address = addresses_[call.endpoint],
          .message = messages_[call.message]};
}

}  // namespace signalbox::tools
