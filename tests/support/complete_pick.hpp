// SPDX-License-Identifier: Apache-2.0
//
// complete_pick — a complete pick of one address, from the real router.

#pragma once

#include <memory>
#include <stdexcept>
#include <utility>
#include <variant>

#include "absl/status/status.h"

#include "lb/pick/router.hpp"
#include "lb/pick/snapshot_cell.hpp"
#include "lb/route/config_selector.hpp"
#include "messages/pick.hpp"

namespace signalbox::testing {

/// Sends all calls to one cluster.
class OneCluster final : public lb::ConfigSelector {
 public:
  std::variant<lb::Selection, absl::Status> select(const PickArgs&) const override {
    return lb::Selection{.cluster = cluster_.get()};
  }

 private:
  const lb::ClusterRefPtr cluster_ =
      std::make_shared<lb::ClusterRef>(ClusterName("orders"), nullptr);
};

/// Completes all picks on one connection.
class OneConnection final : public Picker {
 public:
  explicit OneConnection(const Address& address)
      : connection_(std::make_shared<Connection>(address)) {}

  PickResult pick(const PickArgs&) const override {
    PickResult result;
    result.outcome = Complete{connection_.get()};
    return result;
  }

 private:
  const ConnectionPtr connection_;
};

/// Thread-safe. All picks of a process are of the address of the first call.
inline lb::Pick complete_pick(const Address& address) {
  static const std::shared_ptr<lb::SnapshotCell> cell = [&] {
    auto snapshot = std::make_unique<lb::Snapshot>();
    snapshot->selector = std::make_shared<OneCluster>();
    snapshot->picker = std::make_shared<OneConnection>(address);
    auto made = std::make_shared<lb::SnapshotCell>();
    made->exchange(std::move(snapshot));
    return made;
  }();
  lb::Pick pick = lb::Router(cell).pick({.path = "/p.S/M"});
  if (pick.outcome() != PickOutcome::kComplete) throw std::logic_error("the pick is not complete");
  return pick;
}

}  // namespace signalbox::testing
