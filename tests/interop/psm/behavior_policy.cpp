// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/psm/behavior_policy.hpp"

#include <utility>

#include "absl/strings/str_cat.h"
#include <nlohmann/json.hpp>

namespace signalbox::psm {
namespace {

struct Config final : CustomPolicyConfig {
  std::string value;
};

absl::StatusOr<CustomPolicyConfigPtr> parse(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  const auto value = json.value("rpcBehavior", nlohmann::json(""));
  if (!value.is_string()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rpcBehavior: must be a string, found ", value.dump()));
  }
  auto config = std::make_shared<Config>();
  config->value = value.get<std::string>();
  return config;
}

class BehaviorPolicy final : public Policy {
 public:
  BehaviorPolicy(std::shared_ptr<BehaviorBoard> board, ClusterName cluster)
      : board_(std::move(board)), cluster_(std::move(cluster)) {
    board_->join(cluster_);
  }

  ~BehaviorPolicy() override { board_->leave(cluster_); }

  BehaviorPolicy(const BehaviorPolicy&) = delete;
  BehaviorPolicy& operator=(const BehaviorPolicy&) = delete;

  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    LbEffects effects;
    if (const auto* update = std::get_if<ConfigUpdated>(&event)) {
      board_->set(cluster_, custom_config_of<Config>(*update).value);
      children_.begin(*update);
      children_.update(child_, make_lb_config(RoundRobinConfig{}), update->endpoints, effects);
      publish(effects);
    } else if (const auto* changed = std::get_if<ChildStateChanged>(&event)) {
      if (children_.hear(*changed, effects) != nullptr) publish(effects);
    } else {
      children_.hear_other(event, effects);
    }
    children_.report_applied(effects);
    return effects;
  }

 private:
  void publish(LbEffects& effects) {
    const lb::Child& child = *children_.find(child_);
    Publish next;
    next.state = child.state;
    next.status = child.status;
    next.picker = child.picker;
    next.generation = children_.generation();
    next.hosts = child.hosts;
    published_.publish(std::move(next), effects);
  }

  const ChildName child_{"round_robin"};
  const std::shared_ptr<BehaviorBoard> board_;
  const ClusterName cluster_;
  ChildSet children_;
  Published published_;
};

class BehaviorTrace final : public CallTrace {
 public:
  explicit BehaviorTrace(std::shared_ptr<const BehaviorBoard> board) : board_(std::move(board)) {}

  void attempt_sent(const AttemptSent& sent, AttemptHeaders& headers) override {
    const std::string value = board_->get(sent.cluster);
    if (!value.empty()) headers.set("rpc-behavior", value);
  }

 private:
  const std::shared_ptr<const BehaviorBoard> board_;
};

class BehaviorObserver final : public CallObserver {
 public:
  explicit BehaviorObserver(std::shared_ptr<const BehaviorBoard> board)
      : board_(std::move(board)) {}

  std::unique_ptr<CallTrace> call_began(const CallBegan& /*call*/) override {
    return std::make_unique<BehaviorTrace>(board_);
  }

 private:
  const std::shared_ptr<const BehaviorBoard> board_;
};

}  // namespace

void BehaviorBoard::join(const ClusterName& cluster) {
  const std::lock_guard lock(mutex_);
  ++entries_[cluster.str()].policies;
}

void BehaviorBoard::leave(const ClusterName& cluster) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(cluster.str());
  if (--found->second.policies == 0) entries_.erase(found);
}

void BehaviorBoard::set(const ClusterName& cluster, const std::string& value) {
  const std::lock_guard lock(mutex_);
  entries_[cluster.str()].value = value;
}

std::string BehaviorBoard::get(absl::string_view cluster) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(cluster);
  return found == entries_.end() ? "" : found->second.value;
}

CustomLbPolicy behavior_policy(std::shared_ptr<BehaviorBoard> board) {
  return {"test.RpcBehaviorLoadBalancer",
          parse,
          [board = std::move(board)](const CustomPolicyConfigPtr&, const PolicyContext& context) {
            return std::make_unique<BehaviorPolicy>(board, context.cluster);
          }};
}

std::shared_ptr<CallObserver> behavior_observer(std::shared_ptr<const BehaviorBoard> board) {
  return std::make_shared<BehaviorObserver>(std::move(board));
}

}  // namespace signalbox::psm
