// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/petiole.hpp"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/health/host_count.hpp"
#include "lb/trace.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

// The most endpoints that an explanation names as not READY.
constexpr std::size_t kMostAbsent = 20;

// The name of pace_'s timer. No timer of a PickFirst has this name (PickFirst::address_of).
constexpr char kPaceTimer[] = "picker";

class AbsentNote final : public PickNote {
 public:
  AbsentNote(absl::string_view policy, std::vector<AbsentEndpoint> absent, std::size_t all)
      : policy_(policy), absent_(std::move(absent)), all_(all) {}

  void tell(const PickArgs& /*args*/, PickTrace& trace) const override {
    for (const AbsentEndpoint& one : absent_) {
      std::string why(to_string(one.state));
      if (!one.status.ok()) absl::StrAppend(&why, ": ", one.status.message());
      trace.tell({std::string(policy_), "not " + shown(*one.endpoint, one.locality), why, "EDS"});
    }
    if (all_ > absent_.size()) {
      trace.tell({std::string(policy_),
                  absl::StrCat("nor ", all_ - absent_.size(), " others"),
                  "they are not READY either",
                  "EDS"});
    }
  }

 private:
  const absl::string_view policy_;
  const std::vector<AbsentEndpoint> absent_;
  const std::size_t all_;
};

}  // namespace

Petiole::Petiole(absl::string_view name,
                 PolicyContext context,
                 EndpointSet::Connects connects,
                 EndpointSet::MakeCounter make_counter)
    : name_(name),
      context_(std::move(context)),
      endpoints_(connects,
                 context_.options.connection_attempt_delay,
                 std::move(make_counter),
                 context_.options.unreachable_is_unhealthy ? EndpointSet::Unreachable::kUnfit
                                                           : EndpointSet::Unreachable::kFit,
                 context_.options.caller),
      pace_(context_.options.picker_interval) {}

LbEffects Petiole::step(const LbEvent& event, Instant now) {
  now_ = now;
  endpoints_.set_time(now);
  LbEffects effects;
  std::visit(Overloaded{
                 [&](const ConfigUpdated& update) { configured(update, effects); },
                 [&](const SubchannelStateChanged& change) { endpoints_.observe(change, effects); },
                 [&](const PickAsked& pick) { asked(pick.ask, effects); },
                 [&](const IdleExitRequested&) { exit_idle(effects); },
                 [&](const RebuildDue& due) { rebuild_due(due, effects); },
                 [&](const TimerFired& timer) { fired(timer.timer, effects); },
                 // A leaf has no children and keeps no sessions, so no other event concerns it.
                 [](const auto&) {},
             },
             event);
  follow_up(effects);
  record(endpoints_.take_changes());
  publish_edge(effects);
  report_applied(effects);
  order_rebuild(effects);
  return effects;
}

void Petiole::configured(const ConfigUpdated& update, LbEffects& effects) {
  generation_ = update.generation;
  owes_applied_ = true;
  if (configure(update)) pace_.need(PickerPace::Need::kNow);
  endpoints_.update(update.endpoints, effects);
  const EndpointSet::Changes changes = endpoints_.take_changes();
  endpoints_taken(update, changes);
  record(changes);
}

void Petiole::fired(const TimerId& timer, LbEffects& effects) {
  if (timer.name == kPaceTimer) return build(pace_.timer_fired(now_), effects);
  if (!fire(timer)) endpoints_.fire(timer, effects);
}

void Petiole::rebuild_due(const RebuildDue& due, LbEffects& effects) {
  rebuild_ordered_ = false;
  if (std::exchange(reresolution_wanted_, false)) effects.push_back(RequestReresolution{});
  build(pace_.burst_ended(now_, due.build_cost), effects);
  if (owes_hosts()) publish_hosts(effects);
}

void Petiole::build(const PickerPace::Order& order, LbEffects& effects) {
  if (order.build) publish(effects);
  if (order.timer) effects.push_back(StartTimer{TimerId{kPaceTimer}, *order.timer});
}

void Petiole::record(const EndpointSet::Changes& changes) {
  reresolution_wanted_ |= changes.unreachable;
  pace_.need(need_of(changes));
}

PickerPace::Need Petiole::need_of(const EndpointSet::Changes& changes) const {
  if (changes.stale) return PickerPace::Need::kNow;
  const bool failed = published_ && published_->state == ConnectivityState::kTransientFailure;
  const bool is_other_text = failed && (changes.failure || changes.list);
  return changes.ready || is_other_text ? PickerPace::Need::kMayWait : PickerPace::Need::kNone;
}

ConnectivityState Petiole::state() const {
  const auto any = [&](ConnectivityState state) { return endpoints_.count(state) > 0; };
  if (any(ConnectivityState::kReady)) return ConnectivityState::kReady;
  if (any(ConnectivityState::kConnecting) || any(ConnectivityState::kIdle))
    return ConnectivityState::kConnecting;
  return ConnectivityState::kTransientFailure;
}

// Publishes the first state, and each change of state, at once (I1 of petiole.hpp).
void Petiole::publish_edge(LbEffects& effects) {
  if (generation_ == 0) return;
  if (!published_ || published_->state != state()) publish(effects);
}

void Petiole::order_rebuild(LbEffects& effects) {
  if (generation_ == 0) return;
  const bool is_rebuild_wanted = pace_.awaits_burst() || reresolution_wanted_ || owes_hosts();
  if (is_rebuild_wanted && !std::exchange(rebuild_ordered_, true)) effects.push_back(RebuildSoon{});
}

void Petiole::report_applied(LbEffects& effects) {
  if (!owes_applied_ || !endpoints_.heard_all()) return;
  owes_applied_ = false;
  if (is_miscounted()) publish_hosts(effects);
  effects.push_back(ReportApplied{generation_});
}

void Petiole::publish(LbEffects& effects) {
  pace_.built(now_);
  Publish next;
  next.state = state();
  if (next.state == ConnectivityState::kTransientFailure) next.status = failure();
  next.picker = explained_picker();
  next.generation = generation_;
  next.hosts = fit_of(endpoints_.fit(), endpoints_.all());
  published_ = next;
  effects.push_back(std::move(next));
  published(effects);
}

// Whether the last published HostReport (how many endpoints are fit) is out of date.
bool Petiole::is_miscounted() const {
  if (!published_) return false;
  const PriorityHosts& said = published_->hosts->priorities.front();
  return said.healthy != endpoints_.fit() || said.total != endpoints_.all();
}

// Whether a new HostReport must be published at the end of the burst, with the last picker. If only
// more endpoints are fit, and a new picker waits for its timer, the HostReport waits for that
// picker (I3 of petiole.hpp).
bool Petiole::owes_hosts() const {
  if (!is_miscounted()) return false;
  const PriorityHosts& said = published_->hosts->priorities.front();
  const bool only_rose = said.total == endpoints_.all() &&
                         said.healthy.hosts <= endpoints_.fit().hosts &&
                         said.healthy.weight <= endpoints_.fit().weight;
  return !only_rose || !pace_.waits();
}

// Publishes the last picker again with a new HostReport. The picker itself has not changed.
void Petiole::publish_hosts(LbEffects& effects) {
  published_->hosts = fit_of(endpoints_.fit(), endpoints_.all());
  effects.push_back(*published_);
}

// A new picker. If some endpoints are not READY, its explanations also say which, and why.
PickerPtr Petiole::explained_picker() {
  PickerPtr picker = make_picker();
  const std::size_t all = endpoints_.counted() - endpoints_.count(ConnectivityState::kReady);
  if (all == 0) return picker;
  return make_explained_picker(
      std::move(picker),
      std::make_shared<const AbsentNote>(name_, endpoints_.absent(kMostAbsent), all));
}

absl::Status Petiole::failure() const {
  const std::size_t failed = endpoints_.count(ConnectivityState::kTransientFailure);
  const std::size_t all = endpoints_.counted();
  if (all == 0) return absl::UnavailableError(absl::StrCat(name_, ": no endpoints"));
  const std::string who = all == 1        ? "the only endpoint"
                          : failed == all ? absl::StrCat("all ", all, " endpoints")
                                          : absl::StrCat(failed, " of ", all, " endpoints");
  return absl::UnavailableError(
      absl::StrCat(name_, ": ", who, " failed; last error: ", endpoints_.last_failure().message()));
}

}  // namespace signalbox::lb
