// SPDX-License-Identifier: Apache-2.0
//
// Target — the part of one target that channels and routers use: its snapshots, its waiting calls
// and its connectivity state.
//
//   channel actor ─▶ published() ─▶ waker thread ─▶ wait list, state watchers
//   drop-in channel, Pick API ─▶ router, waiting, state()
//
// Every channel and router of the target shares the Target. They may outlive the runtime, so after
// close() the Target serves one last snapshot, which fails every call.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/channel_port.hpp"
#include "actors/reclaimer.hpp"
#include "channel/grpc/connectivity_source.hpp"
#include "channel/host_link.hpp"
#include "channel/pick/traced_call.hpp"
#include "channel/pick/wait_list.hpp"
#include "lb/pick/router.hpp"
#include "lb/route/retry.hpp"
#include "messages/counting/caller_stats.hpp"

namespace signalbox::channel {

class Target final : public ConnectivitySource, public std::enable_shared_from_this<Target> {
 public:
  /// `sessions`: the settings for session cookies (keys, clock, log). Null: cookies are not sealed,
  /// there are no warnings, and sessions have no clock.
  explicit Target(lb::CallerNames names = {}, lb::SessionsPtr sessions = nullptr);
  ~Target() override;

  /// The host (the runtime's actors) begins to serve the target. The caller sets the names and the
  /// `status` in `port`; the target sets `cell` and `listener`. Call it once, before the target is
  /// shared.
  void open(std::shared_ptr<HostLink> host, actors::ChannelPort port);

  /// Ends the target: every waiting call and every later call fails with `why`.
  void close(const absl::Status& why, actors::Reclaimer& reclaimer);

  lb::Router router() const { return lb::Router(cell_, names_, sessions_); }

  const std::shared_ptr<WaitList>& waiting() const { return waiting_; }

  /// The throttle of retries, which all channels of the target share; null: no throttling.
  const std::shared_ptr<lb::RetryThrottle>& retry_throttle() const { return retry_throttle_; }

  /// Sets the throttle of retries. Call it before the target is shared.
  void throttle_retries(std::shared_ptr<lb::RetryThrottle> throttle) {
    retry_throttle_ = std::move(throttle);
  }

  /// The counters of the target's calls, as their callers see them; null: calls are not counted.
  const std::shared_ptr<const CallerStats>& callers() const { return callers_; }

  /// The last configurations that picks have seen, the newest last.
  std::vector<AppliedConfig> applied() const;

  /// Sets the counters of the target's calls. Call it before the target is shared.
  void count_callers(std::shared_ptr<const CallerStats> callers) { callers_ = std::move(callers); }

  /// The program's observer of the target's calls; null: none.
  const std::shared_ptr<const CallTracing>& tracing() const { return tracing_; }

  /// Sets the program's observer of the target's calls. Call it before the target is shared.
  void trace_calls(std::shared_ptr<const CallTracing> tracing) { tracing_ = std::move(tracing); }

  /// The data that the target's actors publish for Runtime::status() and ready(); null before
  /// open().
  const actors::TargetBoard* board() const {
    return port_ == nullptr ? nullptr : port_->status.get();
  }

  /// The channel actor has published a snapshot. Takes locks for a moment only, and waits for
  /// nothing else.
  void published(ConnectivityState state);

  // The functions of ConnectivitySource.
  ConnectivityState state(bool try_to_connect) override;
  std::string awaited() const override;
  void watch(std::weak_ptr<const void> owner, std::function<void()> changed) override;

 private:
  struct Watcher {
    std::weak_ptr<const void> owner;
    std::function<void()> changed;
  };

  void tell_watchers();

  const lb::CallerNames names_;
  const lb::SessionsPtr sessions_;
  const std::shared_ptr<lb::SnapshotCell> cell_;
  const std::shared_ptr<WaitList> waiting_;
  std::shared_ptr<lb::RetryThrottle> retry_throttle_;
  std::shared_ptr<const CallerStats> callers_;
  std::shared_ptr<const CallTracing> tracing_;
  std::atomic<ConnectivityState> state_{ConnectivityState::kConnecting};
  // The link to the runtime's actors, which serve the target; null before open().
  std::shared_ptr<HostLink> host_;
  std::shared_ptr<const actors::ChannelPort> port_;
  std::mutex mutex_;
  std::vector<Watcher> watchers_;
};

}  // namespace signalbox::channel
