// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/promises.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "absl/strings/str_cat.h"

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

void check_choice(const Seen& seen,
                  const std::string& leaf,
                  const ClusterModel& model,
                  FakeComplaints& complaints) {
  const auto localities = best_localities(leaf, model);
  const bool by_name = model.kind == ClusterKind::kDns;
  const Chooses chooses =
      by_name && model.policy->chooses != Chooses::kByHash ? Chooses::kOne : model.policy->chooses;
  for (const auto& hosts : localities) {
    std::size_t reached = 0;
    for (const Address& host : hosts) {
      reached += seen.chosen.count(host);
      complaints.require(chooses != Chooses::kEverybody || seen.chosen.contains(host),
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
  if (percent < 100) check_choice(seen, leaf, model, complaints);
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
                                  DropBook& drops,
                                  FakeComplaints& complaints) {
  if (snapshot.picker == nullptr) return;
  for (const std::string& cluster : routed(target)) {
    if (is_tiered(topology, cluster))
      check_tiers(*snapshot.picker, cluster, topology, drops, complaints);
    const auto leaf = serving_leaf(topology, cluster);
    if (!leaf || is_tiered(topology, cluster)) continue;
    check_cluster(*snapshot.picker, cluster, *leaf, topology.clusters.at(*leaf), drops, complaints);
  }
}

}  // namespace signalbox::sim
