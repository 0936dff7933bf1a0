// SPDX-License-Identifier: Apache-2.0
//
// AssumedConnector — pretends to connect: every attempt succeeds, and no connection ends.
//
//   subchannel actor ─▶ connect ─▶ [one thread] ─▶ connected
//
// It is used to explain a configuration as if all endpoints were reachable.

#pragma once

#include <functional>
#include <memory>

#include "actors/io/connector.hpp"
#include "actors/waker.hpp"

namespace signalbox::actors {

class AssumedConnector final : public Connector {
 public:
  /// Destroys a connection after its last owner has released it, as soon as no call uses it. Called
  /// on any thread, even after the connector's end.
  using Retire = std::function<void(std::unique_ptr<const Tracked>)>;

  explicit AssumedConnector(Retire retire) : retire_(std::move(retire)) {}

  std::unique_ptr<Attempt> connect(const Peer& peer, Duration timeout, Events events) override;

 private:
  const Retire retire_;
  Waker waker_;
};

}  // namespace signalbox::actors
