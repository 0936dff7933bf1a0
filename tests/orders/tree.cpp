// SPDX-License-Identifier: Apache-2.0
#include "tests/orders/tree.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/policy_registry.hpp"
#include "lb/tree/cluster_manager.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::orders {
namespace {

// The leaf policy inside the configuration of a cluster's subtree.
LbConfigPtr leaf_config(LbConfigPtr config) {
  const auto child_of = Overloaded{
      [](const PriorityConfig& it) -> LbConfigPtr { return it.children.begin()->second.config; },
      [](const auto& it) -> LbConfigPtr {
        if constexpr (requires { it.child; }) {
          return it.child;
        } else {
          return nullptr;
        }
      }};
  while (true) {
    LbConfigPtr child = std::visit(child_of, static_cast<const LbConfig::variant&>(*config));
    if (child == nullptr) return config;
    config = std::move(child);
  }
}

lb::PolicyContext context_of(const ClusterName& cluster, const char* policy) {
  lb::PolicyContext context;
  context.path = PolicyPath(absl::StrCat("root/", cluster.str(), policy));
  context.cluster = cluster;
  return context;
}

}  // namespace

Tree::Tree(Post& post, Plant plant)
    : post_(post), plant_(plant), root_(lb::make_cluster_manager()) {}

std::set<ClusterName> Tree::clusters() const {
  std::set<ClusterName> names;
  for (const auto& [name, number] : running_)
    names.insert(name);
  return names;
}

std::set<Address> Tree::addresses() const {
  std::set<Address> all;
  for (const auto& [name, number] : running_) {
    for (const auto& [address, state] : clusters_[number].subchannels)
      all.insert(address);
  }
  return all;
}

std::vector<Tree::Attempt> Tree::attempts() const {
  std::vector<Attempt> attempts;
  for (const auto& [name, number] : running_) {
    for (const auto& [address, state] : clusters_[number].subchannels) {
      if (state == ConnectivityState::kConnecting) attempts.push_back({number, address});
    }
  }
  return attempts;
}

void Tree::deliver(const Letter& letter) {
  deliver_one(letter);
  while (const auto next = post_.take_at_once())
    deliver_one(*next);
}

void Tree::connect(const Attempt& attempt) {
  set_state(attempt.cluster, attempt.address, ConnectivityState::kReady);
  while (const auto next = post_.take_at_once())
    deliver_one(*next);
}

// After a configuration a policy settles its holds, as its actor does (HolderSettled).
void Tree::deliver_one(const Letter& letter) {
  if (const auto* event = std::get_if<SubchannelMapEvent>(&letter.content))
    return tell_map(cluster_of(letter.to), *event);
  const auto& event = std::get<LbEvent>(letter.content);
  lb::Policy* const policy = policy_of(letter.to);
  if (policy == nullptr) return;
  for (LbEffect& effect : policy->step(event, kNow))
    run(letter.to, effect);
  const bool holds = letter.to != kRoot && letter.to == leaf_of(cluster_of(letter.to));
  if (holds && std::holds_alternative<ConfigUpdated>(event))
    send_map(letter.to, HolderSettled{holder_of(cluster_of(letter.to))});
}

lb::Policy* Tree::policy_of(ActorId actor) {
  if (actor == kRoot) return root_.get();
  Cluster& cluster = clusters_.at(cluster_of(actor));
  return actor == cds_of(cluster_of(actor)) ? cluster.cds.get() : cluster.leaf.get();
}

void Tree::run(ActorId self, LbEffect& effect) {
  const ActorId parent = self == kRoot                      ? kChannel
                         : self == cds_of(cluster_of(self)) ? kRoot
                                                            : cds_of(cluster_of(self));
  const ChildName name = self == kRoot     ? ChildName("root")
                         : parent == kRoot ? ChildName(name_of(cluster_of(self)).str())
                                           : ChildName("child");
  std::visit(
      Overloaded{
          [&](StartChild& it) { start(self, it); },
          [&](UpdateChild& it) { send_config(self, it.child, std::move(it.update)); },
          [&](StopChild& it) { stop(self, it.child); },
          [&](Publish& it) {
            send(self,
                 parent,
                 ChildStateChanged{
                     name, it.state, it.status, std::move(it.picker), it.generation, it.hosts});
          },
          [&](ReportApplied& it) {
            if (plant_ == Plant::kAppliedIsLost) return;
            // The channel's core does not hear of it.
            if (self == kRoot) {
              applied_ = it.generation;
            } else {
              send(self, parent, ChildApplied{name, it.generation});
            }
          },
          [&](RebuildSoon&) { send(self, self, RebuildDue{}); },
          [&](ServeSubchannels& it) {
            auto& map = clusters_[cluster_of(self)].map;
            if (!map) map.emplace();
            send_map(self, MapGenerationStarted{it.settings, it.generation, it.endpoints});
          },
          [&](SettleSubchannels& it) { send_map(self, MapGenerationApplied{it.generation}); },
          [&](AcquireSubchannel& it) {
            send_map(self, SubchannelAcquired{holder_of(cluster_of(self)), it.address});
          },
          [&](ReleaseSubchannel& it) {
            send_map(self, SubchannelReleased{holder_of(cluster_of(self)), it.address});
          },
          [&](Connect& it) { send_map(self, SubchannelConnectAsked{it.address}); },
          [](CloseSubchannels&) {
            throw BrokenInvariant("a leaf cluster closes its subchannel map while it is served");
          },
          [](auto&) {},  // Timers, observations and the like.
      },
      effect);
}

void Tree::send(ActorId from, ActorId to, LbEvent event) {
  post_.send({from, to, std::move(event)});
}

void Tree::send_map(ActorId from, SubchannelMapEvent event) {
  const std::size_t number = cluster_of(from);
  SIGNALBOX_INVARIANT(
      clusters_[number].map.has_value(),
      "the subchannel map is opened before a policy below acquires (D1 of cds.hpp)");
  post_.send({from, map_of(number), std::move(event)});
}

Holder Tree::holder_of(std::size_t number) const {
  return {PolicyPath(absl::StrCat("root/", name_of(number).str(), "/leaf")), {number + 1}};
}

// --- children -------------------------------------------------------------------

void Tree::start(ActorId parent, StartChild& order) {
  if (parent == kRoot) {
    const ClusterName name(order.child.str());
    running_[name] = clusters_.size();
    Cluster& cluster = clusters_.emplace_back();
    cluster.name = name;
    cluster.cds = lb::make_policy(*order.update.config, context_of(name, ""));
  } else {
    Cluster& cluster = clusters_[cluster_of(parent)];
    cluster.leaf =
        lb::make_policy(*leaf_config(order.update.config), context_of(cluster.name, "/leaf"));
  }
  send_config(parent, order.child, std::move(order.update));
}

void Tree::send_config(ActorId parent, const ChildName& child, ConfigUpdated update) {
  if (parent == kRoot)
    return send(kRoot, cds_of(running_.at(ClusterName(child.str()))), std::move(update));
  update.config = leaf_config(update.config);
  send(parent, leaf_of(cluster_of(parent)), std::move(update));
}

// The actors of the cluster end at once: the root ignores what they send from now on, and nothing
// else hears of them.
void Tree::stop(ActorId parent, const ChildName& child) {
  SIGNALBOX_INVARIANT(parent == kRoot, "a leaf cluster keeps its leaf policy");
  const auto found = running_.find(ClusterName(child.str()));
  Cluster& cluster = clusters_[found->second];
  cluster.is_running = false;
  cluster.cds.reset();
  cluster.leaf.reset();
  cluster.map.reset();
  cluster.subchannels.clear();
  post_.drop_cluster(found->second);
  running_.erase(found);
}

// --- subchannels ----------------------------------------------------------------

void Tree::tell_map(std::size_t number, const SubchannelMapEvent& event) {
  lb::SubchannelMapCore& map = *clusters_[number].map;
  for (SubchannelMapEffect& effect : map.step(event, kNow))
    run_map(number, effect);
  map.check_invariants();
}

void Tree::run_map(std::size_t number, SubchannelMapEffect& effect) {
  auto& subchannels = clusters_[number].subchannels;
  std::visit(
      Overloaded{
          [&](SpawnSubchannel& it) { subchannels[it.address] = ConnectivityState::kIdle; },
          [&](StopSubchannel& it) { subchannels.erase(it.address); },
          [&](ConnectSubchannel& it) {
            if (subchannels.at(it.address) == ConnectivityState::kIdle)
              set_state(number, it.address, ConnectivityState::kConnecting);
          },
          [&](NotifyHolder& it) { send(map_of(number), leaf_of(number), std::move(it.state)); },
          [](auto&) {},  // There are no sessions and no health checks.
      },
      effect);
}

void Tree::set_state(std::size_t number, const Address& address, ConnectivityState state) {
  clusters_[number].subchannels.at(address) = state;
  SubchannelStateChanged told{address, state, true, absl::OkStatus(), nullptr};
  if (state == ConnectivityState::kReady)
    told.connection = std::make_shared<const Connection>(address);
  tell_map(number, told);
}

}  // namespace signalbox::orders
