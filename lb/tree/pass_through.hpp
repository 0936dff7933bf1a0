// SPDX-License-Identifier: Apache-2.0
//
// PassThrough — a policy with one child, which reports the child's state as its own.
//
//   parent ─▶ ConfigUpdated ─▶ [PassThrough: give()] ─▶ the one child
//   parent ◀─ state, picker, applied ◀─ [show()] ◀───── the one child
//
// The base class of outlier_detection, cluster_impl, override_host, random_subsetting and
// wrr_locality. A derived policy decides three things: the child's configuration and endpoints, the
// effects that precede them, and the picker that is published instead of the child's.

#pragma once

#include "lb/policy.hpp"
#include "lb/tree/child_set.hpp"
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

  /// Returns the configuration and the endpoints for the child, made from `update`. Effects that
  /// give() adds precede the update of the child.
  virtual Given give(const ConfigUpdated& update, Instant now, LbEffects& effects) = 0;

  virtual void on_timer(const TimerFired& /*fired*/, Instant /*now*/, LbEffects& /*effects*/) {}

  virtual void on_subchannel(const SubchannelStateChanged& /*report*/, LbEffects& /*effects*/) {}

  virtual void on_gone(const SubchannelGone& /*gone*/, LbEffects& /*effects*/) {}

  virtual void on_ask(const PickAsk& /*ask*/, LbEffects& /*effects*/) {}

  /// Called for RebuildDue, at the end of a burst of events. Afterwards show() is called, and its
  /// picker is published if it is not the one published last.
  virtual void on_rebuild() {}

  /// The picker to publish, made from the child's `picker`. Must return the same picker again if
  /// nothing has changed.
  virtual PickerPtr show(const PickerPtr& picker) { return picker; }

  /// Publishes the child's state, status and HostReport with the result of show(), unless all of
  /// them are as published last. Precondition: a configuration has arrived.
  void publish(LbEffects& effects);

  /// The generation in the last ReportApplied; 0: none yet.
  Generation applied() const { return children_.applied(); }

 private:
  void on(const ConfigUpdated& update, Instant now, LbEffects& effects);

  ChildSet children_;
  Published published_;
};

}  // namespace signalbox::lb
