// SPDX-License-Identifier: Apache-2.0
#include "tools/call_log.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "messages/invariant.hpp"

namespace signalbox::tools {
namespace {

constexpr int kUnavailable = 14;

void count(const FinishedCall& call, CallCounts& counts) {
  if (!call.ok) ++counts.failed;
  if (call.is_of_session) return;
  ++counts.calls;
  if (!call.ok) return;
  ++counts.per_cluster[call.cluster];
  const std::chrono::nanoseconds took = call.ended - call.due;
  counts.latency.record(static_cast<std::uint64_t>(std::max<std::int64_t>(0, took.count())));
}

}  // namespace

CallLog::CallLog(std::vector<std::string> leaves) : leaves_(std::move(leaves)) {
  SIGNALBOX_INVARIANT(leaves_.size() >= 2, "there is a cluster to fail over to");
}

void CallLog::add(const FinishedCall& call) {
  count(call, totals_);
  count(call, interval_);
  const bool in_flight = was_in_flight_at_a_kill(call);
  if (in_flight) ++in_flight_at_kill_;
  if (call.ok) {
    record_answer(call);
  } else if (in_flight && call.code == kUnavailable) {
    ++failed_in_flight_;
  } else if (++failed_other_ == 1) {
    first_other_error_ =
        absl::StrCat(call.error, " (endpoint ", call.address.empty() ? "none" : call.address, ")");
  }
}

void CallLog::kill_begins(CallTime now, const std::set<std::string>& addresses) {
  kills_.push_back({.begun = now, .ended = std::nullopt, .addresses = addresses});
}

void CallLog::kill_ended(CallTime now) {
  SIGNALBOX_INVARIANT(!kills_.empty(), "a kill ends after it has begun");
  kills_.back().ended = now;
}

void CallLog::primary_back(CallTime now) {
  if (!primary_back_) primary_back_ = now;
}

CallCounts CallLog::take_interval() {
  return std::exchange(interval_, {});
}

std::optional<std::chrono::nanoseconds> CallLog::failover() const {
  if (!failed_over_) return std::nullopt;
  return *failed_over_ - kills_.front().begun;
}

std::optional<std::chrono::nanoseconds> CallLog::failback() const {
  if (!primary_back_ || !failed_back_) return std::nullopt;
  // The backend may answer before the script reads that it is ready.
  return std::max(std::chrono::nanoseconds(0),
                  std::chrono::nanoseconds(*failed_back_ - *primary_back_));
}

bool CallLog::was_in_flight_at_a_kill(const FinishedCall& call) const {
  return std::any_of(kills_.begin(), kills_.end(), [&](const Kill& kill) {
    const bool began_in_time = !kill.ended || call.started <= *kill.ended + kNoticeTime;
    return began_in_time && call.ended >= kill.begun && kill.addresses.contains(call.address);
  });
}

void CallLog::record_answer(const FinishedCall& call) {
  if (kills_.empty()) return;
  if (call.cluster == leaves_[1] && !failed_over_) failed_over_ = call.ended;
  // A call that began before the kill had ended may have reached the dying backend, so its answer
  // is no failback.
  const Kill& first = kills_.front();
  const bool is_return = first.ended && call.started > *first.ended;
  if (call.cluster == leaves_[0] && is_return && !failed_back_) failed_back_ = call.ended;
}

}  // namespace signalbox::tools
