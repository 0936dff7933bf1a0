// SPDX-License-Identifier: Apache-2.0
//
// AdsSession — one ADS stream to one control plane, state of the world, re-opened for ever.
//
//   client_core ─▶ Subscribe ─▶ [AdsSession] ─▶ ResourcesReceived, SubscriptionSent,
//                                 ▲      │         ServerStatusChanged ─▶ client_core
//                         bytes ──┘      └─▶ bytes
//
//            names wanted            opened
//    Idle ────────────────▶ Opening ────────▶ Live
//     ▲ ▲                   │   ▲              │
//     │ └───────────┐       │   │ elapsed,     │ closed
//     │ elapsed,    │       ▼   │ names wanted │
//     └──────────── Waiting ◀──────────────────┘
//       nothing wanted
//
// A stream that closes is an error for all watchers only if it brought no response (A57), or one
// that is of no use (B7). StreamPace says how long the server is left alone then.
//
// Invariants
//   S1  Streams are opened at least `pace.min_interval` apart, always (B8).
//   S2  Each response to what was asked is answered by one ACK or NACK that carries its nonce: at
//       once, or, where a request of its type has not left yet (S9), when that one has; but for S7.
//       The answer to a newer response takes the place of one that has not been sent.
//   S3  A NACK keeps the last accepted version; versions outlive streams, nonces do not.
//   S4  No request is a wildcard by accident: a type's first request on a stream names something.
//       Later an empty list unsubscribes.
//   S5  The node travels in the first request of each stream only.
//   S6  Of a type of which nothing is wanted we have nothing, and so no version: who asks again
//       with a version may be taken to have its resources still, and never be answered.
//   S7  Where a response repeats a refused one (type, version and errors are equal, and the
//       subscription is), its NACK waits for `nack_backoff`: there are servers that answer a NACK
//       with the same response at once, for ever. The answer to a newer response takes its place,
//       and a changed subscription takes it along. No other type is held up, nor another version:
//       it may hold good news (A46).
//   S8  A response beyond the limit, or that is no DiscoveryResponse, has no nonce to answer with:
//       it ends its stream, is told and counted, and what was accepted before stays (B7).
//   S9  Of a type at most one request is on its way: the next one is made when it has left, and
//       carries all that has changed by then. A change waits for the answer to the request before,
//       as long as RequestTurn says; each answer takes it along.
//   S10 A name that was given up and is wanted again is missing in one request before it is asked
//       for again: the server would take it for one that the client has. A response that brings it
//       makes that unnecessary. The server passes over a request with an old nonce, so a request
//       that is made while a response of its type is decoded does not count: what it gave up is
//       missing in the answer to that response, too.
//   S11 SubscriptionSent tells of names when their request has left, not when it was made.
//   S12 A response is decoded part by part, with a timer of no length between two parts: other
//       events, and other actors, have their turn. The stream's end waits meanwhile. The next
//       response comes when this one is decoded (ReadNext): however much a server sends, one
//       response of it is decoded and one waits in the transport.
//
// What is of a type that was never asked for on this stream, or that we do not know, is ignored, as
// gRPC's own client does.
//
// Source: gRFC A27, A46, A57, A88; the xDS transport protocol.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "messages/xds_events.hpp"
#include "xds/client/backoff.hpp"
#include "xds/client/discovery_codec.hpp"
#include "xds/client/request_turn.hpp"
#include "xds/client/stream_pace.hpp"

namespace signalbox::xds {

struct AdsSessionOptions {
  std::string server;  ///< For the texts of errors.
  std::string node;    ///< Serialised envoy.config.core.v3.Node.
  std::uint64_t seed = 0;
  ResponseDecoder decode;
  StreamPaceOptions pace;
  /// Of S7. Short at its longest: some servers send nothing new before the NACK has come.
  BackoffOptions nack_backoff{.max = std::chrono::seconds(10)};
  RequestTurnOptions turn = {};  ///< Of S9.
};

class AdsSession {
 public:
  explicit AdsSession(AdsSessionOptions options);

  AdsSessionEffects step(const AdsSessionEvent& event, Instant now);

 private:
  // The newest response of a type, where it was refused.
  struct Refused {
    std::string version;
    std::string detail;
    Backoff brake;
  };

  // What this stream was asked for, of one type.
  struct Asked {
    explicit Asked(const RequestTurn& its_turn) : turn(its_turn) {}

    std::set<std::string> names;     // Of the last request.
    std::set<std::string> given_up;  // Of these, the ones that were not wanted for a while (S10).
    std::set<std::string> unseen;    // Given up in requests with an old nonce (S10).
    bool was_empty = false;          // Nothing was wanted for a while since that request (S6).
    std::string nonce;
    std::optional<Refused> refused;
    std::optional<TimerId> held;        // Only with `refused`: its NACK waits for this timer.
    std::optional<std::string> answer;  // Due: what is refused, or "" for an ACK.
    bool answered = false;              // A response has come since that request was made.
    bool unwritten = false;             // The last request has not left yet.
    std::optional<RequestTurn::Change> change;  // Of names, by that request; not told yet (S11).
    RequestTurn turn;
    std::optional<TimerId> waits;  // A change of names waits for this timer,
    bool has_waited = false;       // which has elapsed.
  };

  struct Idle {};

  struct Opening {
    std::uint64_t stream = 0;
  };

  // S12: the response that is being decoded.
  struct Decoded {
    Decoding decoding;
    TimerId next_part;
    std::optional<AdsStreamClosed> end;  // Of the stream; it came after the response.
  };

  struct Live {
    std::uint64_t stream = 0;
    bool answered = false;
    std::map<ResourceType, Asked> asked;
    std::deque<ResourceType> unwritten;  // Of the requests that have not left, the oldest first.
    std::optional<Decoded> decoded;
  };

  struct Waiting {
    TimerId timer;
  };

  using State = std::variant<Idle, Opening, Live, Waiting>;

  void on(const Subscribe& event, Instant now);
  void on(const AdsStreamOpened& event, Instant now);
  void on(const AdsBytesReceived& event, Instant now);
  void on(const AdsBytesWritten& event, Instant now);
  void on(const AdsStreamClosed& event, Instant now);
  void on(const TimerFired& event, Instant now);

  void decode(Decoding decoding, Instant now);
  void go_on_decoding(Instant now);
  void take(absl::StatusOr<DecodedResponse> response, Instant now);
  void use(absl::StatusOr<DecodedResponse> response, Instant now);
  void open(Instant now);
  void leave(StreamPace::Ending ending, Instant now);
  void refuse(const absl::Status& why, Instant now);
  TimerId start_timer(const char* name, Duration delay);

  const std::set<std::string>& wanted(ResourceType type) const;
  void note_change(Live& live, ResourceType type);
  void ask(Live& live, ResourceType type, Instant now);
  bool must_wait(Asked& asked, RequestTurn::Change change, Instant now);
  void answer(Live& live, const DecodedResponse& response, Instant now);
  void timer_elapsed(Live& live, const TimerId& timer, Instant now);
  void send(Live& live, ResourceType type, std::set<std::string> names, const std::string& node);

  void note_answer(Live& live);
  void report_lost(const Live& live);
  void report_failure(const absl::Status& status);

  AdsSessionOptions options_;
  StreamPace pace_;
  State state_;
  std::map<ResourceType, std::set<std::string>> wanted_;  // No empty sets.
  std::map<ResourceType, std::string> versions_;
  std::uint64_t streams_ = 0;
  std::uint64_t timers_ = 0;
  bool failing_ = false;  // What was last reported.
  AdsSessionEffects effects_;
};

}  // namespace signalbox::xds
