// SPDX-License-Identifier: Apache-2.0
#include "tests/orders/calls.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include "messages/invariant.hpp"

namespace signalbox::orders {
namespace {

PickResult ask(const lb::Snapshot& snapshot, const ClusterName& cluster) {
  PickArgs args;
  args.path = kPath;
  args.cluster = &cluster;
  return snapshot.picker->pick(args);
}

}  // namespace

bool Calls::is_older_read(std::uint64_t sequence) const {
  return std::ranges::any_of(calls_, [&](const Call& call) {
    return call.phase == CallPhase::kReading && call.reading->sequence < sequence;
  });
}

bool Calls::may_read(std::size_t call) const {
  const bool is_its_turn = call == 0 || calls_[call - 1].phase != CallPhase::kNotBegun;
  const bool is_routed = newest_ != nullptr && newest_->selector != nullptr;
  return is_routed && is_its_turn && calls_[call].phase == CallPhase::kNotBegun;
}

bool Calls::may_pick_again(std::size_t call) const {
  return calls_[call].phase == CallPhase::kWaiting && newest_->sequence > calls_[call].seen;
}

void Calls::read(std::size_t call) {
  calls_[call].phase = CallPhase::kReading;
  calls_[call].reading = newest_;
}

void Calls::choose(std::size_t call) {
  Call& one = calls_[call];
  const SnapshotPtr snapshot = std::exchange(one.reading, nullptr);
  one.ref = &choice_of(*snapshot);
  one.use = Use(*one.ref);
  pick(one, *snapshot);
  if (plant_ == Plant::kUseEndsWithThePick) one.use = Use();
}

void Calls::pick_again(std::size_t call) {
  if (plant_ == Plant::kPickAgainThrows) throw std::out_of_range("planted");
  pick(calls_[call], *newest_);
}

void Calls::pick(Call& call, const lb::Snapshot& snapshot) {
  call.seen = snapshot.sequence;
  const bool is_lost = plant_ == Plant::kCallIsDropped;
  const PickResult result = ask(snapshot, is_lost ? ClusterName("unknown") : call.ref->name());
  if (std::holds_alternative<Complete>(result.outcome)) {
    call.phase = CallPhase::kRunning;
  } else if (const auto* drop = std::get_if<Drop>(&result.outcome)) {
    throw BrokenInvariant("a call to cluster " + call.ref->name().str() +
                          " is dropped: " + std::string(drop->status.message()));
  } else {
    call.phase = CallPhase::kWaiting;
  }
}

void Calls::end(std::size_t call) {
  Call& one = calls_[call];
  one.phase = CallPhase::kEnded;
  one.ref = nullptr;
  if (plant_ == Plant::kUseIsNeverReleased) leaked_.push_back(std::move(one.use));
  one.use = Use();
}

std::int64_t Calls::holders_of(const lb::ClusterRef* ref) const {
  return std::ranges::count_if(calls_, [&](const Call& call) { return call.ref == ref; });
}

bool picker_knows(const lb::Snapshot& snapshot, const ClusterName& cluster) {
  if (snapshot.picker == nullptr) return false;
  const PickResult result = ask(snapshot, cluster);
  const auto* drop = std::get_if<Drop>(&result.outcome);
  return drop == nullptr || drop->status.code() != absl::StatusCode::kInternal;
}

const lb::ClusterRef& choice_of(const lb::Snapshot& snapshot) {
  PickArgs args;
  args.path = kPath;
  const auto chosen = snapshot.selector->select(args);
  const auto* selection = std::get_if<lb::Selection>(&chosen);
  SIGNALBOX_INVARIANT(selection != nullptr, "the selector routes every call");
  return *selection->cluster;
}

std::string endpoint_of(const lb::Snapshot& snapshot) {
  if (snapshot.picker == nullptr || snapshot.selector == nullptr) return "";
  const PickResult result = ask(snapshot, choice_of(snapshot).name());
  const auto* complete = std::get_if<Complete>(&result.outcome);
  return complete == nullptr ? "" : complete->connection->address().str();
}

}  // namespace signalbox::orders
