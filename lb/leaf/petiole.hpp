// SPDX-License-Identifier: Apache-2.0
//
// Petiole — the base of policies with a pick_first per endpoint (gRFC A61): when to publish what.
//
//   parent ─▶ ConfigUpdated ─▶ [Petiole: EndpointSet] ─▶ subchannel map, one hold per address
//   parent ◀─ Publish, Applied ◀─┘   │
//                                    └▶ the policy itself: its state, its picker
//
// Invariants
//   I1  A state edge is published at once, with its picker. What changes only the picker waits for
//       the end of the burst (RebuildSoon); re-resolution is asked for once per burst, too.
//   I2  Without endpoints it is in TRANSIENT_FAILURE, and says so.
//   I3  Nothing is published twice: what does not change the picker builds none.
//   I4  It says how many endpoints are fit (HostReport), and what it says before it reports a
//       configuration applied is of that one's endpoints.

#pragma once

#include <optional>

#include "absl/strings/string_view.h"

#include "lb/leaf/endpoint_set.hpp"
#include "lb/policy.hpp"

namespace signalbox::lb {

class Petiole : public Policy {
 public:
  LbEffects step(const LbEvent& event, Instant now) final;

 protected:
  /// `name`: the policy's, for texts of failures; a literal.
  Petiole(absl::string_view name,
          PolicyContext context,
          EndpointSet::Connects connects,
          EndpointSet::MakeCounter make_counter = nullptr);

  const PolicyContext& context() const { return context_; }

  EndpointSet& endpoints() { return endpoints_; }

  const EndpointSet& endpoints() const { return endpoints_; }

  /// "<name>: 2 of 3 endpoints failed; last error: …", or that there are none.
  absl::Status failure() const;

  /// Reads the policy's own configuration, before the endpoints of the same update are taken.
  /// Whether another picker is wanted for it.
  virtual bool configure(const ConfigUpdated& /*update*/) { return false; }

  /// The endpoints are those of `update` now.
  virtual void endpoints_taken(const ConfigUpdated& /*update*/,
                               const EndpointSet::Changes& /*changes*/) {}

  /// Whether a picker for the state published last would be another one after `changes`. As a
  /// rule, pickers know who is READY or, where all have failed, why.
  virtual bool needs_picker(const EndpointSet::Changes& changes) const;

  /// READY while any endpoint is READY, else CONNECTING while any may become it, else
  /// TRANSIENT_FAILURE.
  virtual ConnectivityState state() const;

  /// The picker for state().
  virtual PickerPtr make_picker() = 0;

  /// A pick's ask, and the wish of somebody that the policy leave IDLE.
  virtual void asked(const PickAsk& /*ask*/, LbEffects& /*effects*/) {}

  virtual void exit_idle(LbEffects& /*effects*/) {}

  /// After every event: what the policy starts on its own.
  virtual void follow_up(LbEffects& /*effects*/) {}

 private:
  void configured(const ConfigUpdated& update, LbEffects& effects);
  void rebuild_due(LbEffects& effects);
  void note(const EndpointSet::Changes& changes);
  void publish_edge(LbEffects& effects);
  void report_applied(LbEffects& effects);
  void order_rebuild(LbEffects& effects);
  void publish(LbEffects& effects);
  PickerPtr told_picker();
  bool is_miscounted() const;
  void publish_hosts(LbEffects& effects);

  absl::string_view name_;
  PolicyContext context_;
  EndpointSet endpoints_;
  Generation generation_ = 0;
  std::optional<Publish> published_;
  bool owes_applied_ = false;
  bool dirty_ = false;  // The published picker is not what we would build now.
  bool reresolution_wanted_ = false;
  bool rebuild_ordered_ = false;
};

}  // namespace signalbox::lb
