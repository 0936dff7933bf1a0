// SPDX-License-Identifier: Apache-2.0
//
// AdsSession — one ADS stream (state of the world) to one control plane. A closed stream is
// re-opened as long as names are wanted.
//
//   client_core ─▶ Subscribe ─▶ [AdsSession] ─▶ ResourcesReceived, SubscriptionSent,
//                                 ▲      │         ServerStatusChanged ─▶ client_core
//                         bytes ──┘      └─▶ bytes
//
//            names wanted           opened
//    Idle ────────────────▶ Opening ───────▶ Live
//     ▲                       │ ▲             │
//     │ elapsed,       closed │ │ elapsed,    │ closed
//     │ no names wanted       ▼ │ names wanted│
//     └────────────────────── Waiting ◀───────┘
//
// Waiting: for the time that StreamPace demands before the next stream. If it demands none, the
// session goes from Live to Opening at once, or to Idle if no names are wanted.
//
// A closed stream counts as a failure of the server only if it brought no response (A57) or an
// unusable response (S8), or if its status is RESOURCE_EXHAUSTED.
//
// Invariants
//   S1  Streams are always opened at least `pace.min_interval` apart.
//   S2  The session answers each response of a requested type with one ACK or NACK, which has the
//       response's nonce. It sends the answer at once, with two exceptions: the answer waits while
//       an earlier request of the type is unwritten (S9), and the NACK of a repeated response waits
//       longer (S7). An unsent answer is dropped when a newer response of the type comes, or when
//       the stream ends.
//   S3  A NACK carries the last accepted version, unless that version is forgotten (S6). When a
//       stream ends, the session keeps the versions, and forgets the nonces of the stream.
//   S4  A type's first request on a stream names at least one resource, because an empty first
//       request asks for all resources (wildcard). In a later request, an empty list unsubscribes.
//   S5  Only the first request of each stream carries the node.
//   S6  The version of a type is forgotten once no name of the type is wanted, because the client
//       drops the resources then. A later request with the old version would claim that the client
//       still has the resources, and the server might not send them again.
//   S7  Some servers answer every NACK at once with the response that was refused, for ever. So the
//       NACK of a repeated response waits for `nack_backoff` (about 1 s at first, and up to about
//       10 s). A response is repeated if the previous response of its type was refused too, with
//       the same version and errors, and the subscription has not changed since then. If the NACK
//       of the previous response is due but unsent (S9), it is sent with the nonce of the repeated
//       response, without this wait. The NACK does not wait any longer if a request with a changed
//       subscription is sent: that request carries the NACK. If a different response comes
//       meanwhile, the answer to that response replaces the NACK. Responses of other types or
//       versions are answered at once, because they may have valid resources (A46).
//   S8  A response that is longer than the limit, or is no DiscoveryResponse, cannot be answered,
//       because its nonce is unknown. The session then ends the stream, and reports and counts the
//       error. Resources that were accepted before stay in use.
//   S9  At most one request of each type is unwritten: given to the transport, which has not yet
//       reported AdsBytesWritten for it. The type's next request is made after that report, and has
//       all changes until then. A request that only changes names also waits for the server's
//       answer to the previous request, as long as RequestTurn says. If an ACK or NACK is sent
//       meanwhile, it has the changed names.
//   S10 The client drops a resource when no watcher wants its name any more. If every request has
//       the name, the server does not notice this, and does not send the resource again. So a name
//       that is given up and then wanted again is left out of one request first, unless a response
//       with the resource has come meanwhile. A server ignores a request with an old nonce. A
//       request that is made while a response of its type is being decoded has an old nonce. So the
//       names that such a request leaves out are left out of the answer to that response, too.
//   S11 SubscriptionSent reports names when their request has been written, not when it was made.
//   S12 A response is decoded part by part, with a timer of zero length between two parts, so that
//       other events and other actors have their turn. The end of the stream waits until the
//       response is decoded. ReadNext asks for the next response after that. So at most one
//       response is being decoded and one waits in the transport, however much a server sends.
//
// Responses of unknown types, and of types that were never requested on this stream, are neither
// used nor answered, as in gRPC's own client.
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
  std::string server;  ///< The server's name, for error texts.
  std::string node;    ///< A serialised envoy.config.core.v3.Node.
  std::uint64_t seed = 0;
  ResponseDecoder decode;
  StreamPaceOptions pace;
  /// How long the NACK of a repeated response waits (S7). The maximum is short, because some
  /// servers send no new version before they get the NACK.
  BackoffOptions nack_backoff{.max = std::chrono::seconds(10)};
  RequestTurnOptions turn = {};  ///< How long a change of names waits (S9).
};

class AdsSession {
 public:
  explicit AdsSession(AdsSessionOptions options);

  AdsSessionEffects step(const AdsSessionEvent& event, Instant now);

 private:
  // The newest response of a type, if it was refused and the names have not changed since then.
  struct Refused {
    std::string version;
    std::string detail;
    Backoff brake;  // How long the NACK of each repetition waits (S7).
  };

  // The subscription of one type on this stream.
  struct Asked {
    explicit Asked(const RequestTurn& its_turn) : turn(its_turn) {}

    std::set<std::string> names;  // The names of the last request.
    // Names that the next request leaves out, even if they are wanted again (S10).
    std::set<std::string> given_up;
    // Names that the client gave up in requests that the server may ignore, because they were made
    // while a response was being decoded and may have an old nonce (S10).
    std::set<std::string> unseen;
    // Whether no name was wanted at some moment since the later of two events: the last request was
    // made, the last response was accepted (S6).
    bool was_empty = false;
    std::string nonce;
    std::optional<Refused> refused;
    std::optional<TimerId> held;  // The NACK of `refused` waits for this timer (S7).
    // The answer that is due: "" for an ACK, else the errors of a NACK.
    std::optional<std::string> answer;
    // Whether a response of the type has come since the last request of the type was made.
    bool answered = false;
    bool unwritten = false;  // The last request has not been written yet.
    // How the unwritten request changes the names (S11); nullopt: it does not.
    std::optional<RequestTurn::Change> change;
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
    // The size of the last response, and when it came.
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
  // The wanted names of each type; no set is empty.
  std::map<ResourceType, std::set<std::string>> wanted_;
  std::map<ResourceType, std::string> versions_;
  std::uint64_t streams_ = 0;
  std::uint64_t timers_ = 0;
  bool failing_ = false;  // The last reported server status was an error.
  AdsSessionEffects effects_;
};

}  // namespace signalbox::xds
