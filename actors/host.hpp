// SPDX-License-Identifier: Apache-2.0
//
// Host — one runtime's actors and threads inside somebody else's process.
//
//   channel/runtime ─▶ [Host]: actor system, supervisor, waker ─▶ channels
//
// Several may live in one process. The destructor stops every actor, joins every thread and
// leaves nothing behind; calls in flight run to their end on the connections that they have.

#pragma once

#include <cstddef>
#include <memory>

#include "actors/channel_port.hpp"
#include "actors/dump_reply.hpp"
#include "actors/environment.hpp"
#include "actors/waker.hpp"

namespace signalbox::actors {

class Host {
 public:
  /// `threads`: of the scheduler, at least 1.
  Host(EnvironmentPtr environment, std::size_t threads);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Starts to serve a target; the port is the caller's.
  void open(const std::shared_ptr<const ChannelPort>& port);
  void close(const std::shared_ptr<const ChannelPort>& port);
  /// Asks the channel to leave IDLE.
  void exit_idle(const std::shared_ptr<const ChannelPort>& port);

  /// Asks the xds_client what it knows; what becomes of it, the reply tells.
  void dump(std::shared_ptr<DumpReply> reply);

  Waker& waker();

 private:
  struct Machinery;
  std::unique_ptr<Machinery> machinery_;
};

}  // namespace signalbox::actors
