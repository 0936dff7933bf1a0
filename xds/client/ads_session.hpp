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
// A stream that closes is an error for all watchers only if it brought no response (A57). The
// next one then waits for the back-off; otherwise only until a second after the last opening.
//
// Invariants
//   S1  Streams are opened at least `min_interval` apart, always (B8).
//   S2  Each response to what was asked is answered by one ACK or NACK that carries its nonce.
//   S3  A NACK keeps the last accepted version; versions outlive streams, nonces do not.
//   S4  No request is a wildcard by accident: a type's first request on a stream names something.
//       Later an empty list unsubscribes.
//   S5  The node travels in the first request of each stream only.
//   S6  Of a type of which nothing is wanted we have nothing, and so no version: who asks again
//       with a version may be taken to have its resources still, and never be answered.
//
// What cannot be answered, because it is no envelope or of a type that was never asked for on
// this stream, is ignored, as gRPC's own client does.
//
// Source: gRFC A27, A46, A57; the xDS transport protocol.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "messages/xds_events.hpp"
#include "xds/client/backoff.hpp"
#include "xds/client/discovery_codec.hpp"

namespace signalbox::xds {

struct AdsSessionOptions {
  std::string server;  ///< For the texts of errors.
  std::string node;    ///< Serialised envoy.config.core.v3.Node.
  std::uint64_t seed = 0;
  ResponseDecoder decode;
  BackoffOptions backoff;
  Duration min_interval = std::chrono::seconds(1);
};

class AdsSession {
 public:
  explicit AdsSession(AdsSessionOptions options);

  AdsSessionEffects step(const AdsSessionEvent& event, Instant now);

 private:
  // What this stream was asked for, of one type.
  struct Asked {
    std::set<std::string> names;
    std::string nonce;
  };

  struct Idle {};

  struct Opening {
    std::uint64_t stream = 0;
  };

  struct Live {
    std::uint64_t stream = 0;
    bool answered = false;
    std::map<ResourceType, Asked> asked;
  };

  struct Waiting {
    TimerId timer;
  };

  using State = std::variant<Idle, Opening, Live, Waiting>;

  void on(const Subscribe& event, Instant now);
  void on(const AdsStreamOpened& event, Instant now);
  void on(const AdsBytesReceived& event, Instant now);
  void on(const AdsStreamClosed& event, Instant now);
  void on(const TimerFired& event, Instant now);

  void open(Instant now);
  void ask(Live& live, ResourceType type);
  void answer(Live& live, const DecodedResponse& response);
  void note_answer(Live& live);
  void report_lost(const Live& live);
  void report_failure(const absl::Status& status);
  void wait(Duration delay, Instant now);

  AdsSessionOptions options_;
  Backoff backoff_;
  State state_;
  std::map<ResourceType, std::set<std::string>> wanted_;  // No empty sets.
  std::map<ResourceType, std::string> versions_;
  std::uint64_t streams_ = 0;
  std::uint64_t timers_ = 0;
  Instant last_opened_;
  bool failing_ = false;  // What was last reported.
  AdsSessionEffects effects_;
};

}  // namespace signalbox::xds
