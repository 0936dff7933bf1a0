// SPDX-License-Identifier: Apache-2.0
//
// DependencyManager — everything that one target depends on, as one configuration (gRFC A74).
//
//   client_core, dns ─▶ [DependencyManager] ─▶ EmitConfig{XdsConfig} ─▶ channel
//
//   Listener ─▶ RouteConfig ─▶ virtual host ─▶ clusters ─▶ … aggregates … ─▶ EDS or DNS
//   (target)    (inline, RDS)  (authority)     ∪ those that calls still refer to
//
// Invariants
//   M1  A configuration goes out only when all that it needs has answered, with a value or with an
//       error (A37-6), and only when it differs from the last one.
//   M2  What cannot be used fails alone: clusters hold their own errors. Only a listener, route
//       configuration or virtual host that is not there fails the target.
//   M3  Watched is what can be reached: from the routes to come, from the configuration that is
//       out until they replace it, and from the clusters that calls refer to (A37-15).
//   M4  A configuration that is out keeps being updated while the routes to come are incomplete.
//   M5  Bursts are answered once: while a configuration is out, its successor is put together
//       behind the events that wait now (a timer without delay). Watches, errors and the first
//       configuration do not wait.
//   M6  What is wrong beside what is out is its note. A note that changes alone goes out with the
//       same configuration.
//   M7  Codes of the control plane never reach a call: every error is UNAVAILABLE.
//
// Source: gRFC A74, A37, A88 (ambient errors become notes).

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "messages/xds_events.hpp"
#include "xds/depend/config_builder.hpp"
#include "xds/depend/error_text.hpp"
#include "xds/depend/watched_resources.hpp"

namespace signalbox::xds {

struct DependencyOptions {
  std::string target;     ///< For the texts of errors: "xds:///orders".
  std::string listener;   ///< The name of the LDS resource.
  std::string authority;  ///< What the virtual hosts' domains are compared with.
  std::string node_id;
  std::uint64_t seed = 0;
  MissingLeaf missing_leaf = MissingLeaf::kSkip;
  ResolutionOptions resolution;
};

class DependencyManager {
 public:
  explicit DependencyManager(const DependencyOptions& options);

  /// Called once, before the first step.
  DependencyEffects start();

  DependencyEffects step(const DependencyEvent& event, Instant now);

 private:
  struct Unanswered {};

  struct NoRoutes {
    absl::Status error;    ///< As the calls see it.
    bool is_final = true;  ///< False: what is out may go on, with the error as its note.
  };

  using RoutesToCome = std::variant<Unanswered, NoRoutes, Routes>;

  Changed on(const ResourcesChanged& event, Instant now);
  Changed on(const NameResolved& event, Instant now);
  Changed on(const ClustersReferenced& event, Instant now);
  Changed on(const ReresolutionRequested& event, Instant now);
  Changed on(const ClientReplaced& event, Instant now);
  Changed on(const TimerFired& event, Instant now);

  RoutesToCome routes_to_come() const;
  RoutesToCome routes_in(const std::shared_ptr<const Listener>& listener,
                         const std::shared_ptr<const RouteConfig>& route_config) const;
  bool is_revoked(const absl::Status& route_error) const;
  /// What is wrong with listener and routes although they have a value.
  std::string target_note() const;

  void refresh(Changed changed);
  void follow(const RoutesToCome& to_come);
  void settle_soon();
  void settle();
  bool try_emit(const Routes& routes, std::string target_note);
  void emit_error(const absl::Status& error);

  std::string authority_;
  MissingLeaf missing_leaf_;
  ErrorText text_;
  WatchedResources known_;
  std::set<ClusterName> referenced_;

  XdsConfigPtr emitted_;  // Null: none yet, or an error came after it.
  ResolutionNotesPtr emitted_notes_;
  std::optional<absl::Status> emitted_error_;
  std::optional<TimerId> settling_;
  std::uint64_t timers_ = 0;
  DependencyEffects effects_;
};

}  // namespace signalbox::xds
