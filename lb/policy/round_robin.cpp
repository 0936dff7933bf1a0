// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/round_robin.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

#include "lb/pickers.hpp"
#include "lb/policy/pick_first_core.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"
#include "messages/striped.hpp"

namespace signalbox::lb {
namespace {

// --- types ---

// Each stripe of threads goes round by itself, on a cache line of its own: a shared position would
// have every pick write what every other pick reads. Within a stripe the shares are exactly even;
// the stripes start at places of their own, so that they do not march in step.
class RoundRobinPicker final : public Picker {
 public:
  RoundRobinPicker(std::vector<ConnectionPtr> ready, std::uint64_t seed, std::uint64_t edition)
      : owners_(std::move(ready)) {
    ready_.reserve(owners_.size());
    for (const ConnectionPtr& connection : owners_)
      ready_.emplace_back(connection.get());
    for (std::size_t stripe = 0; stripe < kStripes; ++stripe) {
      positions_[stripe].mark.store(
          draw_below(seed, Salt::kEndpoint, ready_.size(), edition * kStripes + stripe),
          std::memory_order_relaxed);
    }
  }

  PickResult pick(const PickArgs& /*args*/) const override {
    std::atomic<std::uint64_t>& mark = positions_[this_thread_stripe()].mark;
    const std::uint64_t turn = mark.load(std::memory_order_relaxed);
    mark.store(turn + 1, std::memory_order_relaxed);
    PickResult result;
    result.outcome = ready_[turn % ready_.size()];
    return result;
  }

 private:
  // Only says whose turn it is: whatever a thread reads is a good answer. So it is not counted up
  // in one atomic step, which would wait for all that the pick still has under way; at worst two
  // threads of one stripe take the same turn.
  struct alignas(kCacheLine) Position {
    std::atomic<std::uint64_t> mark{0};
  };

  std::vector<Complete> ready_;        // Never empty. All that a pick looks at: no connection.
  std::vector<ConnectionPtr> owners_;  // Of the same.
  mutable std::array<Position, kStripes> positions_;
};

struct Member {
  std::vector<Address> addresses;
  PickFirst first{PickFirst::WhenLost::kReconnect};
  ConnectivityState counted = ConnectivityState::kConnecting;
  ConnectionPtr connection;  // As the next picker has to know it.
  bool heard_all = true;
  std::uint64_t named_in = 0;  // The newest list that has it.
};

// Where we are in the list before this one. Most of a list is as it was: whoever stands there again
// needs no look-up, though one before him came, went, or was replaced.
struct Place {
  const std::vector<Member*>& list;
  std::size_t at = 0;

  // The member for this endpoint, if it is the next one or the one after.
  Member* next(const Endpoint& endpoint) {
    for (std::size_t step = 0; step < 2 && at + step < list.size(); ++step) {
      Member* const member = list[at + step];
      if (member->addresses != endpoint.addresses) continue;
      at += step + 1;
      return member;
    }
    return nullptr;
  }
};

// An address that is held. Endpoints should not share one; where they do, they share the hold.
struct Held {
  std::vector<Member*> users;
  std::optional<SubchannelStateChanged> last;
};

// The set of addresses, whatever their order.
std::string key_of(const Endpoint& endpoint) {
  if (endpoint.addresses.size() == 1) return endpoint.addresses.front().str();
  std::vector<Address> sorted = endpoint.addresses;
  std::ranges::sort(sorted);
  std::string key;
  for (const Address& address : sorted)
    absl::StrAppend(&key, address.str(), ",");
  return key;
}

class RoundRobin final : public Policy {
 public:
  explicit RoundRobin(PolicyContext context) : context_(std::move(context)) {}

  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    LbEffects effects;
    std::visit(Overloaded{
                   [&](const ConfigUpdated& update) { configure(update, effects); },
                   [&](const SubchannelStateChanged& change) { observe(change, effects); },
                   [&](const RebuildDue&) { rebuild_due(effects); },
                   // A leaf has no children; round_robin is never IDLE, asks nothing and has no
                   // timers.
                   [](const auto&) {},
               },
               event);
    publish_or_order(effects);
    report_applied(effects);
    return effects;
  }

 private:
  // --- event handlers ---

  void configure(const ConfigUpdated& update, LbEffects& effects) {
    generation_ = update.generation;
    owes_applied_ = true;
    ++list_;
    std::vector<Member*> left = std::exchange(order_, {});
    order_.reserve(left.size());
    if (update.endpoints != nullptr) {
      Place place{left};
      for (const Priority& priority : update.endpoints->priorities) {
        for (const LocalityPtr& locality : priority.localities) {
          for (const Endpoint& endpoint : locality->endpoints)
            take_in(endpoint, place, effects);
        }
      }
    }
    // New ones acquired first: an address that moves between endpoints is held throughout.
    for (Member* member : left) {
      if (member->named_in != list_) let_go(*member, effects);
    }
  }

  void observe(const SubchannelStateChanged& event, LbEffects& effects) {
    const auto found = held_.find(event.address);
    if (found == held_.end()) return;  // Released meanwhile.
    found->second.last = event;
    const std::vector<Member*> users = found->second.users;
    for (Member* member : users) {
      drive(*member, effects, [&](LbEffects& wants) { member->first.observe(event, wants); });
    }
  }

  void rebuild_due(LbEffects& effects) {
    rebuild_ordered_ = false;
    if (std::exchange(reresolution_wanted_, false)) effects.push_back(RequestReresolution{});
    if (dirty_) publish(effects);
  }

  // --- members ---

  Member& member_of(const Endpoint& endpoint) {
    std::unique_ptr<Member>& slot = members_[key_of(endpoint)];
    if (slot == nullptr) {
      slot = std::make_unique<Member>();
      ++counts_[index(slot->counted)];
    }
    return *slot;
  }

  void take_in(const Endpoint& endpoint, Place& place, LbEffects& effects) {
    Member* const expected = place.next(endpoint);
    Member& member = expected != nullptr ? *expected : member_of(endpoint);
    if (member.named_in == list_) return;  // Named twice: one endpoint all the same.
    member.named_in = list_;
    order_.push_back(&member);
    if (member.addresses == endpoint.addresses) return;
    member.addresses = endpoint.addresses;
    drive(
        member, effects, [&](LbEffects& wants) { member.first.update(endpoint.addresses, wants); });
  }

  void let_go(Member& member, LbEffects& effects) {
    if (published_ == ConnectivityState::kTransientFailure) dirty_ = true;  // It says how many.
    drive(member, effects, [&](LbEffects& wants) { member.first.release_all(wants); });
    --counts_[index(member.counted)];
    SIGNALBOX_INVARIANT(member.heard_all, "who holds nothing waits for nothing");
    members_.erase(key_of(Endpoint{member.addresses}));
  }

  // Lets `action` happen to one member, with all that follows from it.
  void drive(Member& member, LbEffects& effects, absl::FunctionRef<void(LbEffects&)> action) {
    LbEffects wants;
    action(wants);
    std::vector<SubchannelStateChanged> known_already;
    for (LbEffect& want : wants) {
      if (const auto* acquire = std::get_if<AcquireSubchannel>(&want)) {
        Held& held = held_[acquire->address];
        held.users.push_back(&member);
        if (held.last.has_value()) known_already.push_back(*held.last);
        if (held.users.size() > 1) continue;
      } else if (const auto* release = std::get_if<ReleaseSubchannel>(&want)) {
        if (!drop_user(release->address, member)) continue;
      } else if (std::holds_alternative<RequestReresolution>(want)) {
        reresolution_wanted_ = true;
        continue;
      }
      effects.push_back(std::move(want));
    }
    recount(member);
    for (const SubchannelStateChanged& event : known_already) {
      drive(member, effects, [&](LbEffects& more) { member.first.observe(event, more); });
    }
  }

  // Whether that was the last user.
  bool drop_user(const Address& address, Member& member) {
    const auto found = held_.find(address);
    SIGNALBOX_INVARIANT(found != held_.end(), "an endpoint releases what it holds");
    std::erase(found->second.users, &member);
    if (!found->second.users.empty()) return false;
    held_.erase(found);
    return true;
  }

  void recount(Member& member) {
    const ConnectivityState state = member.first.state();
    ConnectionPtr connection = member.first.connection();
    --counts_[index(member.counted)];
    ++counts_[index(state)];
    if (connection != member.connection) dirty_ = true;
    if (state == ConnectivityState::kTransientFailure) {
      absl::Status failure = member.first.status();
      if (failure != last_failure_ && published_ == state) dirty_ = true;
      last_failure_ = std::move(failure);
    }
    member.counted = state;
    member.connection = std::move(connection);
    const bool heard_all = member.first.heard_all();
    if (heard_all != member.heard_all) heard_all ? --unheard_ : ++unheard_;
    member.heard_all = heard_all;
  }

  // --- publishing ---

  static std::size_t index(ConnectivityState state) { return static_cast<std::size_t>(state); }

  std::size_t count(ConnectivityState state) const { return counts_[index(state)]; }

  // I1. No member is ever IDLE: it reconnects at once.
  ConnectivityState state() const {
    if (count(ConnectivityState::kReady) > 0) return ConnectivityState::kReady;
    if (count(ConnectivityState::kConnecting) > 0) return ConnectivityState::kConnecting;
    return ConnectivityState::kTransientFailure;
  }

  // A state edge goes out at once; everything else waits for the end of the burst.
  void publish_or_order(LbEffects& effects) {
    if (generation_ == 0) return;
    if (published_ != state()) publish(effects);
    if ((dirty_ || reresolution_wanted_) && !std::exchange(rebuild_ordered_, true))
      effects.push_back(RebuildSoon{});
  }

  void report_applied(LbEffects& effects) {
    if (!owes_applied_ || unheard_ > 0) return;
    owes_applied_ = false;
    effects.push_back(ReportApplied{generation_});
  }

  void publish(LbEffects& effects) {
    dirty_ = false;
    const ConnectivityState now = state();
    published_ = now;
    absl::Status status;
    if (now == ConnectivityState::kTransientFailure) status = failure();
    PickerPtr picker = now == ConnectivityState::kReady        ? make_ready_picker()
                       : now == ConnectivityState::kConnecting ? make_queue_picker()
                                                               : make_fail_picker(status);
    effects.push_back(Publish{now, std::move(status), std::move(picker), generation_});
  }

  absl::Status failure() const {
    if (order_.empty()) return absl::UnavailableError("round_robin: no endpoints");
    return absl::UnavailableError(absl::StrCat("round_robin: all ",
                                               order_.size(),
                                               " endpoints failed; last error: ",
                                               last_failure_.message()));
  }

  PickerPtr make_ready_picker() {
    std::vector<ConnectionPtr> ready;
    ready.reserve(count(ConnectivityState::kReady));
    for (const Member* member : order_) {
      if (member->connection != nullptr) ready.push_back(member->connection);
    }
    SIGNALBOX_INVARIANT(ready.size() == count(ConnectivityState::kReady),
                        "I1: the endpoints counted as READY are those with a connection");
    return std::make_shared<const RoundRobinPicker>(std::move(ready), context_.seed, ++edition_);
  }

  PolicyContext context_;
  Generation generation_ = 0;
  bool owes_applied_ = false;
  std::size_t unheard_ = 0;  // Members that have not heard of each of their addresses.
  std::uint64_t list_ = 0;   // Counts configurations; a generation may come twice.
  absl::flat_hash_map<std::string, std::unique_ptr<Member>> members_;
  std::vector<Member*> order_;  // As configured.
  absl::flat_hash_map<Address, Held> held_;
  std::array<std::size_t, 4> counts_{};  // Members by state.
  absl::Status last_failure_;
  std::optional<ConnectivityState> published_;
  std::uint64_t edition_ = 0;  // Of the READY picker: each starts at places of its own.
  bool dirty_ = false;         // The published picker is not what we would build now.
  bool reresolution_wanted_ = false;
  bool rebuild_ordered_ = false;
};

}  // namespace

std::unique_ptr<Policy> make_round_robin(const RoundRobinConfig& /*config*/,
                                         PolicyContext context) {
  return std::make_unique<RoundRobin>(std::move(context));
}

}  // namespace signalbox::lb
