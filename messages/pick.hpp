// SPDX-License-Identifier: Apache-2.0
//
// The contract between policies, which make pickers, and the router, which calls them: the input of
// a pick, and its possible results.
//
//   router ─▶ Picker::pick(PickArgs) ─▶ PickResult ─▶ router: take the references, send the ask
//
// Pickers are immutable, because any thread reads them, concurrently and inside a read section of
// the snapshot cell. Pointers in a PickResult are valid until that section ends. A pick may decode
// the cookie in its own call's session (PickArgs::session). Picks share data in two places, and
// change only atomics there. In the picker: the next position of a rotation, and flags that say
// that a request to the policy (PickAsk) was already sent. A stale position or flag is harmless, so
// these atomics are relaxed. Outside the picker: counters of calls (messages/counting), and the
// time when a session last used a host (SessionMark).

#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "messages/counting/call_tracker.hpp"
#include "messages/counting/tracked.hpp"
#include "messages/endpoints.hpp"
#include "messages/ids.hpp"
#include "messages/session.hpp"

namespace signalbox {

/// An established connection to one address: the result of a complete pick. A Connector makes it
/// (actors/io/connector.hpp). A data plane casts a Connection to the derived type that its
/// connector makes.
class Connection : public Tracked {
 public:
  /// `stream_limit`: see stream_limit().
  explicit Connection(Address address, std::optional<std::uint32_t> stream_limit = std::nullopt)
      : address_(std::move(address)), stream_limit_(stream_limit) {}

  const Address& address() const { return address_; }

  /// The most calls that the peer lets run on this connection at a time (HTTP/2's
  /// MAX_CONCURRENT_STREAMS). nullopt: the peer has set no limit, or the limit is not known.
  std::optional<std::uint32_t> stream_limit() const { return stream_limit_; }

  /// Whether new calls can use the connection now. The answer is newer than the snapshot.
  virtual bool takes_calls() const { return true; }

 private:
  Address address_;
  std::optional<std::uint32_t> stream_limit_;
};

using ConnectionPtr = std::shared_ptr<const Connection>;

/// The endpoint that a connection leads to. The policies above the leaf policy and the router read
/// it. The leaf's picker owns it. Successive pickers may share one object.
struct ChosenEndpoint {
  LocalityPtr locality;
  const Endpoint* endpoint = nullptr;  ///< Points into `locality`.
  /// From the subchannel map; null: no tracker counts the endpoint's calls.
  CallTrackerPtr tracker;
};

/// The headers that are sent with a call. They are read where the call keeps them; nothing is
/// copied.
class HeaderSource {
 public:
  virtual ~HeaderSource() = default;

  /// Calls `visit` for each value of the header, in the order in which they are sent. `name` is
  /// lower case. The values stay valid until the source changes or is destroyed, so that a matcher
  /// need not copy them.
  virtual void each(absl::string_view name,
                    absl::FunctionRef<void(absl::string_view value)> visit) const = 0;
};

/// The healthy, the degraded or all endpoints of one priority of a leaf cluster. The policy
/// `tiered` chooses a Tier for each call.
struct Tier {
  enum class Hosts : std::uint8_t { kHealthy, kDegraded, kAll };

  std::uint32_t priority = 0;
  /// kAll: all endpoints but DRAINING ones, because too few endpoints of the priority are healthy
  /// or degraded (panic).
  Hosts hosts = Hosts::kHealthy;

  friend bool operator==(const Tier&, const Tier&) = default;
  friend auto operator<=>(const Tier&, const Tier&) = default;
};

/// The addresses that earlier attempts of a call went to, or that it could not be sent to. Pickers
/// that have a choice avoid them. The gRPC channel collects addresses of attempts if
/// RuntimeOptions::retry_elsewhere or the route's RetryPolicy::previous_hosts is set, and addresses
/// of connections that died after the snapshot was made.
using TriedAddresses = std::vector<Address>;

/// The inputs of a pick. The pointers are borrowed for the duration of the pick.
struct PickArgs {
  absl::string_view path;  ///< "/package.Service/Method".
  const HeaderSource* headers = nullptr;
  const ClusterName* cluster = nullptr;  ///< Chosen by route or filter.
  std::uint64_t seed = 0;                ///< The source of the call's draws; see draw().
  /// The hash by which ring_hash and maglev choose the endpoint, from the route's hash policies
  /// (A42); nullopt: these policies draw a hash. A ring_hash with a request_hash_header ignores it.
  std::optional<std::uint64_t> hash = std::nullopt;
  /// The probable position of `cluster` among all clusters in order of name. It saves
  /// cluster_manager's picker a search. The picker checks it, because it may be outdated.
  std::size_t cluster_place = 0;
  /// The session of the call, made by lb/session/session_args. Null: the call has no session.
  const SessionHint* session = nullptr;
  std::optional<Tier> tier = std::nullopt;  ///< Set below an aggregate in tiered mode.
  /// A picker that has a choice avoids these addresses while another endpoint is READY. Null: no
  /// address is to be avoided.
  const TriedAddresses* tried = nullptr;
};

/// Whether the call avoids the address of `connection`, because an earlier attempt went there.
inline bool was_tried(const PickArgs& args, const Connection& connection) {
  if (args.tried == nullptr) [[likely]]
    return false;
  return std::find(args.tried->begin(), args.tried->end(), connection.address()) !=
         args.tried->end();
}

/// One salt for each decision, so that draws are independent of each other and repeatable.
enum class Salt : std::uint64_t {
  kRouteFraction = 1,
  kWeightedCluster,
  kLocality,
  kEndpoint,
  kRequestHash,
  kDrop,
  kRetryBackOff,
  kRetryPick,
  kFaultDelay,
  kFaultAbort,
  kFilter,  ///< For filters that the program registered.
  kTier,
  kSubset  ///< Which endpoints random_subsetting uses (A68).
};

/// Returns an evenly spread 64-bit number for this call and this decision. Seeds may be any
/// distinct numbers: this function also spreads seeds that count up, or that advance by the golden
/// ratio as those of splitmix64 do.
constexpr std::uint64_t draw(std::uint64_t seed, Salt salt, std::uint64_t step = 0) {
  // Seed and salt are mixed, not added: pairs of seed and salt with equal sums would otherwise
  // get equal draws.
  std::uint64_t x = seed ^ (seed >> 32U);
  x *= 0xd6e8feb86659fd93ULL;
  x ^= x >> 32U;
  x += 0x9e3779b97f4a7c15ULL * (static_cast<std::uint64_t>(salt) + 16 * step);
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

/// draw() reduced to [0, bound), bound > 0.
constexpr std::uint64_t draw_below(std::uint64_t seed,
                                   Salt salt,
                                   std::uint64_t bound,
                                   std::uint64_t step = 0) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(draw(seed, salt, step)) * bound) >> 64U);
}

/// A request of a pick to the policy that built the picker, for example to connect an endpoint. The
/// router sends the request and never waits for an answer. Duplicates are harmless.
struct PickAsk {
  enum class Kind : std::uint8_t { kExitIdle, kConnect, kCreate };

  Kind kind = Kind::kExitIdle;
  Address address;  ///< For kConnect and kCreate.

  friend bool operator==(const PickAsk&, const PickAsk&) = default;
};

/// Receives the requests (PickAsk) of one policy's pickers. Thread-safe, never blocks.
class AskTarget {
 public:
  virtual ~AskTarget() = default;
  virtual void tell(const PickAsk& ask) const = 0;
};

struct Complete {
  Complete() = default;

  explicit Complete(const Connection* chosen)
      : connection(chosen), uses(chosen != nullptr ? chosen->use_counter() : UseCounter()) {}

  const Connection* connection = nullptr;
  /// The counter of the calls that use the connection. It is copied to this place so that a pick
  /// need not read the connection, which is often not in the CPU's cache.
  UseCounter uses;
  const ChosenEndpoint* endpoint = nullptr;  ///< The connection's endpoint; null: unknown.
  /// The endpoint's zone, for the metrics. It is here for the same reason as `uses`.
  CallZone zone = CallZone::kUnknown;
};

/// The call waits, and is picked again when the snapshot changes.
struct Queue {};

/// The call fails. A wait_for_ready call waits, as with Queue.
struct Fail {
  absl::Status status;
};

/// The call fails, wait_for_ready or not.
struct Drop {
  absl::Status status;
};

class LeafCalls;  ///< messages/counting/leaf_calls.hpp

struct PickResult {
  std::variant<Complete, Queue, Fail, Drop> outcome = Queue{};
  /// The router sends `ask` to `ask_target` if both are set.
  std::optional<PickAsk> ask;
  const AskTarget* ask_target = nullptr;
  TrackerList trackers;  ///< The trackers of a complete pick.
  Affinity affinity;     ///< Set by override_host and tiered when PickArgs::session is set.
  /// The leaf below an aggregate that the pick chose; the call is counted there. Null: the route's
  /// cluster is itself a leaf, or the pick chose no leaf.
  const LeafCalls* leaf = nullptr;
  /// When the pick is not complete: the priority that made the call wait or fail, as the outermost
  /// priority policy numbers it. kNoPriority: no priority policy was asked, or the priority that it
  /// has chosen is READY.
  std::uint8_t priority = kNoPriority;

  static constexpr std::uint8_t kNoPriority = 255;
};

/// One decision of a pick, as text for people.
struct PickStep {
  std::string part;      ///< The part that decided: "route", "cluster_impl", "round_robin", …
  std::string decision;  ///< "cluster orders", "not dropped", …
  std::string reason;    ///< May be empty.
  std::string source;    ///< The origin of the setting: "RDS orders-routes"; may be empty.

  friend bool operator==(const PickStep&, const PickStep&) = default;
};

/// Receives the steps of a pick, in order.
class PickTrace {
 public:
  virtual ~PickTrace() = default;
  virtual void tell(PickStep step) = 0;
};

class Picker {
 public:
  virtual ~Picker() = default;

  /// A table from session cookies to endpoints (lb/session/seats). With it, a call's endpoint is
  /// looked up before the call's route is known. The table lives as long as the picker. Null: the
  /// picker has no endpoints for sessions, or has no single table for all of them.
  virtual const SessionHint* session_hint() const { return nullptr; }

  /// Returns the result that pick() would return, and reports each step to `trace`. It may
  /// allocate. It must not change what later picks read (positions, used sessions), and the router
  /// does not send the requests (PickAsk) of the result to policies. The default is pick(), for
  /// pickers that change nothing.
  virtual PickResult explain(const PickArgs& args, PickTrace& /*trace*/) const {
    return pick(args);
  }

  /// Called by any thread, concurrently. Takes no lock. When the outcome is Complete, it allocates
  /// nothing, except to decode a session's cookie or to join several values of a hashed header.
  virtual PickResult pick(const PickArgs& args) const = 0;
};

using PickerPtr = std::shared_ptr<const Picker>;

}  // namespace signalbox
