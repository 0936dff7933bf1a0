// SPDX-License-Identifier: Apache-2.0
//
// The policy test.RpcBehaviorLoadBalancer of the ecosystem's test custom_lb: round_robin, and each
// call has the header rpc-behavior with the value of the policy's configuration.
//
//   {"rpcBehavior": "error-code-15"} ─▶ policy ─▶ [BehaviorBoard] ─▶ observer ─▶ header
//                                         └─▶ round_robin
//
// A gRPC policy adds the header with its pick. A signalbox policy cannot add headers. It therefore
// writes the value on a board, by its cluster, and the call observer adds the header when an
// attempt to that cluster is sent. The difference: calls that the older picker has picked have the
// newer value.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"

#include "signalbox/call_observer.hpp"
#include "signalbox/policy.hpp"

namespace signalbox::psm {

/// The value of rpc-behavior by cluster, while the cluster has policies. Thread-safe.
class BehaviorBoard {
 public:
  /// Each policy of the cluster joins and leaves. Every locality may have one.
  void join(const ClusterName& cluster);
  void leave(const ClusterName& cluster);
  void set(const ClusterName& cluster, const std::string& value);
  /// Empty: calls to the cluster get no header.
  std::string get(absl::string_view cluster) const;

 private:
  struct Entry {
    int policies = 0;
    std::string value;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// For RuntimeOptions::lb_policies.
CustomLbPolicy behavior_policy(std::shared_ptr<BehaviorBoard> board);

/// For RuntimeOptions::call_observer.
std::shared_ptr<CallObserver> behavior_observer(std::shared_ptr<const BehaviorBoard> board);

}  // namespace signalbox::psm
