// SPDX-License-Identifier: Apache-2.0
//
// Petiole — the base class of leaf policies with a pick_first per endpoint (gRFC A61). It decides
// when the policy publishes a state or a picker. ("Petiole" is the gRFC's name for such a policy.)
//
//   parent ─▶ ConfigUpdated ─▶ [Petiole: EndpointSet] ─▶ subchannel map, ≤ 1 hold per address
//   parent ◀─ Publish ◀──────────┘   │
//             ReportApplied          └▶ the policy itself: its state, its picker
//
// Invariants
//   I1  A change of state is published at once, with its picker. A change of the picker alone waits
//       for the end of a burst of events (RebuildSoon). It waits longer if no pick can be wrong
//       meanwhile (picker_pace.hpp). Re-resolution is requested once per burst, too.
//   I2  Without endpoints the policy is in TRANSIENT_FAILURE, and its status says so.
//   I3  An event that changes neither the state nor the picker builds no picker. If it changes the
//       HostReport, the last picker is published again with the new HostReport; else nothing is
//       published. A HostReport with more fit endpoints waits for the picker that has these
//       endpoints (but see I4). Otherwise tiered would send more calls to this policy at once, and
//       its other endpoints would get them.
//   I4  The policy reports how many endpoints are fit (HostReport). When it reports a configuration
//       as applied, the HostReport is already about that configuration's endpoints.

#pragma once

#include <optional>

#include "absl/strings/string_view.h"

#include "lb/leaf/endpoint_set.hpp"
#include "lb/leaf/picker_pace.hpp"
#include "lb/policy.hpp"

namespace signalbox::lb {

class Petiole : public Policy {
 public:
  LbEffects step(const LbEvent& event, Instant now) final;

 protected:
  /// `name`: the policy's name in texts of failures; a literal.
  Petiole(absl::string_view name,
          PolicyContext context,
          EndpointSet::Connects connects,
          EndpointSet::MakeCounter make_counter = nullptr);

  const PolicyContext& context() const { return context_; }

  EndpointSet& endpoints() { return endpoints_; }

  const EndpointSet& endpoints() const { return endpoints_; }

  /// The time of the event in progress.
  Instant now() const { return now_; }

  /// Requests a new picker, which PickerPace may delay (Need::kMayWait).
  void want_picker() { pace_.need(PickerPace::Need::kMayWait); }

  /// Such as "<name>: 2 of 3 endpoints failed; last error: …", or "<name>: no endpoints".
  absl::Status failure() const;

  /// Reads the policy's own configuration, before endpoints() gets the endpoints of the same
  /// update. True: the configuration needs a new picker.
  virtual bool configure(const ConfigUpdated& /*update*/) { return false; }

  /// Called after endpoints() has taken the endpoints of `update`.
  virtual void endpoints_taken(const ConfigUpdated& /*update*/,
                               const EndpointSet::Changes& /*changes*/) {}

  /// How urgently `changes` need a new picker, if the published state stays. By default kNow if the
  /// last picker is wrong about a READY endpoint. kMayWait if endpoints became READY; in
  /// TRANSIENT_FAILURE also if the failure's text may be another, because the last failure or the
  /// list changed. Else kNone.
  virtual PickerPace::Need need_of(const EndpointSet::Changes& changes) const;

  /// The policy's state. By default READY if any endpoint is READY, else CONNECTING if any is
  /// CONNECTING or IDLE, else TRANSIENT_FAILURE.
  virtual ConnectivityState state() const;

  /// Makes a picker for the current state().
  virtual PickerPtr make_picker() = 0;

  /// Called after each publication of a new picker, whatever the policy's state: the set of READY
  /// endpoints may have changed.
  virtual void published(LbEffects& /*effects*/) {}

  /// Handles a timer of the policy's own. Returns false for any other timer.
  virtual bool fire(const TimerId& /*timer*/) { return false; }

  /// asked() handles an ask of a pick (such as "connect this address"), exit_idle()
  /// IdleExitRequested.
  virtual void asked(const PickAsk& /*ask*/, LbEffects& /*effects*/) {}

  virtual void exit_idle(LbEffects& /*effects*/) {}

  /// Called after every event, for actions that depend on all endpoints. For example, ring_hash
  /// connects an IDLE endpoint when others have failed and none is READY or CONNECTING.
  virtual void follow_up(LbEffects& /*effects*/) {}

 private:
  void configured(const ConfigUpdated& update, LbEffects& effects);
  void fired(const TimerId& timer, LbEffects& effects);
  void rebuild_due(const RebuildDue& due, LbEffects& effects);
  void build(const PickerPace::Order& order, LbEffects& effects);
  void record(const EndpointSet::Changes& changes);
  void publish_edge(LbEffects& effects);
  void report_applied(LbEffects& effects);
  void order_rebuild(LbEffects& effects);
  void publish(LbEffects& effects);
  PickerPtr explained_picker();
  bool is_miscounted() const;
  bool owes_hosts() const;
  void publish_hosts(LbEffects& effects);

  absl::string_view name_;
  PolicyContext context_;
  EndpointSet endpoints_;
  Generation generation_ = 0;
  Instant now_{};
  std::optional<Publish> published_;
  bool owes_applied_ = false;
  PickerPace pace_;
  bool reresolution_wanted_ = false;
  bool rebuild_ordered_ = false;
};

}  // namespace signalbox::lb
