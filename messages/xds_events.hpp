// SPDX-License-Identifier: Apache-2.0
//
// What the xDS side can hear (events) and what it can want done (effects).
//
//   bytes ─▶ ads_session ─▶ ServerReported ─▶ client_core (cache) ─▶ ResourcesChanged
//         ◀─ SendBytes             ◀─ AskServer        ◀─ WatchesChanged ◀─ dependency manager
//                                                        dependency manager ─▶ EmitConfig
//
// Events are past tense, effects imperative; plain values all. Between client and watchers one
// message carries all that one step has to say: a thousand clusters are one step of each.

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

/// The complete set of names wanted of one type; replaces the set before.
struct Subscribe {
  ResourceType type = ResourceType::kListener;
  std::set<std::string> names;
};

struct AdsStreamOpened {
  std::uint64_t stream = 0;
};

/// The next one comes after ReadNext.
struct AdsBytesReceived {
  std::uint64_t stream = 0;
  std::string bytes;  ///< One serialised DiscoveryResponse.
};

/// The oldest SendBytes of the stream that was not told of yet has left for the server.
struct AdsBytesWritten {
  std::uint64_t stream = 0;
};

struct AdsStreamClosed {
  std::uint64_t stream = 0;
  absl::Status status;  ///< RESOURCE_EXHAUSTED: by us, as a response was beyond the limit.
};

using AdsSessionEvent = std::variant<Subscribe,
                                     AdsStreamOpened,
                                     AdsBytesReceived,
                                     AdsBytesWritten,
                                     AdsStreamClosed,
                                     TimerFired>;

/// Opens stream number `stream`; answered by AdsStreamOpened or AdsStreamClosed.
struct OpenStream {
  std::uint64_t stream = 0;
};

/// Nothing more is wanted of the stream; it is not answered.
struct CloseStream {
  std::uint64_t stream = 0;
};

/// Answered by AdsBytesWritten, unless the stream ends before.
struct SendBytes {
  std::uint64_t stream = 0;
  std::string bytes;  ///< One serialised DiscoveryRequest.
};

/// The response that came last is decoded: the next one may come. Until then the server is held up
/// by its flow control.
struct ReadNext {
  std::uint64_t stream = 0;
};

struct ReceivedResource {
  std::string name;
  /// The validated resource, or why it is not one.
  absl::StatusOr<Resource> resource = absl::UnknownError("not set");
  /// Set where the resource was refused.
  std::optional<Rejection> rejection = {};
  /// The resource serialised as it came; null where it was refused.
  std::shared_ptr<const std::string> bytes = nullptr;
};

/// The server says of a resource that was asked for why it does not send it (A88).
struct ResourceError {
  std::string name;
  absl::Status status;  ///< NOT_FOUND and PERMISSION_DENIED: of the resource; others pass.
};

/// One response, decoded: every valid resource is used even if the response was NACKed (A46).
struct ResourcesReceived {
  ResourceType type = ResourceType::kListener;
  std::string version;
  std::vector<ReceivedResource> resources;
  /// Errors that belong to no resource that could be named, the first few; part of the NACK.
  std::vector<std::string> unnamed_errors;
  /// How many more of them there were.
  std::uint64_t more_unnamed = 0;
  /// Nothing to refuse, so no part of a NACK.
  std::vector<ResourceError> resource_errors;
  /// How many resources were refused, named or not, by RejectionReason; to be counted.
  std::array<std::uint64_t, kRejectionReasons> rejected{};
};

/// All names of one type in the last request that has left on the live stream; replaces the set
/// before, and is empty once the stream is gone. Does-not-exist timers run for these (A57).
struct SubscriptionSent {
  ResourceType type = ResourceType::kListener;
  std::set<std::string> names;
};

/// A whole response was of no use: beyond the limit, or no DiscoveryResponse; to be counted.
struct ResponseRefused {
  RejectionReason reason = RejectionReason::kParse;
};

/// The server cannot be reached, closed the stream without a response, or sent one that is of no
/// use: an error for all watchers. OK: the stream is up again.
struct ServerStatusChanged {
  absl::Status status;
};

using AdsSessionEffect = std::variant<OpenStream,
                                      CloseStream,
                                      SendBytes,
                                      ReadNext,
                                      ResourcesReceived,
                                      ResponseRefused,
                                      SubscriptionSent,
                                      ServerStatusChanged,
                                      StartTimer,
                                      CancelTimer>;
using AdsSessionEffects = std::vector<AdsSessionEffect>;

// --- the client: cache and watchers ----------------------------------------

using WatcherId = std::uint64_t;

/// One control-plane server: its place among the distinct ones of the bootstrap.
using ServerId = std::size_t;

struct Watch {
  ResourceKey key;
};

struct Unwatch {
  ResourceKey key;
};

/// What one step of a watcher changed, in order.
struct WatchesChanged {
  WatcherId watcher = 0;
  std::vector<std::variant<Watch, Unwatch>> changes;
};

/// All watches of the watcher end.
struct WatcherGone {
  WatcherId watcher = 0;
};

/// What the session with one server says.
struct ServerReported {
  ServerId server = 0;
  std::variant<ResourcesReceived, SubscriptionSent, ServerStatusChanged> what;
};

using ClientEvent = std::variant<WatchesChanged, WatcherGone, ServerReported, TimerFired>;

/// The resource is there, changed, or cannot be had (then `resource` says why: NOT_FOUND where it
/// does not exist). A watcher that is told an error has no resource any more.
struct ResourceChanged {
  ResourceKey key;
  absl::StatusOr<Resource> resource = absl::UnknownError("not set");
};

/// Something is wrong, but what the watcher was given stays valid. OK: it is over.
struct AmbientErrorChanged {
  ResourceKey key;
  absl::Status status;
};

/// What one step of the client has to tell one watcher, in order.
struct ResourcesChanged {
  std::vector<std::variant<ResourceChanged, AmbientErrorChanged>> changes;
};

struct NotifyWatcher {
  WatcherId watcher = 0;
  ResourcesChanged what;
};

/// To the session with one server, which begins with the first of these.
struct AskServer {
  ServerId server = 0;
  Subscribe subscription;
};

/// The session with the server ends.
struct LeaveServer {
  ServerId server = 0;
};

/// Counted by the shell: signalbox_xds_resource_updates_{valid,invalid}_total and
/// signalbox_config_rejected_total.
struct CountUpdates {
  ServerId server = 0;
  ResourceType type = ResourceType::kListener;
  std::uint64_t valid = 0;
  std::uint64_t invalid = 0;
  std::array<std::uint64_t, kRejectionReasons> rejected{};  ///< By RejectionReason.
};

/// So many resources are in this state by now: the gauge signalbox_xds_resources.
struct CountResources {
  ResourceType type = ResourceType::kListener;
  absl::string_view cache_state;  ///< As cache_state() of resource_dump.hpp has it.
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

/// Clusters that calls still refer to, beside those that the routes name (A31-13, A74). The
/// complete set; replaces the set before.
struct ClustersReferenced {
  std::set<ClusterName> clusters;
};

struct ReresolutionRequested {};

/// The client that told of the resources was replaced. What it told stays good: an error of the new
/// one, which begins with nothing, is ambient until it has had the resource itself.
struct ClientReplaced {};

using DependencyEvent = std::variant<ResourcesChanged,
                                     NameResolved,
                                     ClustersReferenced,
                                     ReresolutionRequested,
                                     ClientReplaced,
                                     TimerFired>;

/// Starts a look-up; answered by NameResolved.
struct ResolveName {
  DnsName name;
};

/// The configuration is the same pointer as before where only the notes changed.
struct EmitConfig {
  XdsConfigPtr config;
  ResolutionNotesPtr notes;
};

/// There is no configuration (any more): calls fail UNAVAILABLE with this text.
struct EmitError {
  absl::Status status;
};

using DependencyEffect =
    std::variant<Watch, Unwatch, ResolveName, EmitConfig, EmitError, StartTimer, CancelTimer>;
using DependencyEffects = std::vector<DependencyEffect>;

}  // namespace signalbox
