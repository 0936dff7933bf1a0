// SPDX-License-Identifier: Apache-2.0
//
// Tree — the policy tree of a world: the real cluster_manager, the real cds of each cluster, and
// below it the real leaf policy and the real subchannel map.
//
//   Letter ─▶ [Tree: Policy::step, SubchannelMapCore::step] ─▶ Post
//   connect() ─▶ the endpoint's subchannel becomes READY
//
// The tree does what actors/policy_actor and actors/subchannel_map_actor do with the effects of
// their cores. The leaf policy stands directly below cds: the policies between them in the product
// decide nothing about generations that this leaf does not. Timers of policies do not fire, and
// attempts to connect never fail.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lb/policy.hpp"
#include "lb/subchannel/subchannel_map_core.hpp"
#include "tests/orders/post.hpp"

namespace signalbox::orders {

class Tree {
 public:
  Tree(Post& post, Plant plant);

  /// Delivers a letter to a policy or a subchannel map, and then all letters that are delivered at
  /// once. Throws BrokenInvariant, as cores do.
  void deliver(const Letter& letter);

  struct Attempt {
    std::size_t cluster = 0;  ///< The number of the cluster, in the order of starts.
    Address address;
  };

  /// The attempts to connect that have not ended.
  std::vector<Attempt> attempts() const;

  /// The attempt succeeds.
  void connect(const Attempt& attempt);

  /// Whether the root has started the cluster's policy, and has not stopped it.
  bool has(const ClusterName& cluster) const { return running_.contains(cluster); }

  /// The clusters with a running policy.
  std::set<ClusterName> clusters() const;

  /// Whether the cluster with this number is running.
  bool is_running(std::size_t cluster) const { return clusters_.at(cluster).is_running; }

  const ClusterName& name_of(std::size_t cluster) const { return clusters_.at(cluster).name; }

  std::size_t started() const { return clusters_.size(); }

  /// The addresses that have a subchannel, of all running clusters.
  std::set<Address> addresses() const;

  /// The generation in the root's last ReportApplied.
  Generation applied() const { return applied_; }

 private:
  struct Cluster {
    ClusterName name;
    bool is_running = true;
    std::unique_ptr<lb::Policy> cds;
    std::unique_ptr<lb::Policy> leaf;
    std::optional<lb::SubchannelMapCore> map;
    std::map<Address, ConnectivityState> subchannels;
  };

  void deliver_one(const Letter& letter);
  void run(ActorId self, LbEffect& effect);
  void run_map(std::size_t number, SubchannelMapEffect& effect);
  void tell_map(std::size_t number, const SubchannelMapEvent& event);
  void set_state(std::size_t number, const Address& address, ConnectivityState state);
  void start(ActorId parent, StartChild& order);
  void stop(ActorId parent, const ChildName& child);
  void send_config(ActorId parent, const ChildName& child, ConfigUpdated update);
  void send(ActorId from, ActorId to, LbEvent event);
  void send_map(ActorId from, SubchannelMapEvent event);
  lb::Policy* policy_of(ActorId actor);
  Holder holder_of(std::size_t number) const;

  Post& post_;
  const Plant plant_;
  std::unique_ptr<lb::Policy> root_;
  std::vector<Cluster> clusters_;
  std::map<ClusterName, std::size_t> running_;  ///< The numbers of the running clusters.
  Generation applied_ = 0;
};

}  // namespace signalbox::orders
