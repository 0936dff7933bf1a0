// SPDX-License-Identifier: Apache-2.0
//
// ChannelPort — where one channel's actors and its data plane meet.
//
//   channel actor ─▶ cell (snapshots), listener (news) ─▶ data-plane threads
//
// Owned by the data plane's side and by the channel actor together; what it leads to outlives
// both, so that a restarted channel actor finds the last snapshot still being served.

#pragma once

#include <memory>
#include <string>

#include "lb/pick/snapshot_cell.hpp"
#include "messages/connectivity.hpp"

namespace signalbox::actors {

/// What the data plane wants to hear. Called by the channel actor: never blocks, never runs
/// user code.
class PublicationListener {
 public:
  virtual ~PublicationListener() = default;
  virtual void published(std::uint64_t sequence, ConnectivityState state) = 0;
};

struct ChannelPort {
  std::string target;             ///< As the user wrote it: "xds:///orders". Label and texts.
  std::string listener_resource;  ///< The LDS resource that the target stands for.
  std::string authority;          ///< What the virtual hosts' domains are matched with.
  std::shared_ptr<lb::SnapshotCell> cell;
  std::shared_ptr<PublicationListener> listener;
};

}  // namespace signalbox::actors
