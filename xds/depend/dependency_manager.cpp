// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/dependency_manager.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "messages/named_clusters.hpp"
#include "messages/overloaded.hpp"
#include "xds/client/resource_text.hpp"
#include "xds/depend/virtual_host.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

DependencyManager::DependencyManager(const DependencyOptions& options)
    : authority_(options.authority),
      missing_leaf_(options.missing_leaf),
      text_(options.target, options.node_id),
      known_(options.listener, options.resolution, options.seed) {}

DependencyEffects DependencyManager::start() {
  known_.watch_listener(effects_);
  return std::exchange(effects_, {});
}

DependencyEffects DependencyManager::step(const DependencyEvent& event, Instant now) {
  refresh(std::visit([&](const auto& what) { return on(what, now); }, event));
  return std::exchange(effects_, {});
}

// --- events -----------------------------------------------------------------

// Returns the greatest change, so that the consequences of many changes are computed once.
Changed DependencyManager::on(const ResourcesChanged& event, Instant /*now*/) {
  Changed most = Changed::kNothing;
  if (event.response_at) origin_.response_at = event.response_at;
  const Overloaded record{
      [this](const ResourceChanged& change) {
        origin_.versions.at(static_cast<std::size_t>(change.key.type)) = change.version;
        return known_.record(change, effects_);
      },
      [this](const AmbientErrorChanged& change) { return known_.record(change); },
  };
  for (const auto& change : event.changes)
    most = std::max(most, std::visit(record, change));
  return most;
}

Changed DependencyManager::on(const NameResolved& event, Instant now) {
  return known_.record(event, now, effects_);
}

Changed DependencyManager::on(const ClustersReferenced& event, Instant /*now*/) {
  referenced_ = event.clusters;
  return Changed::kGraph;
}

Changed DependencyManager::on(const ReresolutionRequested&, Instant now) {
  known_.resolve_again(now, effects_);
  return Changed::kNothing;
}

Changed DependencyManager::on(const ClientReplaced&, Instant /*now*/) {
  known_.client_replaced();
  return Changed::kNothing;
}

Changed DependencyManager::on(const TimerFired& event, Instant /*now*/) {
  if (settling_ == event.timer)
    settle();
  else
    known_.timer_fired(event.timer, effects_);
  return Changed::kNothing;
}

std::optional<Awaited> DependencyManager::awaited() const {
  if (emitted_ != nullptr || emitted_error_) return std::nullopt;
  return known_.awaited();
}

// --- the routes to come -----------------------------------------------------

DependencyManager::RoutesToCome DependencyManager::routes_to_come() const {
  const auto& listener = known_.listener().value;
  if (!listener) return Unanswered{};
  if (!listener->ok()) {
    const ResourceKey key{ResourceType::kListener, known_.listener_name()};
    return NoRoutes{text_.unavailable(key, listener->status())};
  }
  if (std::holds_alternative<SocketListener>((**listener)->routes)) {
    const ResourceKey key{ResourceType::kListener, known_.listener_name()};
    return NoRoutes{text_.unavailable(
        key, absl::UnavailableError("must be an API listener, found one on a socket"))};
  }
  using Inline = std::shared_ptr<const RouteConfig>;
  if (const auto* inlined = std::get_if<Inline>(&(**listener)->routes))
    return routes_in(**listener, *inlined);

  const auto& route_config = known_.route_config().value;
  if (!route_config) return Unanswered{};
  if (!route_config->ok()) {
    const ResourceKey key{ResourceType::kRouteConfig, known_.route_name()};
    const absl::Status& error = route_config->status();
    return NoRoutes{text_.unavailable(key, error), is_revoked(error)};
  }
  return routes_in(**listener, **route_config);
}

DependencyManager::RoutesToCome DependencyManager::routes_in(
    const std::shared_ptr<const Listener>& listener,
    const std::shared_ptr<const RouteConfig>& route_config) const {
  const VirtualHost* host = find_virtual_host(*route_config, authority_);
  if (host != nullptr) return Routes{listener, route_config, host};
  // A server that deletes a listener often empties the route configuration, too. The deletion of
  // the listener is then the cause to report.
  if (absl::IsNotFound(known_.listener().ambient)) {
    const ResourceKey key{ResourceType::kListener, known_.listener_name()};
    return NoRoutes{text_.unavailable(key, known_.listener().ambient)};
  }
  return NoRoutes{text_.unavailable(no_virtual_host(*route_config, listener->name))};
}

// An inline route configuration may have no name; then its listener names it.
std::string DependencyManager::no_virtual_host(const RouteConfig& route_config,
                                               const std::string& listener) const {
  const std::string holder =
      route_config.name.empty()
          ? absl::StrCat("listener ", in_quotes(listener))
          : absl::StrCat("route configuration ", in_quotes(route_config.name));
  std::vector<std::string> domains;
  for (const VirtualHost& host : route_config.virtual_hosts)
    domains.insert(domains.end(), host.domains.begin(), host.domains.end());
  return absl::StrCat("no virtual host of ",
                      holder,
                      " has a domain that matches ",
                      in_quotes(authority_),
                      domains.empty() ? "; it has no virtual hosts"
                                      : absl::StrCat("; its domains are: ", listed(domains)));
}

// A74: an error of the route configuration fails the target if no configuration is emitted, if the
// route configuration does not exist, or if the emitted routes are from this RDS resource. If the
// listener has moved to another route configuration that is only unavailable for the moment, the
// emitted routes stay in use.
bool DependencyManager::is_revoked(const absl::Status& route_error) const {
  if (absl::IsNotFound(route_error) || emitted_ == nullptr) return true;
  const auto* in_use = std::get_if<RdsName>(&emitted_->listener->routes);
  return in_use != nullptr && in_use->name == known_.route_name();
}

std::string DependencyManager::target_note() const {
  const auto note = [](const ResourceKey& key, const absl::Status& ambient) {
    return ambient.ok() ? std::string() : with_resource(key, ambient.message());
  };
  return join_notes(
      note({ResourceType::kListener, known_.listener_name()}, known_.listener().ambient),
      note({ResourceType::kRouteConfig, known_.route_name()}, known_.route_config().ambient));
}

// --- consequences of events -------------------------------------------------

void DependencyManager::refresh(Changed changed) {
  if (changed == Changed::kNothing) return;
  if (changed == Changed::kGraph) known_.follow_listener(effects_);
  const RoutesToCome to_come = routes_to_come();
  const auto* none = std::get_if<NoRoutes>(&to_come);
  if (none != nullptr && none->is_final) emit_error(none->error);
  if (changed == Changed::kGraph) follow(to_come);

  if (emitted_ != nullptr) return settle_soon();
  // While none is emitted, the next configuration needs an answer for every watched resource.
  const auto* routes = std::get_if<Routes>(&to_come);
  if (routes != nullptr && known_.all_answered()) try_emit(*routes, target_note());
}

// Starts a timer of zero length, so that one update serves all events that are waiting now (M5).
void DependencyManager::settle_soon() {
  if (settling_) return;
  settling_ = TimerId{"settle", ++timers_};
  effects_.emplace_back(StartTimer{*settling_, Duration::zero()});
}

// Emits the next configuration. It uses the routes to come, or the emitted routes while the routes
// to come are incomplete (M4).
void DependencyManager::settle() {
  settling_.reset();
  if (emitted_ == nullptr) return;
  const RoutesToCome to_come = routes_to_come();
  std::string note = target_note();
  if (const auto* none = std::get_if<NoRoutes>(&to_come))
    note = join_notes(none->error.message(), note);
  if (const auto* routes = std::get_if<Routes>(&to_come)) {
    const bool replaces =
        emitted_->virtual_host != routes->virtual_host || emitted_->listener != routes->listener;
    if (try_emit(*routes, note)) {
      if (replaces) follow(to_come);  // Unwatches resources that only the old routes needed.
      return;
    }
  }
  try_emit({emitted_->listener, emitted_->route_config, emitted_->virtual_host}, note);
}

// Watches the clusters of the routes to come, of the emitted routes and of running calls (M3).
void DependencyManager::follow(const RoutesToCome& to_come) {
  std::set<ClusterName> roots = referenced_;
  if (const auto* routes = std::get_if<Routes>(&to_come))
    roots.merge(named_clusters(*routes->virtual_host, routes->listener.get()));
  if (emitted_ != nullptr)
    roots.merge(named_clusters(*emitted_->virtual_host, emitted_->listener.get()));
  known_.follow_clusters(roots, effects_);
}

// Returns false if the configuration is not complete.
bool DependencyManager::try_emit(const Routes& routes, std::string target_note) {
  auto built = build_config(
      routes, BuildArguments{known_, text_, referenced_, emitted_.get(), missing_leaf_});
  if (!built) return false;
  built->config.authority = authority_;
  ResolutionNotes notes{text_.node(), std::move(target_note), std::move(built->notes)};
  const bool unchanged = emitted_ != nullptr && is_unchanged(built->config, *emitted_);
  const auto response_at = std::exchange(origin_.response_at, std::nullopt);
  if (unchanged && notes == *emitted_notes_) return true;  // Nothing new to emit (M1, M6).
  if (!unchanged) emitted_ = std::make_shared<const XdsConfig>(std::move(built->config));
  emitted_notes_ = std::make_shared<const ResolutionNotes>(std::move(notes));
  emitted_error_.reset();
  effects_.emplace_back(EmitConfig{emitted_, emitted_notes_, {origin_.versions, response_at}});
  return true;
}

void DependencyManager::emit_error(const absl::Status& error) {
  emitted_.reset();
  emitted_notes_.reset();
  if (emitted_error_ == error) return;
  emitted_error_ = error;
  effects_.emplace_back(EmitError{error});
}

}  // namespace signalbox::xds
