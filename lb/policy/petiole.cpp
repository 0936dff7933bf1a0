// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/petiole.hpp"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/trace.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

// So many explanations name.
constexpr std::size_t kMostAbsent = 20;

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
      endpoints_(connects, context_.options.connection_attempt_delay, std::move(make_counter)) {}

LbEffects Petiole::step(const LbEvent& event, Instant /*now*/) {
  LbEffects effects;
  std::visit(Overloaded{
                 [&](const ConfigUpdated& update) { configured(update, effects); },
                 [&](const SubchannelStateChanged& change) { endpoints_.observe(change, effects); },
                 [&](const PickAsked& pick) { asked(pick.ask, effects); },
                 [&](const IdleExitRequested&) { exit_idle(effects); },
                 [&](const RebuildDue&) { rebuild_due(effects); },
                 [&](const TimerFired& fired) { endpoints_.fire(fired.timer, effects); },
                 // A leaf has no children.
                 [](const auto&) {},
             },
             event);
  follow_up(effects);
  note(endpoints_.take_changes());
  publish_or_order(effects);
  report_applied(effects);
  return effects;
}

void Petiole::configured(const ConfigUpdated& update, LbEffects& effects) {
  generation_ = update.generation;
  owes_applied_ = true;
  if (configure(update)) dirty_ = true;
  endpoints_.update(update.endpoints, effects);
  const EndpointSet::Changes changes = endpoints_.take_changes();
  endpoints_taken(update, changes);
  note(changes);
}

void Petiole::rebuild_due(LbEffects& effects) {
  rebuild_ordered_ = false;
  if (std::exchange(reresolution_wanted_, false)) effects.push_back(RequestReresolution{});
  if (dirty_) publish(effects);
}

void Petiole::note(const EndpointSet::Changes& changes) {
  reresolution_wanted_ |= changes.unreachable;
  dirty_ = dirty_ || needs_picker(changes);
}

bool Petiole::needs_picker(const EndpointSet::Changes& changes) const {
  const bool failed = published_ == ConnectivityState::kTransientFailure;
  return changes.ready || (failed && (changes.failure || changes.list));
}

ConnectivityState Petiole::state() const {
  const auto any = [&](ConnectivityState state) { return endpoints_.count(state) > 0; };
  if (any(ConnectivityState::kReady)) return ConnectivityState::kReady;
  if (any(ConnectivityState::kConnecting) || any(ConnectivityState::kIdle))
    return ConnectivityState::kConnecting;
  return ConnectivityState::kTransientFailure;
}

// I1.
void Petiole::publish_or_order(LbEffects& effects) {
  if (generation_ == 0) return;
  if (published_ != state()) publish(effects);
  if ((dirty_ || reresolution_wanted_) && !std::exchange(rebuild_ordered_, true))
    effects.push_back(RebuildSoon{});
}

void Petiole::report_applied(LbEffects& effects) {
  if (!owes_applied_ || !endpoints_.heard_all()) return;
  owes_applied_ = false;
  effects.push_back(ReportApplied{generation_});
}

void Petiole::publish(LbEffects& effects) {
  dirty_ = false;
  published_ = state();
  absl::Status status;
  if (published_ == ConnectivityState::kTransientFailure) status = failure();
  effects.push_back(Publish{*published_, std::move(status), told_picker(), generation_});
}

// With those that are not READY, so that it can be explained why none of them was picked.
PickerPtr Petiole::told_picker() {
  PickerPtr picker = make_picker();
  const std::size_t all = endpoints_.counted() - endpoints_.count(ConnectivityState::kReady);
  if (all == 0) return picker;
  return make_told_picker(
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
