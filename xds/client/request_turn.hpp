// SPDX-License-Identifier: Apache-2.0
//
// RequestTurn — decides whether a change of a type's names is requested now or waits for an answer.
//
//   ads_session ─▶ asked, answered ─▶ [RequestTurn] ─▶ whether a change waits, and how long
//
//   unanswered requests   a change that adds a name       a change that only gives names up
//   none                  goes at once                    goes at once
//   only gave names up    goes at once                    waits
//   one added a name      waits                           waits
//
// A waiting change is sent with the next ACK or NACK, or alone after about 100 ms. Further changes
// without a response wait about 400 ms, 1.6 s and then 5 s each. Nothing waits once the last
// request is older than `patience`.
//
// Why changes wait: requests before a type's first response carry no nonce, and a server answers
// each of them with all resources. Two hundred channels that open at once would cause two hundred
// full responses.
//
// Why the wait ends: a server need not answer a request that only gives names up, or that names
// resources that do not exist. A server that wants all its names requested together answers no
// request that lacks a name. The wait grows because the server may merely be slow.
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
  /// A change does not wait if the last request was written longer ago than this. The value is the
  /// timeout of a resource (A57).
  Duration patience = std::chrono::seconds(15);
};

class RequestTurn {
 public:
  enum class Change : std::uint8_t { kAdds, kRemoves };

  RequestTurn(const RequestTurnOptions& options, std::uint64_t seed);

  /// Must be called when a request with changed names has been written, unless a response of the
  /// type has come since the request was made.
  void asked(Change change, Instant now);

  /// Must be called when a response of the type has come.
  void answered();

  bool must_wait(Change change, Instant now) const;

  /// The time after which a waiting change is sent, even without an answer. It grows with each call
  /// up to `wait.max`, until a response comes or until no request was written for `patience`.
  Duration next_wait() { return waits_.next(); }

 private:
  enum class Unanswered : std::uint8_t { kNothing, kRemoval, kAddition };

  RequestTurnOptions options_;
  Backoff waits_;
  Unanswered unanswered_ = Unanswered::kNothing;
  Instant since_;
};

}  // namespace signalbox::xds
