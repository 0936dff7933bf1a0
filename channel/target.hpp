// SPDX-License-Identifier: Apache-2.0
//
// Target — the data plane's side of one target: what is published, who waits, how it is.
//
//   channel actor ─▶ published() ─▶ waker thread ─▶ wait list, state watchers
//   drop-in channel, Pick API ─▶ router, waiting, state()
//
// Shared by every channel and router of the target. After close() it serves one last snapshot,
// which fails every call: the runtime is gone, its users need not be.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

#include "actors/channel_port.hpp"
#include "actors/host.hpp"
#include "channel/connectivity_source.hpp"
#include "channel/wait_list.hpp"
#include "lb/router.hpp"

namespace signalbox::channel {

/// The way to a runtime's host, for targets, whose last owner may be any thread at any time: what
/// is done with the host is done before it goes, or not at all.
class HostGate {
 public:
  explicit HostGate(actors::Host& host) : host_(&host) {}

  /// Does not block for long: nor may `use`.
  void with(absl::FunctionRef<void(actors::Host& host)> use) {
    const std::lock_guard lock(mutex_);
    if (host_ != nullptr) use(*host_);
  }

  /// The host goes after this.
  void shut() {
    const std::lock_guard lock(mutex_);
    host_ = nullptr;
  }

 private:
  std::mutex mutex_;
  actors::Host* host_;
};

class Target final : public ConnectivitySource, public std::enable_shared_from_this<Target> {
 public:
  Target();
  ~Target() override;

  /// Begins to be served. `port` lacks only what is the target's: cell and listener.
  void open(const std::shared_ptr<HostGate>& gate, actors::ChannelPort port);

  /// Ends that, before the host goes.
  void detach();

  /// The host is gone: whoever waits, and every later call, fails with `why`.
  void close(const absl::Status& why, actors::Reclaimer& reclaimer);

  lb::Router router() const { return lb::Router(cell_); }

  const std::shared_ptr<WaitList>& waiting() const { return waiting_; }

  /// News of the channel actor; never blocks.
  void published(ConnectivityState state);

  // ConnectivitySource.
  ConnectivityState state(bool try_to_connect) override;
  void watch(std::weak_ptr<const void> owner, std::function<void()> changed) override;

 private:
  struct Watcher {
    std::weak_ptr<const void> owner;
    std::function<void()> changed;
  };

  void tell_watchers();

  const std::shared_ptr<lb::SnapshotCell> cell_;
  const std::shared_ptr<WaitList> waiting_;
  std::atomic<ConnectivityState> state_{ConnectivityState::kConnecting};
  std::mutex mutex_;
  std::shared_ptr<HostGate> gate_;  // Null: not opened yet, or detached.
  std::shared_ptr<const actors::ChannelPort> port_;
  std::vector<Watcher> watchers_;
};

}  // namespace signalbox::channel
