// SPDX-License-Identifier: Apache-2.0
#include "actors/child_policies.hpp"

#include <functional>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::actors {
namespace {

const ChildName kChild("child");

ConfigUpdated update(Generation generation) {
  ConfigUpdated result;
  result.generation = generation;
  return result;
}

// A parent of policies without actors. It records the configurations and restarts that
// ChildPolicies orders.
struct Parent {
  Parent() {
    ChildPolicies::Hooks hooks;
    hooks.spawn = [this](const PolicyBirth& birth, std::function<void()> died) {
      cluster = birth.cluster;
      incarnation = birth.parent_incarnation;
      die = std::move(died);
      return protocol::PolicyActor();
    };
    hooks.forget = [](const protocol::PolicyActor&) {};
    hooks.send_config = [this](const protocol::PolicyActor&, const ConfigUpdated& config) {
      sent.push_back(config.generation);
    };
    hooks.restart_after = [this](const protocol::RestartDue& due, RestartDelay&) {
      ordered.push_back(due);
    };
    hooks.died = [this](const ChildName&) { ++deaths; };
    hooks.given_up = [this](const ChildName&) { ++given_up; };
    children.open(PolicyPath("root"), std::move(hooks));
  }

  void last_due() { children.restart_due(ordered.back()); }

  std::function<void()> die;
  std::vector<protocol::RestartDue> ordered;
  std::vector<Generation> sent;
  // Those of the child that was started last.
  ClusterName cluster;
  Incarnation incarnation;
  int deaths = 0;
  int given_up = 0;
  ChildPolicies children;
};

}  // namespace

TEST_CASE("child policies: a child that survived no configuration is given up, until the next",
          "[actors]") {
  Parent parent;
  parent.children.start(kChild, update(1));
  parent.die();
  CHECK(parent.deaths == 1);
  CHECK(parent.given_up == 1);
  parent.last_due();
  CHECK(parent.sent == std::vector<Generation>{1});
  parent.children.update(kChild, update(2));
  CHECK(parent.sent == std::vector<Generation>{1, 2});
}

TEST_CASE("child policies: a child that published for a configuration comes back with it",
          "[actors]") {
  Parent parent;
  parent.children.start(kChild, update(1));
  parent.children.survived(kChild, 1);
  parent.die();
  CHECK(parent.deaths == 1);
  CHECK(parent.given_up == 0);
  parent.last_due();
  CHECK(parent.sent == std::vector<Generation>{1, 1});
}

TEST_CASE("child policies: who died beside what the children share waits for its successor",
          "[actors]") {
  Parent parent;
  parent.children.start(kChild, update(1));
  parent.children.survived(kChild, 1);
  parent.die();
  parent.children.suspend_all();
  parent.children.update(kChild, update(2));
  parent.last_due();
  CHECK(parent.sent == std::vector<Generation>{1});
  parent.children.serve(protocol::SubchannelMapActor(), ClusterName("orders"));
  parent.children.resume_all();
  CHECK(parent.sent == std::vector<Generation>{1, 2});
}

TEST_CASE("child policies: no configuration jumps the back-off of a dead child", "[actors]") {
  Parent parent;
  parent.children.start(kChild, update(1));
  parent.children.survived(kChild, 1);
  parent.die();
  for (Generation next = 2; next <= 101; ++next)
    parent.children.update(kChild, update(next));
  parent.children.resume_all();
  CHECK(parent.sent == std::vector<Generation>{1});
  REQUIRE(parent.ordered.size() == 1);
  parent.last_due();
  CHECK(parent.sent == std::vector<Generation>{1, 101});
  parent.die();
  CHECK(parent.ordered.size() == 2);
  parent.last_due();
  CHECK(parent.sent == std::vector<Generation>{1, 101, 1});
}

TEST_CASE("child policies: only the last restart that was ordered counts", "[actors]") {
  Parent parent;
  parent.children.start(kChild, update(1));
  parent.children.survived(kChild, 1);
  parent.die();
  parent.children.stop(kChild, protocol::StopReason::kOrderly);
  parent.children.start(kChild, update(2));
  parent.children.survived(kChild, 2);
  parent.die();
  REQUIRE(parent.ordered.size() == 2);
  parent.children.restart_due(parent.ordered.front());
  CHECK(parent.sent == std::vector<Generation>{1, 2});
  parent.last_due();
  CHECK(parent.sent == std::vector<Generation>{1, 2, 2});
}

TEST_CASE("child policies: who is started while what the children share is gone waits for it",
          "[actors]") {
  Parent parent;
  parent.children.hold_back();
  parent.children.start(kChild, update(1));
  CHECK(parent.sent.empty());
  parent.children.serve(protocol::SubchannelMapActor(), ClusterName("orders"), {7, 9});
  parent.children.resume_all();
  CHECK(parent.sent == std::vector<Generation>{1});
  CHECK(parent.cluster == ClusterName("orders"));
  CHECK(parent.incarnation == Incarnation{7, 9});
}

}  // namespace signalbox::actors
