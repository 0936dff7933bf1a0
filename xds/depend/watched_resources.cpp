// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/watched_resources.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "messages/invariant.hpp"
#include "xds/depend/leaf_endpoints.hpp"

namespace signalbox::xds {
namespace {

template <typename T>
void replace_value(Watched<T>& watched, const absl::StatusOr<Resource>& resource) {
  if (!resource.ok() && watched.inherited) {
    watched.ambient = resource.status();
    return;
  }
  // The first value from a new client: the ambient error of the former client is removed. The new
  // client reports its own ambient error after the value.
  if (std::exchange(watched.inherited, false)) watched.ambient = absl::OkStatus();
  if (!resource.ok()) {
    watched.value = resource.status();
    watched.ambient = absl::OkStatus();
    return;
  }
  const auto* value = std::get_if<std::shared_ptr<const T>>(&*resource);
  SIGNALBOX_INVARIANT(value != nullptr && *value != nullptr, "a resource is of its key's type");
  if constexpr (std::is_same_v<T, Endpoints>) {
    const bool had = watched.value && watched.value->ok();
    watched.value = endpoints_from_eds(*value, had ? **watched.value : nullptr);
  } else {
    watched.value = *value;
  }
}

// Adds and removes entries until the keys of `known` are those in `wanted`.
template <typename Map, typename Set, typename Add, typename Remove>
void reconcile(Map& known, const Set& wanted, Add add, Remove remove) {
  for (const auto& key : wanted) {
    if (!known.contains(key)) add(key);
  }
  for (auto entry = known.begin(); entry != known.end();) {
    if (wanted.contains(entry->first)) {
      ++entry;
      continue;
    }
    remove(*entry);
    entry = known.erase(entry);
  }
}

}  // namespace

WatchedResources::WatchedResources(std::string listener_name,
                                   const ResolutionOptions& options,
                                   std::uint64_t seed)
    : listener_name_(std::move(listener_name)), resolution_(options), seed_(seed) {}

// --- events -----------------------------------------------------------------

template <typename Visitor>
bool WatchedResources::visit_watched(const ResourceKey& key, Visitor visit) {
  const auto visit_in = [&](auto& known, const auto& name) {
    const auto found = known.find(name);
    if (found == known.end()) return false;
    visit(found->second);
    return true;
  };
  switch (key.type) {
    case ResourceType::kListener:
      if (key.name != listener_name_) return false;
      visit(listener_);
      return true;
    case ResourceType::kRouteConfig:
      if (route_name_.empty() || key.name != route_name_) return false;
      visit(route_config_);
      return true;
    case ResourceType::kCluster:
      return visit_in(clusters_, ClusterName{key.name});
    case ResourceType::kEndpoints:
      return visit_in(endpoints_, key.name);
  }
  return false;
}

Changed WatchedResources::record(const ResourceChanged& event, DependencyEffects& effects) {
  if (event.key.type == ResourceType::kCluster) return replace_cluster(event, effects);
  const bool watched =
      visit_watched(event.key, [&](auto& entry) { replace_value(entry, event.resource); });
  if (!watched) return Changed::kNothing;
  return event.key.type == ResourceType::kEndpoints ? Changed::kValues : Changed::kGraph;
}

Changed WatchedResources::replace_cluster(const ResourceChanged& event,
                                          DependencyEffects& effects) {
  const auto found = clusters_.find(ClusterName{event.key.name});
  if (found == clusters_.end()) return Changed::kNothing;
  Watched<Cluster>& watched = found->second;
  const bool first_answer = !watched.value.has_value();
  replace_value(watched, event.resource);
  if (!first_answer) return Changed::kGraph;
  if (!watched.value->ok()) return Changed::kValues;

  const Cluster& cluster = ***watched.value;
  if (const auto* eds = std::get_if<EdsDiscovery>(&cluster.discovery)) {
    if (!endpoints_.contains(eds->service_name)) watch_endpoints(eds->service_name, effects);
    return Changed::kValues;
  }
  if (const auto* dns = std::get_if<DnsDiscovery>(&cluster.discovery)) {
    if (!names_.contains(dns->name)) watch_name(dns->name, effects);
    return Changed::kValues;
  }
  return Changed::kGraph;
}

Changed WatchedResources::record(const AmbientErrorChanged& event) {
  const bool watched = visit_watched(event.key, [&](auto& entry) { entry.ambient = event.status; });
  return watched ? Changed::kValues : Changed::kNothing;
}

Changed WatchedResources::record(const NameResolved& event,
                                 Instant now,
                                 DependencyEffects& effects) {
  const auto found = names_.find(event.name);
  if (found == names_.end()) return Changed::kNothing;
  found->second.resolved(event, now, effects);
  return Changed::kValues;
}

void WatchedResources::client_replaced() {
  const auto inherit = [](auto& watched) {
    watched.inherited = watched.value && watched.value->ok();
  };
  inherit(listener_);
  inherit(route_config_);
  for (auto& [name, watched] : clusters_)
    inherit(watched);
  for (auto& [name, watched] : endpoints_)
    inherit(watched);
}

void WatchedResources::resolve_again(Instant now, DependencyEffects& effects) {
  for (auto& [name, resolution] : names_)
    resolution.ask_again(now, effects);
}

void WatchedResources::timer_fired(const TimerId& timer, DependencyEffects& effects) {
  for (auto& [name, resolution] : names_)
    resolution.timer_fired(timer, effects);
}

// --- what to watch ----------------------------------------------------------

void WatchedResources::watch_listener(DependencyEffects& effects) {
  effects.emplace_back(Watch{{ResourceType::kListener, listener_name_}});
}

void WatchedResources::follow_listener(DependencyEffects& effects) {
  std::string wanted;
  if (listener_.value && listener_.value->ok()) {
    if (const auto* rds = std::get_if<RdsName>(&(**listener_.value)->routes)) wanted = rds->name;
  }
  if (wanted == route_name_) return;
  if (!wanted.empty()) effects.emplace_back(Watch{{ResourceType::kRouteConfig, wanted}});
  if (!route_name_.empty())
    effects.emplace_back(Unwatch{{ResourceType::kRouteConfig, route_name_}});
  route_name_ = wanted;
  route_config_ = {};
}

void WatchedResources::follow_clusters(const std::set<ClusterName>& roots,
                                       DependencyEffects& effects) {
  const auto lookup = [this](const ClusterName& name) { return find_cluster(name); };
  watch_clusters(explore(roots, lookup).reached, effects);
  watch_leaves(effects);
}

void WatchedResources::watch_clusters(const std::set<ClusterName>& reached,
                                      DependencyEffects& effects) {
  reconcile(
      clusters_,
      reached,
      [&](const ClusterName& name) {
        clusters_.try_emplace(name);
        effects.emplace_back(Watch{{ResourceType::kCluster, name.str()}});
      },
      [&](const auto& entry) {
        effects.emplace_back(Unwatch{{ResourceType::kCluster, entry.first.str()}});
      });
}

void WatchedResources::watch_leaves(DependencyEffects& effects) {
  std::set<std::string> services;
  std::set<DnsName> names;
  for (const auto& [name, watched] : clusters_) {
    if (!watched.value || !watched.value->ok()) continue;
    const auto& discovery = (**watched.value)->discovery;
    if (const auto* eds = std::get_if<EdsDiscovery>(&discovery)) services.insert(eds->service_name);
    if (const auto* dns = std::get_if<DnsDiscovery>(&discovery)) names.insert(dns->name);
  }
  reconcile(
      endpoints_,
      services,
      [&](const std::string& name) { watch_endpoints(name, effects); },
      [&](const auto& entry) {
        effects.emplace_back(Unwatch{{ResourceType::kEndpoints, entry.first}});
      });
  reconcile(
      names_,
      names,
      [&](const DnsName& name) { watch_name(name, effects); },
      [&](auto& entry) { entry.second.stop(effects); });
}

void WatchedResources::watch_endpoints(const std::string& name, DependencyEffects& effects) {
  endpoints_.try_emplace(name);
  effects.emplace_back(Watch{{ResourceType::kEndpoints, name}});
}

void WatchedResources::watch_name(const DnsName& name, DependencyEffects& effects) {
  const std::uint64_t serial = ++resolutions_;
  NameResolution resolution(name, resolution_, seed_ + serial, serial);
  names_.emplace(name, std::move(resolution)).first->second.start(effects);
}

// --- what is known ----------------------------------------------------------

const absl::StatusOr<ClusterPtr>* WatchedResources::find_cluster(const ClusterName& name) const {
  const auto found = clusters_.find(name);
  return found != clusters_.end() && found->second.value ? &*found->second.value : nullptr;
}

std::optional<Awaited> WatchedResources::awaited() const {
  if (!listener_.value) return ResourceKey{ResourceType::kListener, listener_name_};
  if (!route_name_.empty() && !route_config_.value)
    return ResourceKey{ResourceType::kRouteConfig, route_name_};
  for (const auto& [name, cluster] : clusters_)
    if (!cluster.value) return ResourceKey{ResourceType::kCluster, name.str()};
  for (const auto& [name, endpoints] : endpoints_)
    if (!endpoints.value) return ResourceKey{ResourceType::kEndpoints, name};
  for (const auto& [name, resolution] : names_)
    if (!resolution.answered()) return name;
  return std::nullopt;
}

bool WatchedResources::all_answered() const {
  const auto has_value = [](const auto& entry) { return entry.second.value.has_value(); };
  const auto has_answer = [](const auto& entry) { return entry.second.answered(); };
  return std::ranges::all_of(clusters_, has_value) && std::ranges::all_of(endpoints_, has_value) &&
         std::ranges::all_of(names_, has_answer);
}

}  // namespace signalbox::xds
