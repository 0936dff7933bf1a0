// SPDX-License-Identifier: Apache-2.0
//
// The rules that World checks in every state, and at rest.
#include <algorithm>

#include "absl/strings/str_cat.h"

#include "tests/orders/world.hpp"

namespace signalbox::orders {

// A snapshot that a call may still read.
std::string World::broken_snapshot(const lb::Snapshot& snapshot) const {
  if (snapshot.selector == nullptr) return "";  // Calls wait for the first routes.
  const ClusterName& cluster = choice_of(snapshot).name();
  if (!picker_knows(snapshot, cluster)) {
    return absl::StrCat("snapshot ",
                        snapshot.sequence,
                        " routes to cluster ",
                        cluster.str(),
                        ", which its picker does not know [A31-7, A31-18]");
  }
  if (!tree_.has(cluster)) {
    return absl::StrCat("snapshot ",
                        snapshot.sequence,
                        " can be read and routes to cluster ",
                        cluster.str(),
                        ", which has no policy any more [A31-14]");
  }
  return "";
}

std::string World::broken_call(const Call& call) const {
  if (call.ref == nullptr) return "";
  const std::string what = absl::StrCat("a call uses cluster ", call.ref->name().str());
  if (!tree_.has(call.ref->name())) return what + ", which has no policy any more [A31-15]";
  const lb::Snapshot& newest = *calls_.newest();
  if (!picker_knows(newest, call.ref->name()))
    return what + ", which the newest picker does not know [A31-15]";
  const auto is_of_call = [&](const auto& kept) { return kept.second.get() == call.ref; };
  if (std::ranges::none_of(*newest.clusters, is_of_call))
    return what + " by a reference that the channel does not watch [A31-15]";
  return "";
}

std::string World::broken() const {
  for (const auto& ref : refs_) {
    const std::int64_t holders = calls_.holders_of(ref.get());
    if (story_.plant == Plant::kUseEndsWithThePick || ref->uses() == holders) continue;
    return absl::StrCat("cluster ",
                        ref->name().str(),
                        " has ",
                        ref->uses(),
                        " uses, and ",
                        holders,
                        " calls hold it [A31-13]");
  }
  if (calls_.newest() == nullptr) return "";
  if (std::string why = broken_snapshot(*calls_.newest()); !why.empty()) return why;
  for (const Call& call : calls_.all()) {
    std::string why = call.reading == nullptr ? "" : broken_snapshot(*call.reading);
    if (why.empty()) why = broken_call(call);
    if (!why.empty()) return why;
  }
  return "";
}

std::string World::broken_at_rest() const {
  const Configuration& last = story_.configurations.back();
  const std::set<ClusterName> wanted{ClusterName(last.cluster)};
  const auto is_over = [](const Call& call) { return call.phase == CallPhase::kEnded; };
  if (!std::ranges::all_of(calls_.all(), is_over)) return "a call waits for ever [A31-17]";
  const bool is_routed = calls_.newest() != nullptr && calls_.newest()->selector != nullptr;
  if (!is_routed || choice_of(*calls_.newest()).name().str() != last.cluster)
    return "the last configuration is not the published one";
  if (endpoint_of(*calls_.newest()) != last.endpoint)
    return "calls do not go to the endpoint of the last configuration";
  if (tree_.clusters() != wanted) return "a cluster that nothing uses is in the tree [A31-14]";
  if (referred_ != wanted) return "the watcher is told to keep a cluster that nothing uses";
  if (tree_.addresses() != std::set<Address>{Address(last.endpoint)})
    return "the subchannels are not those of the last configuration";
  if (tree_.applied() != ordered_) return "the newest generation was not applied everywhere";
  return "";
}

}  // namespace signalbox::orders
