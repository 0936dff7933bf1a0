// SPDX-License-Identifier: Apache-2.0
//
// PassThrough — a policy with one child, which reports the child's state as its own.
//
//   parent ─▶ ConfigUpdated ─▶ [PassThrough: adapt] ─▶ the one child
//   parent ◀─ state, picker, applied ◀───────────────── the one child
//
// The base of outlier_detection, cluster_impl, override_host and wrr_locality. A derived policy
// decides three things: the child's configuration and endpoints, the orders that precede them, and
// the picker that is published for the child's.

#pragma once

#include "lb/child_set.hpp"
#include "lb/policy.hpp"
#include "lb/tree/published.hpp"

namespace signalbox::lb {

class PassThrough : public Policy {
 public:
  LbEffects step(const LbEvent& event, Instant now) final;

 protected:
  /// The configuration and the endpoints for the child.
  struct Given {
    LbConfigPtr config;
    EndpointsPtr endpoints;
  };

  /// Makes the child's configuration and endpoints from `update`. Effects that give() adds precede
  /// the child's update.
  virtual Given give(const ConfigUpdated& update, Instant now, LbEffects& effects) = 0;

  virtual void on_timer(const TimerFired& /*fired*/, Instant /*now*/, LbEffects& /*effects*/) {}

  virtual void on_subchannel(const SubchannelStateChanged& /*report*/, LbEffects& /*effects*/) {}

  virtual void on_gone(const SubchannelGone& /*gone*/, LbEffects& /*effects*/) {}

  virtual void on_ask(const PickAsk& /*ask*/, LbEffects& /*effects*/) {}

  /// RebuildDue has come. show() is called next, and its picker is published if it has changed.
  virtual void on_rebuild() {}

  /// The picker that is published in place of the child's picker. Returns the same picker for the
  /// same child's picker if nothing else has changed.
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
