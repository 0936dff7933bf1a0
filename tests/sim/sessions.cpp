// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sessions.hpp"

#include <algorithm>
#include <chrono>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "tests/sim/calls.hpp"

namespace signalbox::sim {

using std::chrono::minutes;
using std::chrono::seconds;

namespace {

// Whether the route that takes the path leads to the cluster.
bool is_named(const std::string& cluster, const std::string& path, const TargetModel& target) {
  const auto route = std::ranges::find_if(target.routes, [&](const RouteModel& known) {
    return path.compare(0, known.prefix.size(), known.prefix) == 0;
  });
  return std::ranges::any_of(route->clusters,
                             [&](const auto& choice) { return choice.first == cluster; });
}

// The leaves in which hosts of the cluster's calls are looked up now: the leaf in use, or in tiered
// mode all leaves. When every leaf fails, the last leaf is in use (A56): new calls fail there, but
// sessions may stay on its DRAINING hosts.
std::vector<std::string> leaves_in_use(const Topology& topology, const std::string& cluster) {
  const auto found = topology.clusters.find(cluster);
  if (found == topology.clusters.end()) return {};
  if (found->second.kind != ClusterKind::kAggregate) return {cluster};
  if (is_tiered(topology, cluster)) return leaves_of(topology, cluster);
  if (const auto leaf = serving_leaf(topology, cluster)) return {*leaf};
  const std::vector<std::string> leaves = leaves_of(topology, cluster);
  return leaves.empty() ? leaves : std::vector<std::string>{leaves.back()};
}

std::string hosts_text(const std::set<Address>& hosts) {
  return absl::StrJoin(
      hosts, " ", [](std::string* out, const Address& host) { out->append(host.str()); });
}

// Whether the leaf is a DNS cluster, or unknown. Then the model cannot tell which host gets calls:
// all addresses of a DNS name are one endpoint, and any of them may be connected.
bool is_of_a_name(const std::string& leaf, const Topology& topology) {
  const auto found = topology.clusters.find(leaf);
  return found == topology.clusters.end() || found->second.kind == ClusterKind::kDns;
}

void check_set_cookie(const Calls::Ending& ending,
                      const Topology& topology,
                      const std::string& call,
                      FakeComplaints& complaints) {
  const auto sent = read_cookie(ending.cookie);
  const std::string leaf = owner_of(*ending.address);
  if (is_of_a_name(leaf, topology)) return;
  const HostModel* const host = find_host(topology.clusters.at(leaf), *ending.address);
  // EDS reports a host that is both draining and unhealthy as UNHEALTHY. It gets calls only in
  // panic.
  const bool is_draining = host != nullptr && host->draining && !host->unhealthy;
  if (host != nullptr && !is_draining && !is_served(*host)) {
    complaints.require(
        ending.set_cookie.empty(),
        "no session begins on a host that is degraded, or used in panic alone [A55-30]",
        absl::StrCat(call, ": ", ending.address->str(), " ", ending.set_cookie));
    return;
  }
  const SessionCookieText is{{*ending.address}, ending.cluster};
  const bool changed = !sent || *sent != is;
  complaints.require(changed == !ending.set_cookie.empty(),
                     "a session is told where it is exactly if that is news [A55-21, A55-24]",
                     absl::StrCat(call, ": ", ending.address->str(), " ", ending.set_cookie));
}

}  // namespace

std::string cookie_of(const std::string& set_cookie) {
  return set_cookie.substr(0, set_cookie.find(';'));
}

std::optional<SessionCookieText> read_cookie(const std::string& cookie) {
  absl::string_view encoded = cookie;
  std::string text;
  if (!absl::ConsumePrefix(&encoded, absl::StrCat(kCookieName, "=")) ||
      !absl::Base64Unescape(encoded, &text))
    return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(text, ';');
  if (parts.size() != 2 || parts[0].empty()) return std::nullopt;
  SessionCookieText said{{}, parts[1]};
  for (const absl::string_view host : absl::StrSplit(parts[0], ','))
    said.hosts.emplace_back(std::string(host));
  return said;
}

std::string write_cookie(const SessionCookieText& text) {
  const std::string hosts = absl::StrJoin(
      text.hosts, ",", [](std::string* out, const Address& host) { out->append(host.str()); });
  return absl::StrCat(kCookieName, "=", absl::Base64Escape(absl::StrCat(hosts, ";", text.cluster)));
}

std::string forge_cookie(FakeChance& dice) {
  const std::string owner = cluster_name(dice.below(kClusters));
  const std::string cluster = cluster_name(dice.below(kClusters));
  const Address host = address_of(owner, static_cast<int>(dice.below(kHosts)));
  switch (dice.below(5)) {
    case 0:
      return absl::StrCat(kCookieName, "=", "no base64!");
    case 1:
      return write_cookie({{Address("169.254.169.254:80")}, cluster});
    case 2:
      return write_cookie({{host}, kGhost});
    case 3:
      return write_cookie({{Address("127.0.0.1:1"), host}, cluster});
    default:
      return write_cookie({{host}, cluster});
  }
}

std::set<Address> must_stay_on(const SessionCookieText& cookie,
                               const std::string& path,
                               const std::string& cluster,
                               const TargetModel& target,
                               const Topology& topology) {
  if (!has_sessions(target, path)) return {};
  std::set<Address> hosts;
  const std::vector<std::string> leaves = leaves_in_use(topology, cluster);
  for (const Address& address : cookie.hosts) {
    if (address.str().rfind("10.0.", 0) != 0) continue;
    const std::string leaf = owner_of(address);
    if (std::ranges::count(leaves, leaf) == 0) continue;
    if (is_of_a_name(leaf, topology)) return {};
    const ClusterModel& model = topology.clusters.at(leaf);
    const HostModel* const host = find_host(model, address);
    if (host != nullptr && may_stay(model, *host)) hosts.insert(address);
  }
  return hosts;
}

std::set<std::string> may_stay_in(const SessionCookieText& cookie,
                                  const std::string& path,
                                  const std::string& cluster,
                                  const TargetModel& target,
                                  const Topology& topology) {
  std::set<std::string> names;
  if (!has_sessions(target, path) || !is_tiered(topology, cluster)) return names;
  const std::vector<std::string> leaves = leaves_of(topology, cluster);
  for (const Address& address : cookie.hosts) {
    if (address.str().rfind("10.0.", 0) != 0) continue;
    const std::string leaf = owner_of(address);
    if (std::ranges::count(leaves, leaf) != 0 && is_of_a_name(leaf, topology)) names.insert(leaf);
  }
  return names;
}

void sessions_stay_where_they_may(const Calls& calls,
                                  const TargetModel& target,
                                  const Topology& topology,
                                  FakeComplaints& complaints) {
  for (const auto& [number, ending] : calls.endings()) {
    const std::string call = absl::StrCat("call ", number, " to ", ending.cluster);
    if (!has_sessions(target, ending.path)) {
      complaints.require(ending.set_cookie.empty(),
                         "only calls of sessions are answered with a cookie [A55-14]",
                         absl::StrCat(call, ": ", ending.set_cookie));
      continue;
    }
    const auto cookie = read_cookie(ending.cookie);
    if (cookie && is_named(cookie->cluster, ending.path, target)) {
      complaints.require(ending.cluster == cookie->cluster,
                         "a session stays with its cluster while the route names it [A60]",
                         absl::StrCat(call, ", not ", cookie->cluster));
    }
    if (ending.state != CallState::kCompleted) continue;
    check_set_cookie(ending, topology, call, complaints);
    if (!cookie) continue;
    const std::set<Address> hosts =
        must_stay_on(*cookie, ending.path, ending.cluster, target, topology);
    complaints.require(
        hosts.empty() || hosts.contains(*ending.address),
        "a session stays on its host while that is usable [A55, A75]",
        absl::StrCat(call, " chose ", ending.address->str(), ", not ", hosts_text(hosts)));
  }
}

// --- addresses that are still needed -------------------------------------------

void Needs::note(const Topology& topology, Instant now) {
  for (const Address& address : needed_)
    needed_until_[address] = now;
  needed_ = all_served(topology);
  last_change_ = now;
}

void Needs::nobody_is_kept_for_nothing(const std::map<Address, Instant>& wished,
                                       const Topology& topology,
                                       const Setting& setting,
                                       FakeComplaints& complaints) const {
  // A priority that is no longer needed is kept for 15 minutes; one minute is a margin.
  constexpr Duration kRetention = minutes(16);
  constexpr Duration kSweep = seconds(5);
  constexpr Duration kRestart = seconds(30);
  const Instant now = setting.clock.now();
  const std::set<std::string> clusters = reachable(topology);
  for (const auto& [address, count] : setting.connector->wanted()) {
    if (needed_.contains(address)) continue;
    Instant until = last_change_ + minutes(1);
    const auto needed = needed_until_.find(address);
    if (needed != needed_until_.end()) until = std::max(until, needed->second + kRetention);
    const std::string owner = owner_of(address);
    const auto found = topology.clusters.find(owner);
    const HostModel* host = nullptr;
    if (found != topology.clusters.end() && clusters.contains(owner))
      host = find_host(found->second, address);
    const auto last = wished.find(address);
    if (host != nullptr && may_stay(found->second, *host) && last != wished.end()) {
      const Duration idle = std::max(idle_timeout(found->second), kSweep) + kSweep;
      until = std::max({until, last->second + idle + seconds(5), last_death_ + kRestart + idle});
    }
    complaints.require(now <= until,
                       "nobody is kept for nothing [A75-29, A75-36]",
                       absl::StrCat(address.str(), " is held by somebody"));
  }
}

}  // namespace signalbox::sim
