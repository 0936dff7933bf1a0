// SPDX-License-Identifier: Apache-2.0
//
// RequestTurn — whether a type's changed names may be asked for now, or wait for an answer.
//
//   ads_session ─▶ asked, answered ─▶ [RequestTurn] ─▶ whether a change waits, and how long
//
//   the last request      a change that adds a name       a change that only gives names up
//   was answered          goes at once                    goes at once
//   only gave names up    goes at once                    waits
//   added a name          waits                           waits
//
// A change that waits goes with the next answer, or alone after 100 ms, 400 ms, 1.6 s and then
// every 5 s. Requests that are sent before a type's first response carry no nonce, and a server
// answers each of them with everything: two hundred channels that open at once would have two
// hundred full answers. The wait has an end because a server need not answer: not a request that
// only gives names up, not one for names that do not exist, and a server that wants all its names
// asked for together answers no request that lacks one. The wait grows because a server may be slow
// instead.
//
// Source: the xDS transport protocol (state of the world).

#pragma once

#include <chrono>
#include <cstdint>

#include "messages/ids.hpp"
#include "xds/client/backoff.hpp"

namespace signalbox::xds {

struct RequestTurnOptions {
  BackoffOptions wait{
      .initial = std::chrono::milliseconds(100), .multiplier = 4, .max = std::chrono::seconds(5)};
  /// A request that was not answered for so long is not waited for: the time of a resource (A57).
  Duration patience = std::chrono::seconds(15);
};

class RequestTurn {
 public:
  enum class Change : std::uint8_t { kAdds, kRemoves };

  RequestTurn(const RequestTurnOptions& options, std::uint64_t seed);

  /// A request with changed names has left for the server.
  void asked(Change change, Instant now);

  /// A response of the type has come.
  void answered();

  bool must_wait(Change change, Instant now) const;

  /// How long a change that must wait waits at most. Each wait is longer than the one before, until
  /// a response comes.
  Duration next_wait() { return waits_.next(); }

 private:
  enum class Unanswered : std::uint8_t { kNothing, kRemoval, kAddition };

  RequestTurnOptions options_;
  Backoff waits_;
  Unanswered unanswered_ = Unanswered::kNothing;
  Instant since_;
};

}  // namespace signalbox::xds
