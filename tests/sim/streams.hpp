// SPDX-License-Identifier: Apache-2.0
//
// Streams — one target with two hosts, which allow few calls on a connection (gRFC A105).
//
//   1 … 3 connections to a host, changed at random ─▶ real actors ─▶ snapshots ─▶ calls
//   resets, slow handshakes, deaths of actors ─▶                  lanes ◀─ take, wait ─┘
//   calls of others, which take no stream ─▶ connections that are shared
//   limits that are not known ─▶ connections
//
// No call waits for long while a connection to its host has a free stream. A longer wait could last
// until the call's deadline. No connection has more calls with a stream than its server allows,
// whether its limit is known or not. In the end every call has run, and nothing is left.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace signalbox::sim {

struct StreamsRun {
  std::uint64_t calls = 0;
  std::uint64_t waits = 0;          ///< How often a call has waited for a stream.
  std::vector<std::string> broken;  ///< The broken invariants; empty: all held.
  std::string story;                ///< The last lines of the trace, if an invariant was broken.
};

StreamsRun run_streams(std::uint64_t seed);

}  // namespace signalbox::sim
