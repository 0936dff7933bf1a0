// SPDX-License-Identifier: Apache-2.0
//
// Recording — all that came into a runtime from outside, with its times: enough to run the actors
// over it again.
//
//   seams (transports, connector, prober, look-up, targets) ─ OutsideEvent ─▶ file ─▶ replay
//
// Calls are not recorded, except that they ask policies to connect. So a recording has no payload,
// no metadata and no credentials of calls or connections. It does have the resources of control
// planes as they were sent.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "messages/ids.hpp"
#include "messages/pick.hpp"
#include "messages/resource.hpp"
#include "messages/resource_dump.hpp"
#include "messages/subchannel_events.hpp"

namespace signalbox {

// --- the program ------------------------------------------------------------

struct TargetOpened {
  std::string target;  ///< "xds:///orders"

  friend bool operator==(const TargetOpened&, const TargetOpened&) = default;
};

struct TargetClosed {
  std::string target;

  friend bool operator==(const TargetClosed&, const TargetClosed&) = default;
};

/// The program asked the target to leave IDLE.
struct TargetWoken {
  std::string target;

  friend bool operator==(const TargetWoken&, const TargetWoken&) = default;
};

/// A pick asked a policy of the target to connect.
struct PolicyAsked {
  std::string target;
  PolicyPath path;
  PickAsk ask;

  friend bool operator==(const PolicyAsked&, const PolicyAsked&) = default;
};

// --- control planes ---------------------------------------------------------

/// The client began to open an ADS stream. The streams of a server have rising numbers.
struct StreamBegan {
  ServerId server = 0;
  std::uint64_t stream = 0;

  friend bool operator==(const StreamBegan&, const StreamBegan&) = default;
};

struct StreamOpened {
  ServerId server = 0;
  std::uint64_t stream = 0;

  friend bool operator==(const StreamOpened&, const StreamOpened&) = default;
};

struct StreamReceived {
  ServerId server = 0;
  std::uint64_t stream = 0;
  std::string bytes;  ///< A serialised DiscoveryResponse, as it came.

  friend bool operator==(const StreamReceived&, const StreamReceived&) = default;
};

/// The client sent a request: which resources of a type it wants now, and whether it has accepted
/// the response that the request answers. Nothing else of a request is recorded.
struct StreamAsked {
  ServerId server = 0;
  std::uint64_t stream = 0;
  ResourceType type = ResourceType::kListener;
  std::string nonce;     ///< Of the type's last response; empty: none came on this stream.
  bool refused = false;  ///< The request is a NACK of that response.
  /// nullopt: the names of the type's last request on this stream.
  std::optional<std::vector<std::string>> names;

  friend bool operator==(const StreamAsked&, const StreamAsked&) = default;
};

struct StreamClosed {
  ServerId server = 0;
  std::uint64_t stream = 0;
  absl::Status why;

  friend bool operator==(const StreamClosed&, const StreamClosed&) = default;
};

/// The client has ended the stream, or keeps it no longer after StreamClosed.
struct StreamLeft {
  ServerId server = 0;
  std::uint64_t stream = 0;

  friend bool operator==(const StreamLeft&, const StreamLeft&) = default;
};

// --- endpoints --------------------------------------------------------------

/// A subchannel began to connect. `attempt` is unique in the recording.
struct ConnectBegan {
  std::uint64_t attempt = 0;
  std::string peer;  ///< The address, the target's authority, and whether TLS is used.
  /// The subchannel, which may have several connections (A105). Unique in the recording; 0:
  /// unknown.
  std::uint64_t holder = 0;

  friend bool operator==(const ConnectBegan&, const ConnectBegan&) = default;
};

struct ConnectMade {
  std::uint64_t attempt = 0;

  friend bool operator==(const ConnectMade&, const ConnectMade&) = default;
};

/// The attempt failed or, after ConnectMade, the connection was lost.
struct ConnectEnded {
  std::uint64_t attempt = 0;
  absl::Status why;

  friend bool operator==(const ConnectEnded&, const ConnectEnded&) = default;
};

/// The subchannel gave up the attempt or the connection.
struct ConnectLeft {
  std::uint64_t attempt = 0;

  friend bool operator==(const ConnectLeft&, const ConnectLeft&) = default;
};

struct NameAnswered {
  DnsName name;
  absl::StatusOr<std::vector<Address>> answer;

  friend bool operator==(const NameAnswered&, const NameAnswered&) = default;
};

struct ProbeAnswered {
  std::string probe;  ///< Names the endpoint, its cluster and the check.
  ProbeOutcome outcome = ProbeOutcome::kFailed;
  std::string why;
  bool delayed = false;

  friend bool operator==(const ProbeAnswered&, const ProbeAnswered&) = default;
};

// --- the recording itself ---------------------------------------------------

/// Events are missing here, because they came faster than the file could be written.
struct EventsDropped {
  std::uint64_t count = 0;

  friend bool operator==(const EventsDropped&, const EventsDropped&) = default;
};

/// The order of the alternatives is part of the file's format: add new ones at the end.
using OutsideEvent = std::variant<TargetOpened,
                                  TargetClosed,
                                  TargetWoken,
                                  PolicyAsked,
                                  StreamBegan,
                                  StreamOpened,
                                  StreamReceived,
                                  StreamClosed,
                                  ConnectBegan,
                                  ConnectMade,
                                  ConnectEnded,
                                  ConnectLeft,
                                  NameAnswered,
                                  ProbeAnswered,
                                  EventsDropped,
                                  StreamAsked,
                                  StreamLeft>;

struct RecordedEvent {
  Duration at{};  ///< Since the recording began; never falls from event to event.
  /// True: this is no event, but a part of the state with which a segment begins.
  bool carried = false;
  OutsideEvent what;

  friend bool operator==(const RecordedEvent&, const RecordedEvent&) = default;
};

/// The settings of the recorded runtime that its decisions depend on.
struct RecordingHeader {
  std::string version;        ///< The signalbox that wrote the recording: "0.1.0".
  std::uint64_t run = 0;      ///< Equal in all segments of one recording, and random.
  std::uint64_t segment = 0;  ///< The first is 0.
  WallTime started{};         ///< When the recording began.
  std::string bootstrap;      ///< JSON, without credentials and without the node's metadata.
  std::map<std::string, std::string> settings;     ///< RuntimeOptions as texts, by name.
  std::map<std::string, std::string> environment;  ///< The variables that were read and set.
  std::vector<std::string> extensions;  ///< The program's own policies and filters, by name.

  friend bool operator==(const RecordingHeader&, const RecordingHeader&) = default;
};

struct Recording {
  RecordingHeader header;
  std::vector<RecordedEvent> events;
};

}  // namespace signalbox
