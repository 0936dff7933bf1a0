// SPDX-License-Identifier: Apache-2.0
//
// ChannelPort — connects one channel's actors and its data plane.
//
//   channel actor ─▶ cell (snapshots), listener (their publication) ─▶ data-plane threads
//
// The data plane and the target's actors own the port together. The cell and the
// PublicationListener outlive a channel actor, so a restarted channel actor finds the last snapshot
// still in use.

#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "actors/applied_configs.hpp"
#include "actors/status_board.hpp"
#include "lb/pick/snapshot_cell.hpp"
#include "messages/connectivity.hpp"

namespace signalbox::actors {

/// Tells the data plane that a snapshot was published, with the snapshot's sequence number and the
/// channel's state. The channel actor calls published(), so an implementation must neither block
/// nor run user code.
class PublicationListener {
 public:
  virtual ~PublicationListener() = default;
  virtual void published(std::uint64_t sequence, ConnectivityState state) = 0;
};

/// A text that names the resource or the DNS name for which the target's first configuration waits,
/// or "a configuration" if none is known. The error of a call that stops waiting for a
/// configuration contains this text. Thread-safe.
class AwaitedText {
 public:
  void set(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }

  std::string get() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_ = "a configuration";
};

struct ChannelPort {
  /// The target as the user wrote it, such as "xds:///orders", for labels of metrics and error
  /// texts.
  std::string target;
  std::string listener_resource;  ///< The name of the target's LDS resource.
  std::string authority;          ///< The name to match with the domains of virtual hosts.
  std::shared_ptr<lb::SnapshotCell> cell;
  std::shared_ptr<PublicationListener> listener;
  std::shared_ptr<AwaitedText> awaited = std::make_shared<AwaitedText>();
  std::shared_ptr<AppliedConfigs> applied = std::make_shared<AppliedConfigs>();
  /// Receives what operators may see of the target. Never null.
  std::shared_ptr<TargetBoard> status = std::make_shared<TargetBoard>();
};

}  // namespace signalbox::actors
