// SPDX-License-Identifier: Apache-2.0
#include "lb/router.hpp"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace signalbox::lb {
namespace {

// A54: codes that only a server may send. Coming from the control plane they would be mistaken for
// the application's own.
bool is_forbidden(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

absl::Status allowed(absl::Status status, absl::string_view source) {
  if (!is_forbidden(status.code())) return status;
  return absl::InternalError(absl::StrCat("status from ",
                                          source,
                                          " that calls must not see: ",
                                          absl::StatusCodeToString(status.code()),
                                          ": ",
                                          status.message()));
}

// A88: what is wrong with the configuration may be why a call fails; where nothing is, the text
// names the node at least.
void add_notes(absl::Status& status, const Snapshot& snapshot, const ClusterRef* cluster) {
  if (snapshot.notes == nullptr || !absl::IsUnavailable(status)) return;
  const ResolutionNotes& notes = *snapshot.notes;
  std::vector<absl::string_view> parts;
  const auto add = [&](absl::string_view part) {
    if (!part.empty() && !absl::StrContains(status.message(), part)) parts.push_back(part);
  };
  if (cluster != nullptr) {
    const auto found = notes.clusters.find(cluster->name());
    if (found != notes.clusters.end()) add(found->second);
  }
  add(notes.target);
  add(notes.node);
  if (parts.empty()) return;
  status =
      absl::UnavailableError(absl::StrCat(status.message(), " (", absl::StrJoin(parts, "; "), ")"));
}

constexpr absl::string_view kLoadBalancing = "load balancing";

}  // namespace

void Pick::refuse(PickOutcome outcome, absl::Status status, absl::string_view source) {
  outcome_ = outcome;
  status_ = allowed(std::move(status), source);
}

// A picker of the user's own may be wrong: the call pays for it, not the process. The gate comes
// last: a call that has entered it runs.
void Pick::complete(const Complete& chosen, const TrackerList& trackers) {
  if (chosen.connection == nullptr) {
    return refuse(
        PickOutcome::kDrop, absl::InternalError("a picker chose no connection"), kLoadBalancing);
  }
  const CallGate* const gate = trackers.gate();
  if (gate != nullptr && !gate->enter())
    return refuse(PickOutcome::kDrop, gate->refuse(), kLoadBalancing);
  outcome_ = PickOutcome::kComplete;
  connection_ = Use(*chosen.connection, chosen.uses);
  tracking_.begin(trackers);
}

// In place: what a pick holds is not moved, and what it does not hold costs nothing.
void Pick::ask(const Snapshot& snapshot, const PickArgs& args) {
  if (snapshot.picker == nullptr) return fail_without(snapshot);
  PickResult result = snapshot.picker->pick(args);
  if (result.ask && result.ask_target != nullptr) result.ask_target->tell(*result.ask);
  if (const auto* chosen = std::get_if<Complete>(&result.outcome)) {
    complete(*chosen, result.trackers);
  } else if (auto* fail = std::get_if<Fail>(&result.outcome)) {
    refuse(PickOutcome::kFail, std::move(fail->status), kLoadBalancing);
  } else if (auto* drop = std::get_if<Drop>(&result.outcome)) {
    refuse(PickOutcome::kDrop, std::move(drop->status), kLoadBalancing);
  }
}

// Without a failure it waits for a configuration.
void Pick::fail_without(const Snapshot& snapshot) {
  if (!snapshot.failure.ok()) refuse(PickOutcome::kFail, snapshot.failure, "name resolution");
}

Pick Router::pick(const CallArgs& call) const {
  Pick pick;
  repick(pick, call);
  return pick;
}

void Router::repick(Pick& pick, const CallArgs& call) const {
  pick.put_off();  // What it held is not to stand in its own way.
  pick.outcome_ = PickOutcome::kQueue;
  pick.status_ = absl::OkStatus();
  const SnapshotCell::Reader snapshot(*cell_);
  __builtin_prefetch(snapshot->picker.get());  // Asked last, and it is known already.
  pick.sequence_ = snapshot->sequence;
  Selection selected{.cluster = pick.cluster(), .hash = pick.hash_};
  const bool is_new = selected.cluster == nullptr;
  if (is_new) selected = route(*snapshot, call, pick);
  const ClusterRef* const cluster = selected.cluster;
  if (cluster == nullptr) return;

  // Counting waits for all that is under way before it. So it is done last, on lines that were
  // asked for while the picker is busy.
  cluster->use_counter().prefetch();
  cluster->stats().prefetch();
  pick.ask(*snapshot,
           {.path = call.path,
            .headers = call.headers,
            .cluster = &cluster->name(),
            .seed = call.seed,
            .hash = selected.hash,
            .cluster_place = selected.place});
  // All references are taken inside the read section: once it has ended, nothing else keeps the
  // cluster and the connection alive (A31-13).
  if (is_new) pick.cluster_ = Use(*cluster);
  if (!pick.status_.ok()) add_notes(pick.status_, *snapshot, cluster);
  cluster->stats().count_pick(pick.outcome_);
}

Selection Router::route(const Snapshot& snapshot, const CallArgs& call, Pick& pick) const {
  if (snapshot.selector == nullptr) {
    pick.fail_without(snapshot);
    add_notes(pick.status_, snapshot, nullptr);
    return {};
  }
  auto selected = snapshot.selector->select({call.path, call.headers, nullptr, call.seed});
  if (auto* status = std::get_if<absl::Status>(&selected)) {
    // A31-6: the call ends with it; waiting would not help even one that is wait_for_ready.
    pick.refuse(PickOutcome::kDrop, std::move(*status), "routing");
    add_notes(pick.status_, snapshot, nullptr);
    return {};
  }
  const auto& selection = std::get<Selection>(selected);
  pick.timeout_ = selection.timeout;
  pick.hash_ = selection.hash;
  return selection;
}

std::uint64_t Router::sequence() const {
  return SnapshotCell::Reader(*cell_)->sequence;
}

}  // namespace signalbox::lb
