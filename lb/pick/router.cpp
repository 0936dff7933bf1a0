// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/router.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include "lb/session/foresight.hpp"
#include "lb/trace.hpp"

namespace signalbox::lb {
namespace {

// A54: only servers may send these codes. A call that ended with such a code from the control plane
// would look as if the server's application had chosen the code.
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

// Cuts `reason` to at most kLongestReason bytes, never within a UTF-8 character, and marks the cut.
std::string cut(absl::string_view reason) {
  if (reason.size() <= Router::kLongestReason) return std::string(reason);
  std::size_t end = Router::kLongestReason;
  while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0U) == 0x80U)
    --end;  // A later byte of a UTF-8 character.
  return absl::StrCat(reason.substr(0, end), " […]");
}

// Whether the text begins with `subject`, and ":" or " " follows: "cluster c: …", "cluster c was
// deleted".
bool begins_with(absl::string_view text, absl::string_view subject) {
  if (!absl::ConsumePrefix(&text, subject)) return false;
  return absl::StartsWith(text, ":") || absl::StartsWith(text, " ");
}

constexpr absl::string_view kLoadBalancing = "load balancing";

template <typename Sink>
void tell_missing(const Snapshot& snapshot, const Sink& sink) {
  sink.tell([&] {
    const bool waits = snapshot.failure.ok();
    return PickStep{"router",
                    waits ? "the call waits" : "the call fails, or waits if wait_for_ready",
                    waits ? std::string("there is no configuration yet")
                          : std::string(snapshot.failure.message()),
                    ""};
  });
}

std::variant<Selection, absl::Status> select(const ConfigSelector& selector,
                                             const PickArgs& args,
                                             const Silent& /*sink*/) {
  return selector.select(args);
}

std::variant<Selection, absl::Status> select(const ConfigSelector& selector,
                                             const PickArgs& args,
                                             const Telling& sink) {
  return selector.explain(args, sink.trace());
}

FilterVerdict ask_filters(const PickArgs& args,
                          Selection& selection,
                          const SessionTerms& terms,
                          const Silent& /*sink*/) {
  return apply_filters(args, selection, terms);
}

FilterVerdict ask_filters(const PickArgs& args,
                          Selection& selection,
                          const SessionTerms& terms,
                          const Telling& sink) {
  return explain_filters(args, selection, terms, sink.trace());
}

}  // namespace

void Pick::refuse(PickOutcome outcome, absl::Status status, absl::string_view source) {
  outcome_ = outcome;
  status_ = allowed(std::move(status), source);
}

// Makes the outcome kComplete, and takes references to the connection and the leaf. If the picker
// chose no connection, or the limit of calls in flight (the gate) is reached, the call is dropped
// instead. The gate is entered after all checks, so it never has to be left again. An
// explanation does not enter the gate, and only reads whether it is full.
template <typename Sink>
void Pick::complete(const Complete& chosen, const PickResult& result, const Sink& sink) {
  if (chosen.connection == nullptr) [[unlikely]] {
    return refuse(
        PickOutcome::kDrop, absl::InternalError("a picker chose no connection"), kLoadBalancing);
  }
  const CallGate* const gate = result.trackers.gate();
  if constexpr (Sink::kTells) {
    if (gate != nullptr && gate->is_full()) {
      const auto full =
          absl::UnavailableError(absl::StrCat(gate->limit(), " calls in flight, the limit"));
      return refuse(PickOutcome::kDrop, full, kLoadBalancing);
    }
  } else {
    if (gate != nullptr && !gate->enter()) [[unlikely]]
      return refuse(PickOutcome::kDrop, gate->refuse(), kLoadBalancing);
  }
  outcome_ = PickOutcome::kComplete;
  connection_ = Use(*chosen.connection, chosen.uses);
  if (result.leaf != nullptr) leaf_ = Use(*result.leaf);
  sink.leave([&] { tracking_.begin(result.trackers); });
}

// Applies the filters' decision about the call. Returns true if no pick may be made: the call is
// delayed, or a filter has ended it.
bool Pick::is_held_back() {
  if (filtered_->delay > Duration::zero()) return true;
  if (!filtered_->end) return false;
  // A54 "purposefully does not limit interceptors": any code may be injected.
  outcome_ = PickOutcome::kDrop;
  status_ = *filtered_->end;
  return true;
}

// Asks the picker. Writes the result into this Pick, so that no Pick has to be moved.
template <typename Sink>
Pick::Answer Pick::ask(const Snapshot& snapshot,
                       const PickArgs& args,
                       std::string* authority,
                       const Sink& sink) {
  if (snapshot.picker == nullptr) [[unlikely]] {
    fail_without(snapshot);
    tell_missing(snapshot, sink);
    return {};
  }
  PickResult result = sink.ask(*snapshot.picker, args);
  sink.leave([&] {
    if (result.ask && result.ask_target != nullptr) result.ask_target->tell(*result.ask);
  });
  if (const auto* chosen = std::get_if<Complete>(&result.outcome)) [[likely]] {
    complete(*chosen, result, sink);
    if (authority != nullptr && chosen->endpoint != nullptr &&
        chosen->endpoint->endpoint != nullptr)
      *authority = chosen->endpoint->endpoint->hostname;
    return {result.affinity, result.leaf, chosen->zone};
  }
  priority_ = result.priority;
  if (auto* fail = std::get_if<Fail>(&result.outcome)) {
    refuse(PickOutcome::kFail, std::move(fail->status), kLoadBalancing);
  } else if (auto* drop = std::get_if<Drop>(&result.outcome)) {
    refuse(PickOutcome::kDrop, std::move(drop->status), kLoadBalancing);
  }
  return {result.affinity, result.leaf};
}

const std::string& Pick::set_cookie() const {
  static const std::string none;
  return session_ != nullptr ? session_->set_cookie() : none;
}

// Handles a snapshot without a selector or picker. The call fails with the snapshot's failure; if
// that is OK, the call waits for a configuration.
void Pick::fail_without(const Snapshot& snapshot) {
  if (!snapshot.failure.ok()) refuse(PickOutcome::kFail, snapshot.failure, "name resolution");
}

Router::Router(std::shared_ptr<const SnapshotCell> cell, CallerNames names, SessionsPtr sessions)
    : cell_(std::move(cell)), names_(std::move(names)), sessions_(std::move(sessions)) {
  if (sessions_ == nullptr)
    sessions_ = std::make_shared<const Sessions>(SessionTerms{.target = names_.target});
}

Pick Router::pick(const CallArgs& call) const {
  Pick pick;
  repick(pick, call);
  return pick;
}

void Router::repick(Pick& pick, const CallArgs& call) const {
  look(pick, call, Silent{});
  if (pick.session_ != nullptr) sessions_->tell_flaw(*pick.session_);
}

Explanation Router::explain(const CallArgs& call, Instant now, Turns turns) const {
  const SnapshotCell::Reader whole(*cell_);  // Keeps the snapshot alive while `pick` is read below.
  Explanation explanation;
  TimedTrace trace(
      now, [&](PickStep step) { explanation.steps.push_back(std::move(step)); }, turns);
  const Telling sink{trace};
  Pick pick;
  look(pick, call, sink);
  if (pick.delay() > Duration::zero()) {
    explanation.delay = pick.delay();
    pick.end_delay();
    look(pick, call, sink);
  }
  explanation.outcome = pick.outcome();
  if (pick.cluster() != nullptr) explanation.cluster = pick.cluster()->name().str();
  if (pick.leaf() != nullptr) explanation.leaf = pick.leaf()->leaf().str();
  if (pick.connection() != nullptr) explanation.address = pick.connection()->address().str();
  explanation.status = pick.status();
  return explanation;
}

template <typename Sink>
void Router::look(Pick& pick, const CallArgs& call, const Sink& sink) const {
  if (pick.delay() > Duration::zero()) return;
  pick.put_off();  // Otherwise the references of the previous pick would count against the limits.
  pick.outcome_ = PickOutcome::kQueue;
  pick.priority_ = PickResult::kNoPriority;
  pick.is_put_off_ = false;
  pick.status_ = absl::OkStatus();
  const SnapshotCell::Reader snapshot(*cell_);
  __builtin_prefetch(snapshot->picker.get());  // Now, because the picker is used late.
  pick.sequence_ = snapshot->sequence;
  if (call.authority != nullptr) call.authority->clear();
  const bool is_new = pick.cluster() == nullptr;
  const bool may_lead =
      is_new && !Sink::kTells && snapshot->sessions.is_known() && call.headers != nullptr;
  const Foresight foresight = may_lead ? foresee(snapshot->sessions, *call.headers) : Foresight();
  const Selection selected = is_new ? route(*snapshot, call, foresight, pick, sink)
                                    : Selection{.cluster = pick.cluster(), .hash = pick.hash()};
  const ClusterRef* const cluster = selected.cluster;
  if (cluster == nullptr) [[unlikely]]
    return;

  // An atomic increment of a counter (striped.hpp) would wait for all earlier memory accesses. So
  // calls are counted last, and the counters are prefetched while the picker works.
  cluster->use_counter().prefetch();
  const CallStats* stats = cluster->stats();
  if (stats != nullptr) stats->prefetch();
  CallZone zone = CallZone::kUnknown;
  const Filtered* const filtered = pick.filtered_.get();
  const FilteredHeaders headers(call.headers, filtered);
  Session* const session = pick.session_.get();
  if (filtered == nullptr || !pick.is_held_back()) [[likely]] {
    const SessionArgs wish =
        session != nullptr ? wish_of(*sessions_, *session, foresight.seat) : SessionArgs();
    const auto answer = pick.ask(*snapshot,
                                 {.path = call.path,
                                  .headers = filtered != nullptr ? &headers : call.headers,
                                  .cluster = &cluster->name(),
                                  .seed = call.seed,
                                  .hash = selected.hash,
                                  .cluster_place = selected.place,
                                  .session = session != nullptr ? &wish : nullptr,
                                  .tried = call.tried},
                                 pick.auto_host_rewrite_ ? call.authority : nullptr,
                                 sink);
    if (answer.leaf != nullptr) stats = answer.leaf->stats();
    zone = answer.zone;
    if (session != nullptr)
      sink.leave([&] { settle(*session, answer.affinity, pick.outcome_, cluster->name(), stats); });
  } else if (session != nullptr) {
    session->keep();
  }
  // All references must be taken inside the read section. After it, nothing else is sure to keep
  // the cluster and the connection alive (A31-13).
  if (is_new) pick.cluster_ = Use(*cluster);
  if (!pick.status_.ok()) [[unlikely]]
    pick.status_ = describe(pick.status_, cluster, *snapshot);
  if (stats != nullptr) sink.leave([&] { stats->count_pick(pick.outcome_, zone); });
}

template <typename Sink>
Selection Router::route(const Snapshot& snapshot,
                        const CallArgs& call,
                        const Foresight& foresight,
                        Pick& pick,
                        const Sink& sink) const {
  const PickArgs args{call.path, call.headers, nullptr, call.seed};
  if (snapshot.selector == nullptr) [[unlikely]] {
    pick.fail_without(snapshot);
    tell_missing(snapshot, sink);
    if (!pick.status_.ok()) pick.status_ = describe(pick.status_, nullptr, snapshot);
    return {};
  }
  auto selected = select(*snapshot.selector, args, sink);
  if (auto* status = std::get_if<absl::Status>(&selected)) [[unlikely]] {
    // A31-6: the call ends with this status; waiting would not help even a wait_for_ready call.
    pick.refuse(PickOutcome::kDrop, std::move(*status), "routing");
    pick.status_ = describe(pick.status_, nullptr, snapshot);
    return {};
  }
  auto& selection = std::get<Selection>(selected);
  foresight.prefetch_marks();
  pick.has_timeout_ = selection.timeout.has_value();
  pick.timeout_ = selection.timeout.value_or(Duration::zero());
  pick.has_hash_ = selection.hash.has_value();
  pick.hash_ = selection.hash.value_or(0);
  pick.auto_host_rewrite_ = selection.auto_host_rewrite;
  if (selection.retry != nullptr) pick.retry_ = *selection.retry;
  // Filters run before the cluster's reference is taken, because a filter may choose another of the
  // route's clusters (A60).
  if (selection.filters == nullptr) return selection;
  const StatefulSession* const session = selection.filters->only_session;
  if (session != nullptr && foresight.cookie && selection.choices.size() == 1) [[likely]] {
    pick.session_ = begin_session(*sessions_, *session, call.path, foresight);
  } else {
    FilterVerdict verdict = ask_filters(args, selection, sessions_->terms(), sink);
    pick.filtered_ = std::move(verdict.filtered);
    pick.session_ = std::move(verdict.session);
  }
  return selection;
}

absl::Status Router::describe(const absl::Status& why, const ClusterRef* cluster) const {
  return describe(why, cluster, *SnapshotCell::Reader(*cell_));
}

absl::Status Router::describe(const absl::Status& why,
                              const ClusterRef* cluster,
                              const Snapshot& snapshot) const {
  static const ResolutionNotes none;
  const ResolutionNotes& notes = snapshot.notes == nullptr ? none : *snapshot.notes;
  const std::string node =
      names_.node_id.empty() ? notes.node : absl::StrCat("node ID: ", names_.node_id);
  // A text from a resolver, or one that describe() has made before, may already name the target and
  // the node. Both names are removed here and added once below. If the text ends with "(…; node)",
  // the new details go into that bracket.
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
