// SPDX-License-Identifier: Apache-2.0
//
// fleet — many clients and one control plane in virtual time: one scenario, one manner.
//
//   FleetOptions ─▶ clients start, one after the other ─▶ all are served, 30 s of calm
//                ─▶ the scenario's steps ─▶ every client has the newest version ─▶ Outcome
//
// One thread runs all clients as values. Events are ordered by virtual time, and events of one
// instant by their making, so equal options give equal outcomes. Each client has a latency of its
// own, 1 to 20 ms each way.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "tests/fleet/manner.hpp"
#include "tests/fleet/record.hpp"
#include "tests/fleet/scenario.hpp"

namespace signalbox::fleet {

/// The messages of a client that connects: the connection, and for each of the four types a request
/// and its ACK. Each costs the control plane one unit of work.
inline constexpr int kMessagesOfStart = 9;

struct FleetOptions {
  std::size_t clients = 10'000;
  double capacity = 2000;  ///< Messages a second: see server.hpp.
  std::uint64_t seed = 1;
  /// The time from the newest version, after which the run ends even if clients lack it.
  Duration limit = std::chrono::hours(2);
};

struct Outcome {
  std::string scenario;
  Manner manner = Manner::kSignalbox;
  FleetOptions options;
  /// The tenths of seconds from the scenario's time 0 to the end.
  std::vector<Arrivals> tenths;
  /// For each client that has the newest version: the time from its publication, in order.
  std::vector<Duration> reached;
  std::uint64_t nacks = 0;
  std::uint64_t most_nacks = 0;  ///< The most of one client.
  std::uint64_t wasted = 0;      ///< Messages handled for clients that had given up.
  Duration longest_wait{};       ///< The longest time that a message waited for the server.

  /// The time by which `percent` of the clients have the newest version; nullopt: fewer ever have.
  std::optional<Duration> reached_by(double percent) const;
  /// The seconds from the scenario's time 0; the last one may be shorter.
  std::vector<Arrivals> seconds() const;
  Arrivals total() const;
  /// The most messages that arrived in one second, wherever it begins.
  std::uint64_t peak() const;
  /// The most connections that arrived in so many consecutive tenths of a second.
  std::uint64_t peak_connections(std::size_t tenths_long = kTenthsOfSecond) const;
};

Outcome run_fleet(const Scenario& scenario, Manner manner, const FleetOptions& options);

}  // namespace signalbox::fleet
