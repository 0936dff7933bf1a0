// SPDX-License-Identifier: Apache-2.0
//
// The steps of a World in plain words, for traces.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "messages/overloaded.hpp"
#include "tests/orders/world.hpp"

namespace signalbox::orders {
namespace {

std::string clusters_in(const LbConfig& config) {
  std::vector<std::string> names;
  for (const auto& [name, child] : std::get<ClusterManagerConfig>(config).children)
    names.push_back(name.str() + (child.retiring ? " (retiring)" : ""));
  return absl::StrJoin(names, ", ");
}

std::string words(const LbEvent& event) {
  return std::visit(
      Overloaded{
          [](const ConfigUpdated& it) {
            const bool is_roots = std::holds_alternative<ClusterManagerConfig>(*it.config);
            return absl::StrCat(
                "takes generation ", it.generation, is_roots ? ": " + clusters_in(*it.config) : "");
          },
          [](const ChildStateChanged& it) {
            return absl::StrCat("takes the state ",
                                to_string(it.state),
                                " of ",
                                it.child.str(),
                                ", generation ",
                                it.generation);
          },
          [](const ChildApplied& it) {
            return absl::StrCat("hears that ", it.child.str(), " has applied ", it.generation);
          },
          [](const SubchannelStateChanged& it) {
            return absl::StrCat("hears that ", it.address.str(), " is ", to_string(it.state));
          },
          [](const RebuildDue&) { return std::string("ends a burst of reports"); },
          [](const auto&) { return std::string("takes another event"); },
      },
      event);
}

std::string words(const SubchannelMapEvent& event) {
  return std::visit(
      Overloaded{
          [](const SubchannelAcquired& it) { return "gives out " + it.address.str(); },
          [](const SubchannelReleased& it) { return "takes back " + it.address.str(); },
          [](const SubchannelConnectAsked& it) { return "connects " + it.address.str(); },
          [](const HolderSettled&) { return std::string("hears that the leaf has settled"); },
          [](const MapGenerationStarted& it) {
            return absl::StrCat("takes generation ", it.generation);
          },
          [](const MapGenerationApplied& it) {
            return absl::StrCat("hears that all have applied ", it.generation);
          },
          [](const auto&) { return std::string("takes another event"); },
      },
      event);
}

}  // namespace

std::string World::describe_letter(const Letter& letter) const {
  std::string receiver = letter.to == kChannel ? "the channel" : "the root";
  if (letter.to > kRoot) {
    const std::size_t cluster = cluster_of(letter.to);
    const char* const role = letter.to == cds_of(cluster)    ? "cds "
                             : letter.to == leaf_of(cluster) ? "the leaf of "
                                                             : "the map of ";
    receiver = role + tree_.name_of(cluster).str();
  }
  const auto what = [](const auto& event) { return words(event); };
  return receiver + " " + std::visit(what, letter.content);
}

std::string World::describe(const Step& step) const {
  const auto call = [&](const std::string& does) {
    return absl::StrCat("call ", step.call + 1, " ", does);
  };
  switch (step.kind) {
    case Step::Kind::kConfigure:
      return absl::StrCat("configuration ",
                          configured_ + 1,
                          " reaches the channel: calls go to cluster ",
                          story_.configurations[configured_].cluster);
    case Step::Kind::kDeliver:
      return describe_letter(post_.next(step.pair));
    case Step::Kind::kConnect:
      return "endpoint " + step.attempt.address.str() + " connects";
    case Step::Kind::kGrace:
      return absl::StrCat(
          "the channel hears that no call reads snapshot ", graces_.front() - 1, " any more");
    case Step::Kind::kScan:
      return "the channel looks for clusters that no call uses";
    case Step::Kind::kRead:
      return call(absl::StrCat("reads snapshot ", calls_.newest()->sequence));
    case Step::Kind::kChoose:
      return call("takes a use of cluster " +
                  choice_of(*calls_.all().at(step.call).reading).name().str());
    case Step::Kind::kPickAgain:
      return call(absl::StrCat("picks again in snapshot ", calls_.newest()->sequence));
    case Step::Kind::kEnd:
      return call("ends, and releases cluster " + calls_.all().at(step.call).ref->name().str());
  }
  return "";
}

}  // namespace signalbox::orders
