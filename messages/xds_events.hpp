// SPDX-License-Identifier: Apache-2.0
//
// The events and effects of the xDS side.
//
//   bytes ─▶ ads_session ─▶ ServerReported ─▶ client_core (cache) ─▶ ResourcesChanged
//         ◀─ SendBytes             ◀─ AskServer        ◀─ WatchesChanged ◀─ dependency manager
//                                                        dependency manager ─▶ EmitConfig
//
// Events are past tense, effects imperative; all are plain values. A message between client and
// watcher holds all changes of one step, so a configuration with a thousand clusters is one
// message, not a thousand.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "messages/lb_events.hpp"
#include "messages/resource.hpp"
#include "messages/xds_config.hpp"

namespace signalbox {

// --- the ADS session: one stream to one server, re-opened for ever ----------

/// The complete set of wanted names of one type; replaces the previous set.
struct Subscribe {
  ResourceType type = ResourceType::kListener;
  std::set<std::string> names;
};

struct AdsStreamOpened {
  std::uint64_t stream = 0;
};

/// A response came. The transport passes on the next response only after ReadNext.
struct AdsBytesReceived {
  std::uint64_t stream = 0;
  std::string bytes;  ///< One serialised DiscoveryResponse.
};

/// The bytes of one SendBytes have been sent to the server. These events come in the order of the
/// stream's SendBytes.
struct AdsBytesWritten {
  std::uint64_t stream = 0;
};

struct AdsStreamClosed {
  std::uint64_t stream = 0;
  /// RESOURCE_EXHAUSTED: signalbox closed the stream, because a response was larger than the limit.
  absl::Status status;
};

using AdsSessionEvent = std::variant<Subscribe,
                                     AdsStreamOpened,
                                     AdsBytesReceived,
                                     AdsBytesWritten,
                                     AdsStreamClosed,
                                     TimerFired>;

/// Opens stream number `stream`. AdsStreamOpened or AdsStreamClosed follows.
struct OpenStream {
  std::uint64_t stream = 0;
};

/// Closes the stream. Events of the stream may still come, because they were sent before. The core
/// recognises them by their old stream number.
struct CloseStream {
  std::uint64_t stream = 0;
};

/// Sends the bytes on the stream. AdsBytesWritten follows, unless the stream ends before.
struct SendBytes {
  std::uint64_t stream = 0;
  std::string bytes;  ///< One serialised DiscoveryRequest.
};

/// The last response is decoded, so the transport may pass on the next response. The transport
/// reads at most one response ahead, and then flow control stops the server (T5 of
/// actors/io/ads_transport.hpp).
struct ReadNext {
  std::uint64_t stream = 0;
};

struct ReceivedResource {
  std::string name;
  /// The validated resource, or the reason why it is invalid.
  absl::StatusOr<Resource> resource = absl::UnknownError("not set");
  /// Set when the resource was refused.
  std::optional<Rejection> rejection = {};
  /// The resource serialised as it came; null when it was refused.
  std::shared_ptr<const std::string> bytes = nullptr;
};

/// The server's reason for not sending a resource that was asked for (A88).
struct ResourceError {
  std::string name;
  /// NOT_FOUND and PERMISSION_DENIED concern the resource itself; errors of other codes are
  /// temporary.
  absl::Status status;
};

/// One decoded response. Every valid resource is used even if the response was NACKed (A46).
struct ResourcesReceived {
  ResourceType type = ResourceType::kListener;
  std::string version;
  std::vector<ReceivedResource> resources;
  /// The first few errors of resources that have no readable name. They become part of the NACK.
  std::vector<std::string> unnamed_errors;
  /// The number of further errors of resources that have no readable name.
  std::uint64_t more_unnamed = 0;
  /// These errors do not refuse a resource, so they are not part of a NACK.
  std::vector<ResourceError> resource_errors;
  /// The number of refused resources, named or not, by RejectionReason; for the metrics.
  std::array<std::uint64_t, kRejectionReasons> rejected{};
  std::size_t bytes = 0;  ///< The size of the serialised response.
  Instant at{};           ///< When the response came.
};

/// All names of one type in the last request that was sent on the live stream. The set replaces the
/// previous set, and is empty once the stream has ended. Does-not-exist timers run for these names
/// (A57).
struct SubscriptionSent {
  ResourceType type = ResourceType::kListener;
  std::set<std::string> names;
};

/// A whole response was unusable: it was beyond the limit, or was no DiscoveryResponse. Only
/// metrics and the log use this effect.
struct ResponseRefused {
  RejectionReason reason = RejectionReason::kParse;
};

enum class StreamEnd : std::uint8_t {
  kOk,          ///< The stream ended with the status OK after a response.
  kNoResponse,  ///< The stream ended before a usable response.
  /// The stream ended with another status after a response, or signalbox closed it for a bad
  /// response.
  kError,
};

/// A stream has ended: the server or the network ended it, or signalbox ended it for a bad
/// response. Only metrics use this effect.
struct StreamEnded {
  StreamEnd how = StreamEnd::kOk;
};

/// The server cannot be reached, closed the stream without a response, or sent an unusable
/// response. OK: a response came after such an error.
struct ServerStatusChanged {
  absl::Status status;
};

using AdsSessionEffect = std::variant<OpenStream,
                                      CloseStream,
                                      SendBytes,
                                      ReadNext,
                                      ResourcesReceived,
                                      ResponseRefused,
                                      StreamEnded,
                                      SubscriptionSent,
                                      ServerStatusChanged,
                                      StartTimer,
                                      CancelTimer>;
using AdsSessionEffects = std::vector<AdsSessionEffect>;

// --- the client: cache and watchers ----------------------------------------

using WatcherId = std::uint64_t;

struct Watch {
  ResourceKey key;
};

struct Unwatch {
  ResourceKey key;
};

/// The changes of one step of a watcher, in order.
struct WatchesChanged {
  WatcherId watcher = 0;
  std::vector<std::variant<Watch, Unwatch>> changes;
};

/// All watches of the watcher end.
struct WatcherGone {
  WatcherId watcher = 0;
};

/// A report of the session with one server.
struct ServerReported {
  ServerId server = 0;
  std::variant<ResourcesReceived, SubscriptionSent, ServerStatusChanged> what;
};

using ClientEvent = std::variant<WatchesChanged, WatcherGone, ServerReported, TimerFired>;

/// The resource appeared, changed, or became unavailable. For an unavailable resource, `resource`
/// is the reason: NOT_FOUND when it does not exist. A watcher that gets an error does not have the
/// resource; ClientReplaced has an exception.
struct ResourceChanged {
  ResourceKey key;
  absl::StatusOr<Resource> resource = absl::UnknownError("not set");
  std::string version = {};  ///< Of the resource; empty: there is none, or it is not known.
};

/// An error that leaves the watcher's resource valid. OK: the error is over.
struct AmbientErrorChanged {
  ResourceKey key;
  absl::Status status;
};

/// All changes that one step of the client reports to one watcher, in order.
struct ResourcesChanged {
  std::vector<std::variant<ResourceChanged, AmbientErrorChanged>> changes;
  /// When the response came that made these changes; nullopt: no response made them.
  std::optional<Instant> response_at = std::nullopt;
};

struct NotifyWatcher {
  WatcherId watcher = 0;
  ResourcesChanged what;
};

/// A message to the session with one server. The first AskServer to a server, and the first after a
/// LeaveServer, starts a session.
struct AskServer {
  ServerId server = 0;
  Subscribe subscription;
};

/// The session with the server ends.
struct LeaveServer {
  ServerId server = 0;
};

/// The client's actor counts these in signalbox_xds_resource_updates_{valid,invalid}_total and
/// signalbox_config_rejected_total.
struct CountUpdates {
  ServerId server = 0;
  ResourceType type = ResourceType::kListener;
  std::uint64_t valid = 0;
  std::uint64_t invalid = 0;
  std::array<std::uint64_t, kRejectionReasons> rejected{};  ///< By RejectionReason.
};

/// The number of resources with this type and cache_state now: the gauge signalbox_xds_resources.
struct CountResources {
  ResourceType type = ResourceType::kListener;
  absl::string_view cache_state;  ///< From cache_state() of resource_dump.hpp.
  std::uint64_t count = 0;
};

using ClientEffect = std::variant<AskServer,
                                  LeaveServer,
                                  NotifyWatcher,
                                  CountUpdates,
                                  CountResources,
                                  StartTimer,
                                  CancelTimer>;
using ClientEffects = std::vector<ClientEffect>;

// --- the dependency manager: one target ------------------------------------

struct NameResolved {
  DnsName name;
  absl::StatusOr<std::vector<Address>> addresses = absl::UnknownError("not set");
};

/// Clusters that calls still refer to, in addition to the clusters that the routes name (A31-13,
/// A74). The set is complete; it replaces the previous set.
struct ClustersReferenced {
  std::set<ClusterName> clusters;
};

struct ReresolutionRequested {};

/// The xDS client that reported the resources was replaced by a new client. The resources stay
/// valid. The new client has no resources yet. Until the new client has sent a resource, an error
/// of the new client on that resource therefore leaves the old resource valid, as
/// AmbientErrorChanged does.
struct ClientReplaced {};

using DependencyEvent = std::variant<ResourcesChanged,
                                     NameResolved,
                                     ClustersReferenced,
                                     ReresolutionRequested,
                                     ClientReplaced,
                                     TimerFired>;

/// Starts a DNS look-up. NameResolved follows.
struct ResolveName {
  DnsName name;
};

/// A new configuration for the channel, or new notes. If only the notes changed, the configuration
/// is the same pointer as before.
struct EmitConfig {
  XdsConfigPtr config;
  ResolutionNotesPtr notes;
  ConfigOrigin origin = {};
};

/// There is no configuration, or no longer one. Calls fail as UNAVAILABLE with this text;
/// wait_for_ready calls wait.
struct EmitError {
  absl::Status status;
};

using DependencyEffect =
    std::variant<Watch, Unwatch, ResolveName, EmitConfig, EmitError, StartTimer, CancelTimer>;
using DependencyEffects = std::vector<DependencyEffect>;

}  // namespace signalbox
