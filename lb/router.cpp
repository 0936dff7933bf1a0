// SPDX-License-Identifier: Apache-2.0
#include "lb/router.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

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

// At most so many bytes, and no half character at the end.
std::string cut(absl::string_view reason) {
  if (reason.size() <= Router::kLongestReason) return std::string(reason);
  std::size_t end = Router::kLongestReason;
  while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0U) == 0x80U)
    --end;  // A later byte of a character in UTF-8.
  return absl::StrCat(reason.substr(0, end), " […]");
}

// Whether the text has the cluster for its subject: "cluster c: …", "cluster c was deleted".
bool begins_with(absl::string_view text, absl::string_view subject) {
  if (!absl::ConsumePrefix(&text, subject)) return false;
  return absl::StartsWith(text, ":") || absl::StartsWith(text, " ");
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
  Answer answer = ask(*snapshot,
                      {.path = call.path,
                       .headers = call.headers,
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
  if (!pick.status_.ok()) pick.status_ = explain(pick.status_, cluster, *snapshot);
  cluster->stats().count_pick(answer.outcome);
}

Selection Router::route(const Snapshot& snapshot, const CallArgs& call, Pick& pick) const {
  if (snapshot.selector == nullptr) {
    Answer answer = without(snapshot.failure);
    pick.outcome_ = answer.outcome;
    if (!answer.status.ok()) pick.status_ = explain(answer.status, nullptr, snapshot);
    return {};
  }
  auto selected = snapshot.selector->select({call.path, call.headers, nullptr, call.seed});
  if (auto* status = std::get_if<absl::Status>(&selected)) {
    // A31-6: the call ends with it; waiting would not help even one that is wait_for_ready.
    pick.outcome_ = PickOutcome::kDrop;
    pick.status_ = explain(allowed(std::move(*status), "routing"), nullptr, snapshot);
    return {};
  }
  const auto& selection = std::get<Selection>(selected);
  pick.timeout_ = selection.timeout;
  pick.hash_ = selection.hash;
  return selection;
}

absl::Status Router::explain(const absl::Status& why, const ClusterRef* cluster) const {
  return explain(why, cluster, *SnapshotCell::Reader(*cell_));
}

absl::Status Router::explain(const absl::Status& why,
                             const ClusterRef* cluster,
                             const Snapshot& snapshot) const {
  static const ResolutionNotes kNone;
  const ResolutionNotes& notes = snapshot.notes == nullptr ? kNone : *snapshot.notes;
  const std::string node =
      names_.node_id.empty() ? notes.node : absl::StrCat("node ID: ", names_.node_id);
  // Resolvers name target and node themselves, and so does a text that was explained before: its
  // brackets are opened again.
  std::string text = cut(why.message());
  if (!names_.target.empty()) text = absl::StrReplaceAll(text, {{names_.target + ": ", ""}});
  absl::string_view opening = " (";
  if (!node.empty()) {
    if (absl::EndsWith(text, absl::StrCat("; ", node, ")"))) {
      text.resize(text.size() - node.size() - 3);
      opening = "; ";
    }
    text = absl::StrReplaceAll(
        text, {{absl::StrCat(" (", node, ")"), ""}, {absl::StrCat("; ", node, ")"), ")"}});
  }
  std::vector<absl::string_view> details;
  const auto add = [&](absl::string_view detail) {
    if (!detail.empty() && !absl::StrContains(text, detail)) details.push_back(detail);
  };
  if (absl::IsUnavailable(why) || absl::IsDeadlineExceeded(why)) {
    const auto found =
        cluster == nullptr ? notes.clusters.end() : notes.clusters.find(cluster->name());
    if (found != notes.clusters.end()) add(found->second);
    add(notes.target);
  }
  if (!node.empty()) details.push_back(node);
  std::string subject = names_.target.empty() ? "" : absl::StrCat(names_.target, ": ");
  if (cluster != nullptr) {
    const std::string name = absl::StrCat("cluster ", cluster->name().str());
    text = absl::StrReplaceAll(text, {{absl::StrCat(": ", name, ": "), ": "}});
    if (!begins_with(text, name)) absl::StrAppend(&subject, name, ": ");
  }
  const std::string brackets =
      details.empty() ? "" : absl::StrCat(opening, absl::StrJoin(details, "; "), ")");
  return {why.code(), absl::StrCat(subject, text, brackets)};
}

std::uint64_t Router::sequence() const {
  return SnapshotCell::Reader(*cell_)->sequence;
}

}  // namespace signalbox::lb
