// SPDX-License-Identifier: Apache-2.0
//
// EndpointSet — what policies with a pick_first per endpoint have in common (gRFC A61: petioles).
//
//   update, observe, connect ─▶ [EndpointSet: one PickFirst per endpoint] ─▶ Acquire-,
//                                     │                                      ReleaseSubchannel,
//                                     │                                      Connect
//                                     └▶ members, their states, take_changes(), ready()
//
// An endpoint is its set of addresses; the later ones are its additional addresses. The endpoints
// of all localities of all priorities of the slice are members, in the order of the configuration;
// one that is named twice is a member once, where it is named first.
//
// Invariants
//   I1  An endpoint that stays in the list keeps its PickFirst, and so its connection.
//   I2  An event of one endpoint costs O(1), a list O(its length), and no more than a copy of
//       pointers where a locality is the same object as before.
//   I3  An unhealthy endpoint is not READY; its connection stays (A61: health, no fake failures).
//       One that is listed as UNHEALTHY is the exception: it is used whatever its health (ENV-17).
//   I4  Endpoints that share an address share its hold.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "lb/leaf/pick_first_core.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// What a picker knows of the endpoints that calls can go to. Movable: addresses stay.
class ReadyEndpoints {
 public:
  ReadyEndpoints() = default;
  ReadyEndpoints(ReadyEndpoints&&) = default;
  ReadyEndpoints& operator=(ReadyEndpoints&&) = default;

  std::size_t size() const { return completes_.size(); }

  /// With its ChosenEndpoint, which lives as long as this.
  const Complete& operator[](std::size_t at) const { return completes_[at]; }

 private:
  friend class EndpointSet;

  std::vector<Complete> completes_;     // All that most picks look at.
  std::vector<ChosenEndpoint> chosen_;  // Of the same.
  std::vector<ConnectionPtr> owners_;   // Of the same.
};

/// From `at` on, in the order of a round: the first endpoint that the call has not tried; `at`
/// where there is none. Looks at no more than one endpoint beyond those that were tried.
inline std::size_t first_untried(const ReadyEndpoints& ready,
                                 const PickArgs& args,
                                 std::size_t at) {
  for (std::size_t step = 0; step < ready.size(); ++step) {
    const std::size_t next = (at + step) % ready.size();
    if (!was_tried(args, *ready[next].connection)) return next;
  }
  return at;
}

/// An endpoint that no call goes to, and why, for explanations.
struct AbsentEndpoint {
  LocalityPtr locality;
  const Endpoint* endpoint = nullptr;  ///< In `locality`.
  ConnectivityState state = ConnectivityState::kIdle;
  absl::Status status;  ///< In TRANSIENT_FAILURE.
};

class EndpointSet {
 public:
  /// When an endpoint is connected to: as soon as it is there, and again when it is lost; or when
  /// connect() says so. Until then, and when lost, it is IDLE.
  enum class Connects : std::uint8_t { kAtOnce, kWhenAsked };

  /// Makes what counts the calls of one endpoint for the policy itself.
  using MakeCounter = std::function<CallTrackerPtr()>;

  struct Member {
    LocalityPtr locality;
    const Endpoint* endpoint = nullptr;  ///< In `locality`.
    ConnectivityState state = ConnectivityState::kIdle;
    ConnectionPtr connection;  ///< Set exactly in READY.
    CallTrackerPtr tracker;    ///< As the subchannel map told it with the connection.
    CallTrackerPtr counter;    ///< Of MakeCounter; lives as long as the endpoint is a member.
    bool counts = true;        ///< False: no pick can reach it; see let_count().
  };

  /// What happened since it was asked last.
  struct Changes {
    bool list = false;         ///< Who is a member, in which order, or what is said of one.
    bool states = false;       ///< Of any member.
    bool ready = false;        ///< What ready() would give.
    bool failure = false;      ///< last_failure().
    bool unreachable = false;  ///< Somebody wants names to be resolved again.

    void merge(const Changes& more);
  };

  /// Whether a member that cannot be connected to is fit.
  enum class Unreachable : std::uint8_t { kUnfit, kFit };

  explicit EndpointSet(Connects connects,
                       Duration attempt_delay = kAttemptDelay,
                       MakeCounter make_counter = nullptr,
                       Unreachable unreachable = Unreachable::kUnfit);

  /// The endpoints from now on; null: none.
  void update(const EndpointsPtr& slice, LbEffects& effects);

  /// What a subchannel says. Of an address that is not held: dropped.
  void observe(const SubchannelStateChanged& event, LbEffects& effects);

  /// A timer of one of them has fired.
  void fire(const TimerId& timer, LbEffects& effects);

  /// Begins to connect to a member, if it is IDLE.
  void connect(std::size_t member, LbEffects& effects);

  /// The same, by the first of its addresses; of nobody's: dropped. Only with kWhenAsked.
  void connect(const Address& first, LbEffects& effects);

  std::size_t size() const { return order_.size(); }

  const Member& operator[](std::size_t member) const { return *order_[member]; }

  /// Whether a member counts, as it does at first: one that does not is in none of count(),
  /// counted(), ready() and last_failure(). To be followed by another picker.
  void let_count(std::size_t member, bool counts);

  /// How many members count.
  std::size_t counted() const { return std::accumulate(counts_.begin(), counts_.end(), 0UL); }

  /// How many members that count are in this state.
  std::size_t count(ConnectivityState state) const {
    return counts_[static_cast<std::size_t>(state)];
  }

  /// Members that are fit for calls, as host_count.hpp defines it, and all members, whether or not
  /// picks reach them.
  const HostTally& fit() const { return fit_; }

  const HostTally& all() const { return all_; }

  /// Every address that is held has been heard of.
  bool heard_all() const { return unheard_ == 0; }

  /// Why the last one failed that did, of those that count.
  const absl::Status& last_failure() const { return last_failure_; }

  /// Those that are READY, in order, of those that count.
  ReadyEndpoints ready() const;

  /// The others, of those that count; of more than `most` the first.
  std::vector<AbsentEndpoint> absent(std::size_t most) const;

  Changes take_changes() { return std::exchange(changes_, {}); }

 private:
  struct Entry : Member {
    std::optional<PickFirst> first;  // Nothing: never asked to connect.
    bool heard_all = true;           // Of its addresses that are held.
    std::uint64_t named_in = 0;      // The newest list that has it.
    HostTally tallied;               // What it has in all_;
    bool fit = false;                // and whether in fit_ as well.
  };

  // An address that is held.
  struct Held {
    std::vector<Entry*> users;
    std::optional<SubchannelStateChanged> last;
  };

  // The members that one locality brought, all of them, by position.
  struct Span {
    std::size_t begin = 0;
    std::size_t size = 0;
  };

  struct Place;

  Entry& entry_of(const Endpoint& endpoint);
  void take_in(const LocalityPtr& locality, Place& place, LbEffects& effects);
  void take_in(const LocalityPtr& locality,
               const Endpoint& endpoint,
               Place& place,
               LbEffects& effects);
  void adopt(Entry& entry,
             const LocalityPtr& locality,
             const Endpoint& endpoint,
             LbEffects& effects);
  void let_go(Entry& entry, LbEffects& effects);
  void connect(Entry& entry, LbEffects& effects);
  void forget_first(const Address& address, const Entry& entry);
  void drive(Entry& entry, LbEffects& effects, absl::FunctionRef<void(LbEffects&)> action);
  void hear(Entry& entry, const SubchannelStateChanged& event, LbEffects& effects);
  bool drop_user(const Address& address, Entry& entry);
  void recount(Entry& entry);
  bool is_fit(const Entry& entry) const;
  void tally(Entry& entry);
  void tally_no_more(Entry& entry);

  Connects connects_;
  Duration attempt_delay_;
  MakeCounter make_counter_;
  Unreachable unreachable_;
  std::uint64_t list_ = 0;  // Counts updates.
  absl::flat_hash_map<std::string, std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> order_;  // As configured.
  absl::flat_hash_map<LocalityPtr, Span> spans_;
  absl::flat_hash_map<Address, Held> held_;
  absl::flat_hash_map<Address, Entry*> by_first_;  // With kWhenAsked.
  std::array<std::size_t, 4> counts_{};            // Members that count, by state.
  std::size_t unheard_ = 0;                        // Members that have not heard all.
  HostTally fit_;
  HostTally all_;
  absl::Status last_failure_;
  Changes changes_;
};

}  // namespace signalbox::lb
