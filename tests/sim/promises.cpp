// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/promises.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tests/sim/shares.hpp"

namespace signalbox::sim {
namespace {

// Enough picks to reach every host, whatever the seed: a host gets at least one of sixty calls on
// average.
constexpr std::uint64_t kPicks = 2'000;
constexpr std::uint64_t kHashes = 16;
// A cluster with a limit of concurrent calls below this is not tested for ejection, because too few
// calls reach its hosts.
constexpr unsigned kFewest = 8;

std::optional<std::uint64_t> hash_of(std::uint64_t pick) {
  return (pick % kHashes) * 0x9e3779b97f4a7c15ULL;
}

struct Seen {
  std::map<Address, std::uint64_t> chosen;
  std::map<Address, std::set<CallZone>> zones;
  std::map<std::uint64_t, std::set<Address>> by_hash;
  std::uint64_t queued = 0;
  std::uint64_t dropped = 0;
  std::string failed;
};

Seen ask_often(const Picker& picker,
               const ClusterName& cluster,
               std::uint64_t picks,
               DropBook& drops) {
  Seen seen;
  for (std::uint64_t i = 0; i < picks; ++i) {
    const PickResult result = picker.pick(
        {.path = "/a/x", .cluster = &cluster, .seed = i * 0x9e3779b9ULL + 1, .hash = hash_of(i)});
    if (result.ask && result.ask_target != nullptr) result.ask_target->tell(*result.ask);
    if (const auto* complete = std::get_if<Complete>(&result.outcome)) {
      const Address& address = complete->connection->address();
      ++seen.chosen[address];
      seen.zones[address].insert(complete->zone);
      seen.by_hash[i % kHashes].insert(address);
    } else if (std::holds_alternative<Queue>(result.outcome)) {
      ++seen.queued;
    } else if (const auto* drop = std::get_if<Drop>(&result.outcome)) {
      ++seen.dropped;
      drops.note(drop->status);
    } else {
      seen.failed = std::get<Fail>(result.outcome).status.ToString();
    }
  }
  return seen;
}

// The picks of each host that shares promise, within five standard deviations. Policies that take
// turns are exact but for one turn in each locality.
void check_shares(const Seen& seen,
                  const std::map<Address, double>& shares,
                  const char* sentence,
                  const std::string& whose,
                  FakeComplaints& complaints) {
  std::uint64_t all = 0;
  for (const auto& [host, picks] : seen.chosen)
    all += picks;
  const auto count = static_cast<double>(all);
  for (const auto& [host, share] : shares) {
    const auto found = seen.chosen.find(host);
    const double is = found == seen.chosen.end() ? 0 : static_cast<double>(found->second);
    const double allowed = 5 * std::sqrt(count * share * (1 - share)) + (share > 0 ? 2 : 0);
    complaints.require(
        std::abs(is - count * share) <= allowed,
        sentence,
        absl::StrCat(whose, ": ", host.str(), " has ", is, " of ", all, ", not ", share));
  }
}

void check_zones(const Seen& seen,
                 const std::string& whose,
                 const ClusterModel& model,
                 const std::string& zone,
                 FakeComplaints& complaints) {
  for (const auto& [host, zones] : seen.zones) {
    const std::string its = zone_of(model, host);
    const CallZone is = zone.empty() || its.empty() ? CallZone::kUnknown
                        : zone == its               ? CallZone::kOwn
                                                    : CallZone::kOther;
    complaints.require(zones == std::set<CallZone>{is},
                       "a pick knows whether it stays in its zone [ENV-34]",
                       absl::StrCat(whose, ": ", host.str(), " in ", its, ", called from ", zone));
  }
}

// Begins one call to a host, and checks how picks avoid the host meanwhile.
void check_bias(const Picker& picker,
                const std::string& cluster,
                const std::string& leaf,
                const ClusterModel& model,
                DropBook& drops,
                FakeComplaints& complaints) {
  if (best_hosts(leaf, model).size() < 2) return;
  const ClusterName name(cluster);
  std::vector<Use> call;
  std::optional<Address> busy;
  for (std::uint64_t i = 0; i < kPicks && !busy; ++i) {
    const PickResult result =
        picker.pick({.path = "/a/x", .cluster = &name, .seed = i * 0x9e3779b9ULL + 1});
    if (const auto* drop = std::get_if<Drop>(&result.outcome)) drops.note(drop->status);
    const auto* complete = std::get_if<Complete>(&result.outcome);
    if (complete == nullptr) continue;
    busy = complete->connection->address();
    for (const CallTracker* tracker : result.trackers)
      call.emplace_back(*tracker);
  }
  if (!busy) return;
  const Seen seen = ask_often(picker, name, kPicks, drops);
  check_shares(seen,
               shares_with_busy(leaf, model, *busy),
               "a busy host is avoided as the bias says [active_request_bias]",
               absl::StrCat(cluster, " by ", leaf, " busy at ", busy->str()),
               complaints);
}

void check_choice(const Seen& seen,
                  const std::string& leaf,
                  const ClusterModel& model,
                  const std::optional<std::map<Address, double>>& shares,
                  FakeComplaints& complaints) {
  const auto localities = best_localities(leaf, model);
  const bool by_name = model.kind == ClusterKind::kDns;
  const Chooses chooses =
      by_name && model.policy->chooses != Chooses::kByHash ? Chooses::kOne : model.policy->chooses;
  // check_shares() knows how often each host is reached, if shares are known.
  const bool must_reach = chooses == Chooses::kEverybody && !shares;
  for (const auto& hosts : localities) {
    std::size_t reached = 0;
    for (const Address& host : hosts) {
      reached += seen.chosen.count(host);
      complaints.require(!must_reach || seen.chosen.contains(host),
                         "who spreads calls reaches every host",
                         absl::StrCat(leaf, " never chose ", host.str()));
    }
    complaints.require(chooses != Chooses::kOnePerLocality || reached == 1,
                       "who picks first in each locality stays with one host there",
                       absl::StrCat(hosts.front().str(), " …: ", reached, " hosts"));
  }
  complaints.require(chooses != Chooses::kOne || seen.chosen.size() == 1,
                     "who picks first stays with one host",
                     absl::StrCat(leaf, " chose ", seen.chosen.size()));
  if (chooses != Chooses::kByHash) return;
  for (const auto& [hash, addresses] : seen.by_hash) {
    complaints.require(addresses.size() == 1,
                       "equal hashes go to the same host [A42]",
                       absl::StrCat(leaf, " chose ", addresses.size()));
  }
}

void check_cluster(const Picker& picker,
                   const std::string& cluster,
                   const std::string& leaf,
                   const ClusterModel& model,
                   const std::string& zone,
                   const Calls& calls,
                   DropBook& drops,
                   FakeComplaints& complaints) {
  const unsigned percent = drop_percent(model);
  const bool some_drop = percent > 0 && percent < 100;
  const std::uint64_t picks =
      model.policy->chooses == Chooses::kEverybody || some_drop ? kPicks : 4 * kHashes;
  const Seen seen = ask_often(picker, ClusterName(cluster), picks, drops);
  const std::string whose = absl::StrCat(cluster, " by ", leaf);
  complaints.require(
      seen.failed.empty(), "no pick fails where hosts are up", whose + ": " + seen.failed);
  const std::uint64_t wanted = picks * percent / 100;
  const std::uint64_t allowed = some_drop ? picks / 20 : 0;
  complaints.require(wanted <= seen.dropped + allowed && seen.dropped <= wanted + allowed,
                     "so many picks are dropped as was said [A32]",
                     absl::StrCat(whose, ": ", seen.dropped, " of ", picks));
  complaints.require(seen.queued == 0,
                     "no pick is queued where hosts are up",
                     absl::StrCat(whose, ": ", seen.queued, " of ", picks));
  if (percent == 100) return;
  const auto in_flight = calls.in_flight().find(leaf);
  const bool is_busy = in_flight != calls.in_flight().end() && in_flight->second != 0;
  const std::optional<double> bias = model.policy->bias;
  const auto shares = is_busy && bias ? std::nullopt : shares_of(leaf, model, zone);
  check_choice(seen, leaf, model, shares, complaints);
  check_zones(seen, whose, model, zone, complaints);
  if (!shares) return;
  check_shares(seen,
               *shares,
               "each host has the share of calls that is its [A52, A58, ENV-34, ENV-35]",
               whose,
               complaints);
  if (bias.value_or(0) != 0) check_bias(picker, cluster, leaf, model, drops, complaints);
}

// Checks that only hosts of tiers with a load get calls. A pick does not show which tier was chosen
// for it, so the hosts of all such tiers are allowed.
void check_tiers(const Picker& picker,
                 const std::string& cluster,
                 const Topology& topology,
                 DropBook& drops,
                 FakeComplaints& complaints) {
  const auto places = serving_places(topology, cluster);
  if (places.empty()) return;
  std::set<Address> hosts;
  for (const Place& place : places) {
    for (const Address& host : hosts_at(topology, place))
      hosts.insert(host);
  }
  const Seen seen = ask_often(picker, ClusterName(cluster), kPicks, drops);
  complaints.require(
      seen.failed.empty(), "no pick fails where hosts are up", cluster + ": " + seen.failed);
  complaints.require(seen.queued == 0,
                     "no pick is queued where hosts are up",
                     absl::StrCat(cluster, ": ", seen.queued, " of ", kPicks));
  for (const auto& [host, calls] : seen.chosen) {
    complaints.require(hosts.contains(host),
                       "a pick stays in the tiers that have a load [ENV-4]",
                       absl::StrCat(cluster, ": ", host.str()));
  }
}

// Whether an ejected host of the leaf must stop getting calls: the leaf gets many calls, and its
// policy leaves ejected hosts out.
bool minds_ejection(const std::string& leaf, const ClusterModel& model) {
  if (!model.ejects || model.kind != ClusterKind::kEds || drop_percent(model) >= 100) return false;
  if (limit(model).value_or(kFewest) < kFewest) return false;
  const Chooses chooses = model.policy->chooses;
  return (chooses == Chooses::kEverybody || chooses == Chooses::kByHash) &&
         best_hosts(leaf, model).size() > 1;
}

}  // namespace

std::optional<Suspect> find_suspect(const lb::Snapshot& snapshot,
                                    const TargetModel& target,
                                    const Topology& topology,
                                    DropBook& drops) {
  if (snapshot.picker == nullptr) return std::nullopt;
  for (const std::string& cluster : routed(target)) {
    const auto leaf = serving_leaf(topology, cluster);
    if (is_tiered(topology, cluster)) continue;
    if (!leaf || !minds_ejection(*leaf, topology.clusters.at(*leaf))) continue;
    const Seen seen = ask_often(*snapshot.picker, ClusterName(cluster), 4 * kHashes, drops);
    const auto most =
        std::ranges::max_element(seen.chosen, {}, [](const auto& entry) { return entry.second; });
    if (most != seen.chosen.end()) return Suspect{cluster, most->first};
  }
  return std::nullopt;
}

bool is_chosen(const lb::Snapshot& snapshot, const Suspect& suspect, DropBook& drops) {
  return snapshot.picker != nullptr &&
         ask_often(*snapshot.picker, ClusterName(suspect.cluster), 4 * kHashes, drops)
             .chosen.contains(suspect.host);
}

void ask_by_hash(const lb::Snapshot& snapshot,
                 const TargetModel& target,
                 const Topology& topology,
                 DropBook& drops) {
  if (snapshot.picker == nullptr) return;
  for (const std::string& cluster : routed(target)) {
    // A tiered cluster needs more picks, so that each hash is tried in each tier.
    const std::uint64_t picks = is_tiered(topology, cluster) ? kPicks : 4 * kHashes;
    ask_often(*snapshot.picker, ClusterName(cluster), picks, drops);
  }
}

void policies_keep_their_promises(const lb::Snapshot& snapshot,
                                  const TargetModel& target,
                                  const Topology& topology,
                                  const Calls& calls,
                                  DropBook& drops,
                                  FakeComplaints& complaints) {
  if (snapshot.picker == nullptr) return;
  for (const std::string& cluster : routed(target)) {
    if (is_tiered(topology, cluster))
      check_tiers(*snapshot.picker, cluster, topology, drops, complaints);
    const auto leaf = serving_leaf(topology, cluster);
    if (!leaf || is_tiered(topology, cluster)) continue;
    check_cluster(*snapshot.picker,
                  cluster,
                  *leaf,
                  topology.clusters.at(*leaf),
                  topology.zone,
                  calls,
                  drops,
                  complaints);
  }
}

}  // namespace signalbox::sim
