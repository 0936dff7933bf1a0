// SPDX-License-Identifier: Apache-2.0
//
// AdsSession — one ADS stream (state of the world) to one control plane. A closed stream is
// re-opened as long as names are wanted.
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
// A closed stream is an error for all watchers only if it brought no response (A57), or an
// unusable response (B7, see S8). StreamPace decides how long to wait before the next stream.
//
// Invariants
//   S1  Streams are always opened at least `pace.min_interval` apart (B8).
//   S2  Each response of a requested type is answered by one ACK or NACK with the response's nonce.
//       The answer is sent at once, unless an earlier request of the type is still unwritten (S9):
//       then it is sent after that request. S7 is the exception. The answer to a newer response
//       replaces an unsent answer.
//   S3  A NACK carries the last accepted version. Versions outlive streams, nonces do not.
//   S4  No request is a wildcard by accident: a type's first request on a stream names a resource.
//       Later an empty list unsubscribes.
//   S5  Only the first request of each stream carries the node.
//   S6  A type without wanted names has no version. Resources of the type are dropped with the last
//       subscription. A later request with the old version would claim to still have them, and the
//       server might never answer it.
//   S7  A response repeats a refused response if type, version, errors and subscription are equal.
//       The NACK of a repeated response waits for `nack_backoff`, because some servers answer each
//       NACK at once with the same response, for ever. The answer to a newer response replaces the
//       waiting NACK. A request with a changed subscription carries it. Other types and other
//       versions do not wait, because they may have valid resources (A46).
//   S8  A response beyond the limit, or one that is no DiscoveryResponse, has no nonce to answer
//       with. It ends its stream, and is reported and counted. Resources that were accepted before
//       stay (B7).
//   S9  Each type has at most one unwritten request. The next request of the type is made when that
//       request has been written, and carries all changes up to then. A change of names waits for
//       the answer to the previous request, as long as RequestTurn says. An ACK or NACK carries a
//       waiting change.
//   S10 A name that was given up and is wanted again is left out of one request before it is
//       requested again. Otherwise the server would assume that the client still has the resource.
//       This is not needed after a response that has the resource. The server ignores a request
//       with an old nonce. A request that is made while a response of its type is decoded has such
//       a nonce, so the names that it gave up are left out of the answer to that response, too.
//   S11 SubscriptionSent reports names when their request has been written, not when it was made.
//   S12 A response is decoded part by part, with a timer of zero length between two parts, so that
//       other events and other actors have their turn. The end of the stream waits until the
//       response is decoded. ReadNext asks for the next response after that. However much a server
//       sends, one response is being decoded and one waits in the transport.
//
// Responses of unknown types, and of types that were never requested on this stream, are ignored,
// as gRPC's own client does.
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
  std::string server;  ///< Named in error texts.
  std::string node;    ///< A serialised envoy.config.core.v3.Node.
  std::uint64_t seed = 0;
  ResponseDecoder decode;
  StreamPaceOptions pace;
  /// The wait of S7. Its maximum is short: some servers send no new version before the NACK.
  BackoffOptions nack_backoff{.max = std::chrono::seconds(10)};
  RequestTurnOptions turn = {};  ///< The waits of S9.
};

class AdsSession {
 public:
  explicit AdsSession(AdsSessionOptions options);

  AdsSessionEffects step(const AdsSessionEvent& event, Instant now);

 private:
  // The newest response of a type, if it was refused.
  struct Refused {
    std::string version;
    std::string detail;
    Backoff brake;
  };

  // The subscription of one type on this stream.
  struct Asked {
    explicit Asked(const RequestTurn& its_turn) : turn(its_turn) {}

    std::set<std::string> names;     // The names of the last request.
    std::set<std::string> given_up;  // Of `names`: unwanted since then (S10).
    std::set<std::string> unseen;    // Names given up in requests with an old nonce (S10).
    bool was_empty = false;          // No name was wanted at some time since that request (S6).
    std::string nonce;
    std::optional<Refused> refused;
    std::optional<TimerId> held;        // The NACK of `refused` waits for this timer (S7).
    std::optional<std::string> answer;  // The answer due: errors of a NACK, or "" for an ACK.
    bool answered = false;              // A response has come since the last request was made.
    bool unwritten = false;             // The last request has not been written yet.
    std::optional<RequestTurn::Change> change;  // The last request's change (S11).
    RequestTurn turn;
    std::optional<TimerId> waits;  // A change of names waits for this timer.
    bool has_waited = false;       // The timer of a waiting change has elapsed.
  };

  struct Idle {};

  struct Opening {
    std::uint64_t stream = 0;
  };

  // The response that is being decoded (S12).
  struct Decoded {
    Decoding decoding;
    TimerId next_part;
    std::optional<AdsStreamClosed> end;  // The end of the stream, which came after the response.
  };

  struct Live {
    std::uint64_t stream = 0;
    bool answered = false;
    std::map<ResourceType, Asked> asked;
    std::deque<ResourceType> unwritten;  // Types of unwritten requests, the oldest first.
    std::optional<Decoded> decoded;
    // The response that came last.
    std::size_t response_bytes = 0;
    Instant response_at{};
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
  void record_change(Live& live, ResourceType type);
  void ask(Live& live, ResourceType type, Instant now);
  bool must_wait(Asked& asked, RequestTurn::Change change, Instant now);
  void answer(Live& live, const DecodedResponse& response, Instant now);
  void timer_elapsed(Live& live, const TimerId& timer, Instant now);
  void send(Live& live, ResourceType type, std::set<std::string> names, const std::string& node);

  void record_answer(Live& live);
  void report_lost(const Live& live);
  void report_failure(const absl::Status& status);

  AdsSessionOptions options_;
  StreamPace pace_;
  State state_;
  std::map<ResourceType, std::set<std::string>> wanted_;  // Has no empty sets.
  std::map<ResourceType, std::string> versions_;
  std::uint64_t streams_ = 0;
  std::uint64_t timers_ = 0;
  bool failing_ = false;  // The last reported server status was an error.
  AdsSessionEffects effects_;
};

}  // namespace signalbox::xds
