// SPDX-License-Identifier: Apache-2.0
#include "lb/router.hpp"

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "messages/overloaded.hpp"

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

// What became of one question, before the references are taken.
struct Answer {
  PickOutcome outcome = PickOutcome::kQueue;
  Complete complete;  // In kComplete.
  absl::Status status;
  TrackerList trackers;  // Of `complete`.
};

Answer without(const absl::Status& failure) {
  if (failure.ok()) return {};
  return {PickOutcome::kFail, {}, allowed(failure, "name resolution"), {}};
}

Answer refused(PickOutcome outcome, absl::Status status) {
  return {outcome, {}, allowed(std::move(status), "load balancing"), {}};
}

// A picker of the user's own may be wrong: the call pays for it, not the process. The gate comes
// last: a call that has entered it runs.
Answer completed(const Complete& complete, const TrackerList& trackers) {
  if (complete.connection == nullptr)
    return refused(PickOutcome::kDrop, absl::InternalError("a picker chose no connection"));
  const CallGate* const gate = trackers.gate();
  if (gate != nullptr && !gate->enter()) return refused(PickOutcome::kDrop, gate->refuse());
  return {PickOutcome::kComplete, complete, {}, trackers};
}

// What filters said comes first; nullopt: nothing that stands in the way of a pick.
std::optional<Answer> held_back(const Filtered* filtered) {
  if (filtered == nullptr) return std::nullopt;
  if (filtered->delay > Duration::zero()) return Answer{};
  if (!filtered->end) return std::nullopt;
  // A54 "purposefully does not limit interceptors": any code may be injected.
  return Answer{PickOutcome::kDrop, {}, *filtered->end, {}};
}

Answer ask(const Snapshot& snapshot, const PickArgs& args) {
  if (snapshot.picker == nullptr) return without(snapshot.failure);
  PickResult result = snapshot.picker->pick(args);
  if (result.ask && result.ask_target != nullptr) result.ask_target->tell(*result.ask);
  return std::visit(
      Overloaded{
          [&](const Complete& complete) { return completed(complete, result.trackers); },
          [](const Queue&) { return Answer{}; },
          [&](Fail& fail) { return refused(PickOutcome::kFail, std::move(fail.status)); },
          [&](Drop& drop) { return refused(PickOutcome::kDrop, std::move(drop.status)); },
      },
      result.outcome);
}

}  // namespace

Pick Router::pick(const CallArgs& call) const {
  Pick pick;
  repick(pick, call);
  return pick;
}

void Router::repick(Pick& pick, const CallArgs& call) const {
  if (pick.delay() > Duration::zero()) return;
  pick.put_off();  // What it held is not to stand in its own way.
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
  const Filtered* const filtered = pick.filtered_.get();
  const FilteredHeaders headers(call.headers, filtered);
  std::optional<Answer> of_filters = held_back(filtered);
  Answer answer = of_filters ? *std::move(of_filters)
                             : ask(*snapshot,
                                   {.path = call.path,
                                    .headers = filtered != nullptr ? &headers : call.headers,
                                    .cluster = &cluster->name(),
                                    .seed = call.seed,
                                    .hash = selected.hash,
                                    .cluster_place = selected.place});
  // Both references are taken inside the read section: once it has ended, nothing else keeps the
  // cluster and the connection alive (A31-13).
  if (is_new) pick.cluster_ = Use(*cluster);
  const Complete& complete = answer.complete;
  pick.connection_ =
      complete.connection != nullptr ? Use(*complete.connection, complete.uses) : Use();
  pick.tracking_ = Tracking(answer.trackers);
  pick.outcome_ = answer.outcome;
  pick.status_ = std::move(answer.status);
  const bool was_ended = filtered != nullptr && filtered->end;
  if (!pick.status_.ok() && !was_ended) add_notes(pick.status_, *snapshot, cluster);
  cluster->stats().count_pick(answer.outcome);
}

Selection Router::route(const Snapshot& snapshot, const CallArgs& call, Pick& pick) const {
  if (snapshot.selector == nullptr) {
    Answer answer = without(snapshot.failure);
    pick.outcome_ = answer.outcome;
    pick.status_ = std::move(answer.status);
    add_notes(pick.status_, snapshot, nullptr);
    return {};
  }
  auto selected = snapshot.selector->select({call.path, call.headers, nullptr, call.seed});
  if (auto* status = std::get_if<absl::Status>(&selected)) {
    // A31-6: the call ends with it; waiting would not help even one that is wait_for_ready.
    pick.outcome_ = PickOutcome::kDrop;
    pick.status_ = allowed(std::move(*status), "routing");
    add_notes(pick.status_, snapshot, nullptr);
    return {};
  }
  auto& selection = std::get<Selection>(selected);
  pick.timeout_ = selection.timeout;
  pick.hash_ = selection.hash;
  // Before the cluster's reference is taken: they may change it (A60).
  if (selection.filters != nullptr)
    pick.filtered_ = apply_filters({call.path, call.headers, nullptr, call.seed}, selection);
  return selection;
}

std::uint64_t Router::sequence() const {
  return SnapshotCell::Reader(*cell_)->sequence;
}

}  // namespace signalbox::lb
