// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/ledger.hpp"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "tests/stress/topology.hpp"

namespace signalbox::stress {
namespace {

constexpr std::size_t kEnough = 50;

// gRPC converts a deadline between clocks, and sends it to the server, by reading two clocks one
// after the other. A thread that is preempted between the two readings makes the deadline earlier.
// The deadline may be earlier by 1/200 of the slack: by 150 ms with a slack of 30 s.
constexpr int kEarlyPartOfSlack = 200;

// A call that begins at most this long after a backend's stop may still end because of the stop.
constexpr milliseconds kAftermath{1'000};

std::string name_of(grpc::StatusCode code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

}  // namespace

void Ledger::begin(const Plan& plan) {
  const std::lock_guard lock(mutex_);
  open_.emplace(plan.id, Entry{plan, Clock::now()});
}

std::vector<Ledger::Entry> Ledger::cross_out(const Plan& plan) {
  const auto found = open_.find(plan.id);
  if (found == open_.end()) return {};
  std::vector<Entry> entry{found->second};
  open_.erase(found);
  ended_one_.notify_all();
  return entry;
}

void Ledger::end(const Plan& plan,
                 const grpc::Status& status,
                 bool whole,
                 const std::string& origin) {
  std::vector<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    entry = cross_out(plan);
    ++ended_[to_string(plan.api)][name_of(status.error_code())];
  }
  const std::string wrong =
      entry.empty() ? "ended twice" : wrong_with(entry.front(), status, whole);
  if (wrong.empty()) return;
  report(absl::StrCat(plan.to_string(),
                      ": ",
                      wrong,
                      ": ",
                      name_of(status.error_code()),
                      " '",
                      status.error_message(),
                      "' ",
                      origin));
}

void Ledger::abandon(const Plan& plan) {
  const std::lock_guard lock(mutex_);
  cross_out(plan);
  ++ended_[to_string(plan.api)]["abandoned"];
}

std::string Ledger::wrong_with(const Entry& entry, const grpc::Status& status, bool whole) const {
  const Plan& plan = entry.plan;
  const auto now = Clock::now();
  if (now > entry.begun + std::max(plan.deadline, milliseconds(0)) + slack_) return "ended late";
  const auto limit =
      entry.begun + std::min(plan.deadline, kRouteTimeout) - slack_ / kEarlyPartOfSlack;
  const auto stopped = Clock::time_point(Clock::duration(last_stop_.load()));
  const bool cancelled = plan.cancel_first || plan.cancel_after.has_value();
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      if (plan.status != 0) return "OK, where the server said otherwise";
      return whole ? "" : "OK without the whole answer";
    case grpc::StatusCode::CANCELLED:
      return cancelled || stopped > entry.begun - kAftermath ? "" : "nobody cancelled it";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      if (now >= limit) return "";
      return absl::StrCat("before its time, after ",
                          std::chrono::duration_cast<milliseconds>(now - entry.begun).count(),
                          " ms");
    case grpc::StatusCode::UNAVAILABLE:
      return "";
    default:
      return static_cast<int>(status.error_code()) == plan.status ? "" : "an unexpected status";
  }
}

void Ledger::report(std::string sentence) {
  const std::lock_guard lock(mutex_);
  if (broken_.size() < kEnough) broken_.push_back(std::move(sentence));
}

std::size_t Ledger::open() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

void Ledger::wait_for_room(std::size_t calls) const {
  std::unique_lock lock(mutex_);
  ended_one_.wait_for(lock, milliseconds(20), [&] { return open_.size() <= calls; });
}

bool Ledger::find_overdue() {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  bool found = false;
  for (const auto& [id, entry] : open_) {
    const auto limit = entry.begun + std::max(entry.plan.deadline, milliseconds(0)) + slack_;
    if (now <= limit) continue;
    found = true;
    if (broken_.size() < kEnough)
      broken_.push_back(absl::StrCat(entry.plan.to_string(), ": has not ended"));
  }
  return found;
}

std::vector<std::string> Ledger::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

std::string Ledger::totals() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [api, codes] : ended_) {
    absl::StrAppend(&text, api, ":");
    for (const auto& [code, count] : codes)
      absl::StrAppend(&text, " ", code, " ", count);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace signalbox::stress
