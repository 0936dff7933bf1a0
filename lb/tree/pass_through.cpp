// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/pass_through.hpp"

#include <string>
#include <utility>

#include "messages/overloaded.hpp"

namespace signalbox::lb {

LbEffects PassThrough::step(const LbEvent& event, Instant now) {
  LbEffects effects;
  std::visit(Overloaded{
                 [&](const ConfigUpdated& update) { on(update, now, effects); },
                 [&](const TimerFired& fired) { on_timer(fired, now, effects); },
                 [&](const ChildStateChanged& changed) {
                   if (children_.hear(changed, effects) != nullptr) publish(effects);
                 },
                 [&](const IdleExitRequested&) { children_.exit_idle(the_child(), effects); },
                 [&](const SubchannelStateChanged& report) { on_subchannel(report, effects); },
                 [&](const SubchannelGone& gone) { on_gone(gone, effects); },
                 [&](const PickAsked& asked) { on_ask(asked.ask, effects); },
                 [&](const RebuildDue&) {
                   on_rebuild();
                   if (children_.contains(the_child())) publish(effects);
                 },
                 [&](const auto&) { children_.hear_other(event, effects); },
             },
             event);
  children_.report_applied(effects);
  return effects;
}

void PassThrough::on(const ConfigUpdated& update, Instant now, LbEffects& effects) {
  children_.begin(update);
  Given given = give(update, now, effects);
  children_.update(the_child(), std::move(given.config), std::move(given.endpoints), effects);
  publish(effects);
}

void PassThrough::publish(LbEffects& effects) {
  const Child& child = *children_.find(the_child());
  published_.publish(
      {child.state, child.status, show(child.picker), children_.generation(), child.hosts},
      effects);
}

}  // namespace signalbox::lb
