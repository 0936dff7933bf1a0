// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cluster_tree.hpp"

#include <catch2/catch.hpp>

#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

/// Names the priorities of cluster c; the names of one update are known to the next update.
struct Naming {
  XdsWorld world;
  PriorityNames names;

  Texts assign(const XdsWorld::Priorities& priorities) {
    world.eds("c", priorities);
    const auto config = world.config();
    const auto& leaf = std::get<LeafEndpoints>((*config->clusters.at(ClusterName("c")))->children);
    Texts texts;
    for (const ChildName& name : names.assign(*leaf.endpoints))
      texts.push_back(name.str());
    return texts;
  }
};

}  // namespace

TEST_CASE("cluster_tree: a priority's name lives on while a locality of it does",
          "[lb][cluster_tree][A37-21]") {
  Naming naming;
  REQUIRE(naming.assign({"x:a", "y:b", "z:c"}) == Texts{"child0", "child1", "child2"});

  SECTION("when nothing changes but endpoints") {
    CHECK(naming.assign({"x:a,d", "y:b", "z:c"}) == Texts{"child0", "child1", "child2"});
  }
  SECTION("when a priority in the middle goes") {
    CHECK(naming.assign({"x:a", "z:c"}) == Texts{"child0", "child2"});
  }
  SECTION("when they change places") {
    CHECK(naming.assign({"z:c", "x:a", "y:b"}) == Texts{"child2", "child0", "child1"});
  }
  SECTION("when one is added on top") {
    CHECK(naming.assign({"w:e", "x:a", "y:b", "z:c"}) ==
          Texts{"child3", "child0", "child1", "child2"});
  }
  SECTION("when two become one, that of the higher") {
    CHECK(naming.assign({"z:c y:b"}) == Texts{"child1"});
  }
  SECTION("when one becomes two, in the higher, and the other is new") {
    REQUIRE(naming.assign({"x:a y:b"}) == Texts{"child0"});
    CHECK(naming.assign({"y:b", "x:a"}) == Texts{"child0", "child3"});
  }
  SECTION("when none survives, it is new") {
    CHECK(naming.assign({"v:a"}) == Texts{"child3"});
  }
  SECTION("when it is empty and stays empty") {
    REQUIRE(naming.assign({""}) == Texts{"child3"});
    CHECK(naming.assign({""}) == Texts{"child3"});
  }
}

TEST_CASE("cluster_tree: a leaf's priorities stand below what acts once per cluster",
          "[lb][cluster_tree][A75-2][A75-5][A75-6][A37-16][A37-19][A37-33]") {
  Cluster cluster;
  cluster.name = ClusterName("orders");
  cluster.lb_policy = make_lb_config(PickFirstConfig{});
  const bool eds = GENERATE(true, false);
  if (eds) {
    cluster.discovery = EdsDiscovery{"orders"};
  } else {
    cluster.discovery = DnsDiscovery{DnsName("orders:80")};
  }
  const auto tree =
      leaf_tree(cluster, cluster.lb_policy, {ChildName("child0"), ChildName("child1")});

  const auto& cluster_impl = std::get<OutlierDetectionConfig>(*tree).child;
  const auto& override_host = std::get<ClusterImplConfig>(*cluster_impl).child;
  const auto& below = std::get<OverrideHostConfig>(*override_host).child;
  const auto& priority = std::get<PriorityConfig>(*below);
  REQUIRE(priority.priorities == std::vector{ChildName("child0"), ChildName("child1")});
  for (std::size_t i = 0; i < 2; ++i) {
    const PriorityConfig::Child& child = priority.children.at(priority.priorities[i]);
    CHECK(child.config == cluster.lb_policy);
    CHECK(child.slice == i);
    CHECK(child.ignore_reresolution_requests == eds);
  }
}

TEST_CASE("cluster_tree: cluster_impl is told what the control plane said of the cluster",
          "[lb][cluster_tree][A32][A37-17][A37-18][A37-28][A37-29]") {
  Cluster cluster;
  cluster.name = ClusterName("orders");
  cluster.discovery = EdsDiscovery{"service"};
  const auto told = [&]() -> ClusterImplConfig {
    const auto tree = leaf_tree(cluster, cluster.lb_policy, {ChildName("child0")});
    return std::get<ClusterImplConfig>(*std::get<OutlierDetectionConfig>(*tree).child);
  };
  CHECK(told().cluster == ClusterName("orders"));
  CHECK(told().service_name == "service");
  CHECK(told().max_concurrent_requests == 1024);
  CHECK(told().load_reporting == std::nullopt);
  cluster.load_reporting = LoadReporting{.server = 1};
  CHECK(told().load_reporting == cluster.load_reporting);
  cluster.max_concurrent_requests = 7;
  cluster.discovery = DnsDiscovery{DnsName("orders:80")};
  CHECK(told().max_concurrent_requests == 7);
  CHECK(told().service_name.empty());
}

TEST_CASE("cluster_tree: override_host is told the cluster's idle_timeout, and a change of it",
          "[lb][cluster_tree][A75-22]") {
  Cluster cluster;
  cluster.name = ClusterName("orders");
  cluster.lb_policy = make_lb_config(PickFirstConfig{});
  const auto tree = [&] { return leaf_tree(cluster, cluster.lb_policy, {ChildName("child0")}); };
  const auto told = [&] {
    const LbConfigPtr top = tree();
    const auto& cluster_impl = std::get<OutlierDetectionConfig>(*top).child;
    const auto& override_host = std::get<ClusterImplConfig>(*cluster_impl).child;
    return std::get<OverrideHostConfig>(*override_host).idle_timeout;
  };
  CHECK(told() == std::chrono::hours(1));
  const LbConfigPtr before = tree();
  cluster.idle_timeout = std::chrono::seconds(90);
  CHECK(told() == std::chrono::seconds(90));
  CHECK_FALSE(same_config(before, tree()));
}

TEST_CASE("cluster_tree: cookies name the cluster that routes name",
          "[lb][cluster_tree][A60][A75-2]") {
  Cluster cluster;
  cluster.name = ClusterName("leaf");
  const auto told = [&](const ClusterName& aggregate) {
    const auto tree =
        leaf_tree(cluster, cluster.lb_policy, {ChildName("child0")}, true, nullptr, aggregate);
    const auto& cluster_impl = std::get<OutlierDetectionConfig>(*tree).child;
    const auto& override_host = std::get<ClusterImplConfig>(*cluster_impl).child;
    return std::get<OverrideHostConfig>(*override_host).cluster;
  };
  CHECK(told(ClusterName()) == ClusterName("leaf"));
  CHECK(told(ClusterName("orders")) == ClusterName("orders"));
}

TEST_CASE("cluster_tree: an aggregate's children are its leaves, by name and in order",
          "[lb][cluster_tree][A75-1][A75-8][A75-9][A37-16][A37-33]") {
  Cluster cluster;
  cluster.name = ClusterName("orders");
  cluster.lb_policy = GENERATE(LbConfigPtr(), make_lb_config(PickFirstConfig{}));
  const auto tree = aggregate_tree(cluster, {{ClusterName("two"), ClusterName("one")}});
  const auto& priority = std::get<PriorityConfig>(*tree);
  CHECK(priority.cluster == ClusterName("orders"));
  CHECK(priority.priorities == std::vector{ChildName("two"), ChildName("one")});
  const PriorityConfig::Child& child = priority.children.at(ChildName("two"));
  CHECK(std::get<CdsConfig>(*child.config).cluster == ClusterName("two"));
  CHECK(std::get<CdsConfig>(*child.config).lb_policy == cluster.lb_policy);
  CHECK(std::get<CdsConfig>(*child.config).aggregate == ClusterName("orders"));
  CHECK_FALSE(child.slice.has_value());
  CHECK_FALSE(child.ignore_reresolution_requests);
}
