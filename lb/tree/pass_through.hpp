// SPDX-License-Identifier: Apache-2.0
//
// PassThrough — a policy with one child that says what the child says.
//
//   parent ─▶ ConfigUpdated ─▶ [PassThrough: adapt] ─▶ the one child
//   parent ◀─ state, picker, applied ◀───────────────── the one child
//
// The base of the rooms that a call passes on its way (outlier_detection, cluster_impl,
// override_host) and of wrr_locality: each says only what its child is given, what is ordered
// before the child hears of it, and what of the child's picker it shows.

#pragma once

#include "lb/child_set.hpp"
#include "lb/policy.hpp"
#include "lb/tree/published.hpp"

namespace signalbox::lb {

class PassThrough : public Policy {
 public:
  LbEffects step(const LbEvent& event, Instant now) final;

 protected:
  /// What the child is given for `update`: its configuration and its endpoints.
  struct Given {
    LbConfigPtr config;
    EndpointsPtr endpoints;
  };

  /// Its own effects precede the child's update.
  virtual Given give(const ConfigUpdated& update, Instant now, LbEffects& effects) = 0;

  virtual void on_timer(const TimerFired& /*fired*/, Instant /*now*/, LbEffects& /*effects*/) {}

  virtual void on_subchannel(const SubchannelStateChanged& /*told*/, LbEffects& /*effects*/) {}

  virtual void on_gone(const SubchannelGone& /*gone*/, LbEffects& /*effects*/) {}

  virtual void on_ask(const PickAsk& /*ask*/, LbEffects& /*effects*/) {}

  /// To be followed by another picker, if anything changed: show() is asked.
  virtual void on_rebuild() {}

  /// The picker that is published for the child's; the same one for the same, where nothing
  /// changed.
  virtual PickerPtr show(const PickerPtr& picker) { return picker; }

  /// The newest generation that the child has applied; 0: none yet.
  Generation applied() const { return children_.applied(); }

 private:
  void on(const ConfigUpdated& update, Instant now, LbEffects& effects);
  void publish(LbEffects& effects);

  ChildSet children_;
  Published published_;
};

}  // namespace signalbox::lb
