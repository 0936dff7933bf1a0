// SPDX-License-Identifier: Apache-2.0
#include "xds/client/resource_cache.hpp"

#include "messages/overloaded.hpp"

namespace signalbox::xds {
namespace {

// Listeners and clusters are compared member by member. The functions name the members by
// structured bindings, so a new member is a compile error here.

bool same(const Listener& left, const Listener& right) {
  const auto& [name, routes, max_stream_duration, filters] = left;
  using Inline = std::shared_ptr<const RouteConfig>;
  const auto* a = std::get_if<Inline>(&routes);
  const auto* b = std::get_if<Inline>(&right.routes);
  const bool same_routes = a != nullptr && b != nullptr ? **a == **b : routes == right.routes;
  return same_routes && name == right.name && filters == right.filters &&
         max_stream_duration == right.max_stream_duration;
}

bool same(const RouteConfig& left, const RouteConfig& right) {
  return left == right;
}

bool same(const Cluster& left, const Cluster& right) {
  const auto& [name,
               discovery,
               lb_policy,
               connect_timeout,
               idle_timeout,
               override_host_status,
               max_concurrent_requests,
               max_connections_per_endpoint,
               outlier_detection,
               tls,
               health_checks,
               aggregate_mode,
               panic_threshold,
               load_reporting] = left;
  return name == right.name && discovery == right.discovery &&
         same_config(lb_policy, right.lb_policy) && connect_timeout == right.connect_timeout &&
         idle_timeout == right.idle_timeout && override_host_status == right.override_host_status &&
         max_concurrent_requests == right.max_concurrent_requests &&
         max_connections_per_endpoint == right.max_connections_per_endpoint &&
         outlier_detection == right.outlier_detection && tls == right.tls &&
         same_checks(health_checks, right.health_checks) &&
         aggregate_mode == right.aggregate_mode && panic_threshold == right.panic_threshold &&
         load_reporting == right.load_reporting;
}

bool same(const Endpoints& left, const Endpoints& right) {
  return left == right;
}

}  // namespace

CacheEntry* ResourceCache::find(const ResourceKey& key) {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

CacheEntry& ResourceCache::insert(const ResourceKey& key, Authority* authority) {
  CacheEntry& entry = entries_[key];
  entry.state.key = key;
  entry.authority = authority;
  if (authority != nullptr) of_authority_[authority].insert(&entry);
  recount(entry);
  return entry;
}

void ResourceCache::erase(const ResourceKey& key) {
  const auto found = entries_.find(key);
  CacheEntry& entry = found->second;
  uncount(entry);
  if (entry.authority != nullptr) of_authority_.at(entry.authority).erase(&entry);
  entries_.erase(found);
}

std::set<std::string> ResourceCache::names_at(ServerId server, ResourceType type) const {
  std::set<std::string> names;
  for (auto entry = entries_.lower_bound(ResourceKey{type, ""});
       entry != entries_.end() && entry->first.type == type;
       ++entry) {
    const Authority* authority = entry->second.authority;
    if (authority != nullptr && authority->uses(server))
      names.insert(names.end(), entry->first.name);
  }
  return names;
}

const ResourceCache::OfAuthority& ResourceCache::of(const Authority& authority) const {
  static const OfAuthority none;
  const auto found = of_authority_.find(&authority);
  return found == of_authority_.end() ? none : found->second;
}

void ResourceCache::recount(CacheEntry& entry) {
  const absl::string_view state = cache_state(entry.state);
  if (state == entry.counted) return;
  uncount(entry);
  entry.counted = state;
  ++counts_[{entry.state.key.type, state}];
}

void ResourceCache::uncount(const CacheEntry& entry) {
  if (entry.counted.empty()) return;
  const auto found = counts_.find({entry.state.key.type, entry.counted});
  if (--found->second == 0) counts_.erase(found);
}

bool same_content(const Resource& left, const Resource& right) {
  return std::visit(
      Overloaded{
          []<typename T>(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) {
            return a == b || same(*a, *b);
          },
          [](const auto&, const auto&) { return false; },
      },
      left,
      right);
}

}  // namespace signalbox::xds
