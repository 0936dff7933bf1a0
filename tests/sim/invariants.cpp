// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/invariants.hpp"

#include <set>
#include <variant>

#include "absl/strings/str_cat.h"

namespace signalbox::sim {
namespace {

constexpr const char* kPaths[] = {"/a/x", "/b/x", "/c/x"};
constexpr std::uint64_t kDraws = 12;

// The clusters that the selector chooses for some draws of each path.
std::set<ClusterName> choices_of(const lb::ConfigSelector& selector) {
  std::set<ClusterName> names;
  for (const char* path : kPaths) {
    for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
      const auto chosen = selector.select({path, nullptr, nullptr, seed * 0x9e3779b97f4a7c15ULL});
      const auto* selection = std::get_if<lb::Selection>(&chosen);
      if (selection != nullptr) names.insert(selection->cluster->name());
    }
  }
  return names;
}

// Whether the picker knows the cluster. Makes one pick as a call would, and delivers the ask of the
// pick (a request to a policy, such as "connect this host").
bool knows(const Picker& picker, const ClusterName& cluster, DropBook& drops) {
  const PickResult result = picker.pick({kPaths[0], nullptr, &cluster, 7});
  if (result.ask && result.ask_target != nullptr) result.ask_target->tell(*result.ask);
  const auto* drop = std::get_if<Drop>(&result.outcome);
  if (drop != nullptr) drops.note(drop->status);
  return drop == nullptr || drop->status.code() != absl::StatusCode::kInternal;
}

}  // namespace

void clusters_of_the_selector_are_clusters_of_the_picker(const lb::Snapshot& snapshot,
                                                         DropBook& drops,
                                                         FakeComplaints& complaints) {
  if (snapshot.selector == nullptr) return;
  complaints.require(snapshot.picker != nullptr, "who has a selector has a picker");
  if (snapshot.picker == nullptr) return;
  for (const ClusterName& cluster : choices_of(*snapshot.selector)) {
    complaints.require(knows(*snapshot.picker, cluster, drops),
                       "clusters(selector) ⊆ clusters(picker) in every snapshot [A31-7, A31-18]",
                       cluster.str());
  }
}

void sequence_and_generation_never_fall(const lb::Snapshot& snapshot,
                                        LastPublished& last,
                                        FakeComplaints& complaints) {
  complaints.require(snapshot.sequence > last.sequence,
                     "the sequence rises with each publication",
                     absl::StrCat(snapshot.sequence, " after ", last.sequence));
  complaints.require(snapshot.generation >= last.generation,
                     "the generation never falls",
                     absl::StrCat(snapshot.generation, " after ", last.generation));
  last = {snapshot.sequence, snapshot.generation};
}

void a_cluster_in_use_is_in_the_tree(const lb::Snapshot& snapshot,
                                     const Calls& calls,
                                     DropBook& drops,
                                     FakeComplaints& complaints) {
  if (snapshot.picker == nullptr) return;
  for (const auto& [ref, count] : calls.references()) {
    complaints.require(knows(*snapshot.picker, ref->name(), drops),
                       "a cluster in use is in the tree [A31-15]",
                       ref->name().str());
  }
}

void uses_of_a_cluster_are_the_calls_that_hold_it(const Calls& calls, FakeComplaints& complaints) {
  for (const auto& [ref, count] : calls.references()) {
    complaints.require(ref->uses() == count,
                       "uses of a cluster are the calls that hold it",
                       absl::StrCat(ref->name().str(), ": ", ref->uses(), " for ", count));
  }
}

// Running calls are counted by cluster and EDS service name. The simulator's EDS leaves have their
// cluster's name as service name, and DNS leaves have none. A leaf that changes from EDS to DNS or
// back has two counts while calls from before the change still run.
void calls_in_flight_are_within_the_limit(const std::map<std::string, std::int64_t>& in_flight,
                                          const std::map<std::string, unsigned>& limits,
                                          lb::RequestLimits& counted,
                                          FakeComplaints& complaints) {
  for (const auto& [leaf, calls] : in_flight) {
    std::int64_t all = 0;
    for (const std::string& service : {leaf, std::string()}) {
      const std::int64_t known = counted.of(ClusterName(leaf), service)->in_flight();
      const auto found = limits.find(leaf);
      complaints.require(found == limits.end() || known <= static_cast<std::int64_t>(found->second),
                         "calls in flight are within the limit of their cluster [A32]",
                         absl::StrCat(leaf, ": ", known));
      all += known;
    }
    complaints.require(all == calls,
                       "calls in flight are those that are counted [A32]",
                       absl::StrCat(leaf, ": ", all, " for ", calls));
  }
}

void no_call_waits_past_its_deadline(const Calls& calls, Instant now, FakeComplaints& complaints) {
  for (const auto& [number, call] : calls.living()) {
    complaints.require(!call.deadline || *call.deadline >= now,
                       "no call waits past its deadline",
                       absl::StrCat("call ", number));
  }
}

}  // namespace signalbox::sim
