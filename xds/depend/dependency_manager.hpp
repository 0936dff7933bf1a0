// SPDX-License-Identifier: Apache-2.0
//
// DependencyManager — combines all resources of one target into one configuration (gRFC A74).
//
//   client_core, dns ─▶ [DependencyManager] ─▶ EmitConfig{XdsConfig} ─▶ channel
//
//   Listener ─▶ RouteConfig ─▶ virtual host ─▶ clusters ─▶ … aggregates … ─▶ EDS or DNS
//   (target)    (inline, RDS)  (authority)     ∪ clusters that calls still refer to
//
// "Routes to come": the virtual host that the newest listener and route configuration give. They
// are emitted once all their clusters have answered.
//
// Invariants
//   M1  A configuration is emitted only after all resources that it needs have answered, with a
//       value or with an error (A37-6), and only if it or its notes differ from those emitted last.
//   M2  An unusable cluster fails alone: it holds its own error. Only a missing or unusable
//       listener, route configuration or virtual host fails the target.
//   M3  A cluster is watched if it can be reached from the routes to come, from the routes of the
//       emitted configuration, or from a cluster that running calls refer to (A37-15).
//   M4  The emitted configuration is still updated while the routes to come are incomplete.
//   M5  A burst of events causes one update. While a configuration is in use, an update is built
//       once the waiting events are handled (a timer of zero length). Watches and errors do not
//       wait, and neither does the first configuration at the start or after an error.
//   M6  An error beside the emitted configuration becomes its note. If only the note changes, it is
//       emitted with the same configuration.
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
  std::string target;     ///< The target, such as "xds:///orders", for error texts.
  std::string listener;   ///< The name of the LDS resource.
  std::string authority;  ///< Compared with the domains of virtual hosts.
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

  /// A resource or name that the first configuration waits for. nullopt: a configuration or an
  /// error was emitted, or everything has answered.
  std::optional<Awaited> awaited() const;

 private:
  struct Unanswered {};

  struct NoRoutes {
    absl::Status error;    ///< The status for calls.
    bool is_final = true;  ///< False: the emitted configuration stays; the error is its note.
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
  std::string no_virtual_host(const RouteConfig& route_config, const std::string& listener) const;
  bool is_revoked(const absl::Status& route_error) const;
  /// The ambient errors (A88) of the listener and of the route configuration, joined by "; ".
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

  // The emitted configuration; null: none yet, or an error was emitted since.
  XdsConfigPtr emitted_;
  ResolutionNotesPtr emitted_notes_;
  std::optional<absl::Status> emitted_error_;
  ConfigOrigin origin_;  // Is emitted with the next configuration.
  std::optional<TimerId> settling_;
  std::uint64_t timers_ = 0;
  DependencyEffects effects_;
};

}  // namespace signalbox::xds
