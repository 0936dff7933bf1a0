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

// A parent whose children have no actors: what they would be told is written down.
struct Parent {
  Parent() {
    ChildPolicies::Hooks hooks;
    hooks.spawn = [this](const PolicyBirth&, std::function<void()> died) {
      die = std::move(died);
      return protocol::PolicyActor();
    };
    hooks.forget = [](const protocol::PolicyActor&) {};
    hooks.send_config = [this](const protocol::PolicyActor&, const ConfigUpdated& config) {
      sent.push_back(config.generation);
    };
    hooks.restart_after = [](const std::string&, RestartDelay&) {};
    hooks.died = [this](const ChildName&) { ++deaths; };
    hooks.given_up = [this](const ChildName&) { ++given_up; };
    children.open(PolicyPath("root"), std::move(hooks));
  }

  std::function<void()> die;
  std::vector<Generation> sent;
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
  parent.children.restart_due(kChild);
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
  parent.children.restart_due(kChild);
  CHECK(parent.sent == std::vector<Generation>{1, 1});
}

TEST_CASE("child policies: who died beside what the children share waits for its successor",
          "[actors]") {
  Parent parent;
  parent.children.start(kChild, update(1));
  parent.children.survived(kChild, 1);
  parent.die();
  parent.children.suspend_all();
  parent.children.restart_due(kChild);
  CHECK(parent.sent == std::vector<Generation>{1});
  parent.children.serve(protocol::SubchannelMapActor());
  parent.children.resume_all();
  CHECK(parent.sent == std::vector<Generation>{1, 1});
}

}  // namespace signalbox::actors
