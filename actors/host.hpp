// SPDX-License-Identifier: Apache-2.0
//
// Host — one runtime's actors and threads inside the embedding process.
//
//   channel/runtime ─▶ [Host]: actor system, supervisor, waker ─▶ channels
//
// Several hosts may live in one process. The destructor stops every actor of the host and joins the
// host's threads. Calls in flight run to their end on their connections.

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
  /// `threads`: scheduler threads, at least 1.
  Host(EnvironmentPtr environment, std::size_t threads);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Starts to serve the port's target. The caller and the channel actor share the port.
  void open(const std::shared_ptr<const ChannelPort>& port);
  void close(const std::shared_ptr<const ChannelPort>& port);
  /// Asks the port's channel to leave IDLE, that is, to connect.
  void exit_idle(const std::shared_ptr<const ChannelPort>& port);

  /// Asks the xds_client for a dump; `reply` gets the answer.
  void dump(std::shared_ptr<DumpReply> reply);

  Waker& waker();

 private:
  struct Machinery;
  std::unique_ptr<Machinery> machinery_;
};

}  // namespace signalbox::actors
