// SPDX-License-Identifier: Apache-2.0
//
// Client — one process of the fleet: the real cores of the xDS side, and a link in the client's
// manner.
//
//   network ─▶ Link ─▶ AdsSession ─▶ ClientCore ─▶ DependencyManager ─▶ on_config(versions)
//           ◀─      ◀─             ◀─            ◀─ watches
//
// The cores' timers run on the fleet's clock. Timers are not cancelled, as in the actors: a core
// recognises a late one. A request counts as written at once.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "messages/xds_config.hpp"
#include "messages/xds_events.hpp"
#include "tests/fleet/link.hpp"
#include "tests/fleet/server.hpp"
#include "tests/support/fake_clock.hpp"
#include "xds/client/ads_session.hpp"
#include "xds/client/client_core.hpp"
#include "xds/depend/dependency_manager.hpp"

namespace signalbox::fleet {

class Client {
 public:
  /// `on_config` is called with the versions of each configuration that the client takes.
  Client(testing::FakeClock& clock,
         Network& network,
         Manner manner,
         std::size_t number,
         std::uint64_t seed,
         std::function<void(const ResourceVersions&)> on_config);

  // Not copyable: timers point at it.
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Called once: the client opens its target.
  void start();

  /// A message of the server arrives on the connection with this number.
  void on(std::uint64_t connection, FromServer message);

 private:
  void tell_session(const AdsSessionEvent& event);
  void tell_core(const ClientEvent& event);
  void tell_manager(const DependencyEvent& event);
  void run(const AdsSessionEffects& effects);
  void run(const ClientEffects& effects);
  void run(const DependencyEffects& effects);

  testing::FakeClock& clock_;
  std::unique_ptr<Link> link_;
  xds::AdsSession session_;
  xds::ClientCore core_;
  xds::DependencyManager manager_;
  std::function<void(const ResourceVersions&)> on_config_;
};

}  // namespace signalbox::fleet
