// SPDX-License-Identifier: Apache-2.0
//
// The pick contract of control and data plane: what a picker is asked, and what it may answer.
//
//   router ─▶ Picker::pick(PickArgs) ─▶ PickResult ─▶ router: take the references, tell the ask
//
// Pickers are immutable and are read by any thread at once, inside a read section of the snapshot
// cell: pointers in a PickResult are valid until that section ends. A picker may own atomics only
// as marks (one-shot asks, rotating positions), relaxed, where staleness is harmless.

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

/// An established connection to one address: what a complete pick leads to. The transport behind
/// it belongs to who made it (actors/io); a data plane knows its own kind and casts.
class Connection : public Tracked {
 public:
  explicit Connection(Address address) : address_(std::move(address)) {}

  const Address& address() const { return address_; }

 private:
  Address address_;
};

using ConnectionPtr = std::shared_ptr<const Connection>;

/// Which endpoint a connection stands for, for those above the leaf policy that chose it. Owned by
/// the leaf's picker; shared by its pickers until something in it changes.
struct ChosenEndpoint {
  LocalityPtr locality;
  const Endpoint* endpoint = nullptr;  ///< In `locality`.
  CallTrackerPtr tracker;              ///< As the subchannel map told it; null: nobody counts.
};

/// The call's outgoing metadata, as the data plane holds it; nothing is copied.
class HeaderSource {
 public:
  virtual ~HeaderSource() = default;

  /// Calls `visit` for each value of the header, in order. `name` is lower case. The values stay
  /// valid as long as the source does, so that a matcher need not copy them.
  virtual void each(absl::string_view name,
                    absl::FunctionRef<void(absl::string_view value)> visit) const = 0;
};

/// Some of the endpoints of a leaf cluster's priority, as tiered chooses them (ENV-4).
struct Tier {
  enum class Hosts : std::uint8_t { kHealthy, kDegraded, kAll };

  std::uint32_t priority = 0;
  Hosts hosts = Hosts::kHealthy;  ///< kAll: the priority panics (ENV-17).

  friend bool operator==(const Tier&, const Tier&) = default;
  friend auto operator<=>(const Tier&, const Tier&) = default;
};

/// Where earlier attempts of a call went. A retry passes over them (RetryPolicy::previous_hosts).
using TriedAddresses = std::vector<Address>;

/// What a pick may depend on. Borrowed for the duration of the call.
struct PickArgs {
  absl::string_view path;  ///< "/package.Service/Method".
  const HeaderSource* headers = nullptr;
  const ClusterName* cluster = nullptr;  ///< Chosen by the config selector.
  std::uint64_t seed = 0;                ///< The call's chance; see draw().
  /// The call's place on a ring, from its route's hash policies (A42); nullopt: by chance.
  std::optional<std::uint64_t> hash = std::nullopt;
  /// A guess, right as a rule: how many of all clusters have a name before that of `cluster`.
  std::size_t cluster_place = 0;
  const SessionArgs* session = nullptr;     ///< Null: the call is of none.
  std::optional<Tier> tier = std::nullopt;  ///< Set below an aggregate in tiered mode.
  /// To be passed over by pickers that are free to choose, as long as another endpoint is READY.
  /// Null: none.
  const TriedAddresses* tried = nullptr;
};

/// Whether the call should pass over the connection.
inline bool was_tried(const PickArgs& args, const Connection& connection) {
  if (args.tried == nullptr) [[likely]]
    return false;
  return std::find(args.tried->begin(), args.tried->end(), connection.address()) !=
         args.tried->end();
}

/// Salts, one per decision, so that draws are independent of each other and repeatable.
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
  kFilter,  ///< For filters of the user's own.
  kTier
};

/// An evenly spread 64-bit number for this call and this decision. Seeds may be any numbers that
/// differ: those that count up, or advance by the golden ratio as splitmix64's do, are spread here.
constexpr std::uint64_t draw(std::uint64_t seed, Salt salt, std::uint64_t step = 0) {
  // Not added: a step of the seed must not be worth a step of the salt.
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

/// What a pick found missing. Told to the policy that built the picker, and never waited for;
/// duplicates are harmless.
struct PickAsk {
  enum class Kind : std::uint8_t { kExitIdle, kConnect, kCreate };

  Kind kind = Kind::kExitIdle;
  Address address;  ///< For kConnect and kCreate.

  friend bool operator==(const PickAsk&, const PickAsk&) = default;
};

/// Where the asks of one policy's pickers go. Thread-safe, never blocks.
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
  /// The connection's, so that a picker that keeps a Complete need not look at the connection.
  UseCounter uses;
  const ChosenEndpoint* endpoint = nullptr;  ///< Null: the picker does not say.
};

/// Ask again when the snapshot changes.
struct Queue {};

/// The call fails, unless it is wait_for_ready: then as Queue.
struct Fail {
  absl::Status status;
};

/// The call fails in any case.
struct Drop {
  absl::Status status;
};

class LeafCalls;  ///< messages/counting/leaf_calls.hpp
class Seats;      ///< lb/session/seats.hpp

struct PickResult {
  std::variant<Complete, Queue, Fail, Drop> outcome = Queue{};
  /// Something to be told, by the router, to `ask_target` (set exactly when `ask` is).
  std::optional<PickAsk> ask;
  const AskTarget* ask_target = nullptr;
  TrackerList trackers;  ///< Of a complete pick.
  Affinity affinity;     ///< Where PickArgs::session was set, by override_host.
  /// Below an aggregate, the leaf that the pick came to; the call is counted there. Null: the
  /// cluster of the route is a leaf itself, or the pick came to none.
  const LeafCalls* leaf = nullptr;
};

/// One decision on the way of a pick, as people are told of it.
struct PickStep {
  std::string room;      ///< Who decided: "route", "cluster_impl", "round_robin", …
  std::string decision;  ///< What: "cluster orders", "not dropped", …
  std::string reason;    ///< Why; may be empty.
  std::string source;    ///< Where the setting comes from: "RDS orders-routes"; may be empty.

  friend bool operator==(const PickStep&, const PickStep&) = default;
};

/// Who is told the steps of a pick, in order.
class PickTrace {
 public:
  virtual ~PickTrace() = default;
  virtual void tell(PickStep step) = 0;
};

class Picker {
 public:
  virtual ~Picker() = default;

  /// Where cookies of sessions lead, known before the call's route is. A hint, which lives as long
  /// as the picker does. Null: it does not know.
  virtual const Seats* seats() const { return nullptr; }

  /// What pick() answers, told step by step; may allocate. Marks and asks are a pick's own: an
  /// explained one leaves none.
  virtual PickResult explain(const PickArgs& args, PickTrace& /*trace*/) const {
    return pick(args);
  }

  /// Called by any thread, concurrently. Lock-free; allocates nothing on the complete path.
  virtual PickResult pick(const PickArgs& args) const = 0;
};

using PickerPtr = std::shared_ptr<const Picker>;

}  // namespace signalbox
