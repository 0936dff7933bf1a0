// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/endpoint_set.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/health/host_count.hpp"
#include "lb/shrink.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

std::size_t index(ConnectivityState state) {
  return static_cast<std::size_t>(state);
}

// A key for the endpoint's set of addresses; their order does not matter. One address, the usual
// case, is the key itself, and shares its memory.
Address key_of(const Endpoint& endpoint) {
  if (endpoint.addresses.size() == 1) return endpoint.addresses.front();
  std::vector<Address> sorted = endpoint.addresses;
  std::ranges::sort(sorted);
  std::string key;
  for (const Address& address : sorted)
    absl::StrAppend(&key, address.str(), ",");
  return Address(std::move(key));
}

}  // namespace

// Where in the previous list the next endpoint of the new list should be. Most of a list stays the
// same, so most endpoints are found there without a hash look-up. An endpoint that was added,
// removed or replaced shifts the following ones by at most one, which next() allows for.
struct EndpointSet::Place {
  const std::vector<Entry*>& list;
  const absl::flat_hash_map<LocalityPtr, Span>& spans;
  std::size_t at = 0;

  // The member with the endpoint's addresses, if it is at the expected place of the previous list,
  // or one place later. Null: it is at neither.
  Entry* next(const Endpoint& endpoint) {
    for (std::size_t step = 0; step < 2 && at + step < list.size(); ++step) {
      Entry* const entry = list[at + step];
      if (entry->endpoint->addresses != endpoint.addresses) continue;
      at += step + 1;
      return entry;
    }
    return nullptr;
  }
};

EndpointSet::EndpointSet(Connects connects,
                         Duration attempt_delay,
                         MakeCounter make_counter,
                         Unreachable unreachable,
                         LocalityName caller)
    : connects_(connects),
      attempt_delay_(attempt_delay),
      make_counter_(std::move(make_counter)),
      unreachable_(unreachable),
      caller_(std::move(caller)) {}

// --- the list of endpoints ---

void EndpointSet::update(const EndpointsPtr& slice, LbEffects& effects) {
  ++list_;
  const std::vector<Entry*> left = std::exchange(order_, {});
  const auto spans = std::exchange(spans_, {});
  order_.reserve(left.size());
  if (slice != nullptr) {
    Place place{left, spans};
    for (const Priority& priority : slice->priorities) {
      for (const LocalityPtr& locality : priority.localities)
        take_in(locality, place, effects);
    }
  }
  if (order_ != left) changes_.list = true;
  // Endpoints that are not in the new list release their addresses last. So an address that another
  // endpoint has acquired by now is not released in between, and keeps its connection.
  bool is_any_gone = false;
  for (Entry* entry : left) {
    if (entry->named_in == list_) continue;
    let_go(*entry, effects);
    is_any_gone = true;
  }
  // The endpoint that is gone may have been the last to hold an address. If that address was found
  // unfit, an unfit member may be fit. If it was found fit, a fit member with another address may
  // be unfit.
  if (is_any_gone) {
    for (Entry* entry : order_) {
      if (!entry->fit || entry->endpoint->addresses.size() > 1) tally(*entry);
    }
  }
  shrink_if_sparse(entries_);
  shrink_if_sparse(held_);
  shrink_if_sparse(by_first_);
}

void EndpointSet::take_in(const LocalityPtr& locality, Place& place, LbEffects& effects) {
  const std::size_t begin = order_.size();
  if (const auto found = place.spans.find(locality); found != place.spans.end()) {
    const Span& span = found->second;
    for (std::size_t at = span.begin; at < span.begin + span.size; ++at) {
      if (std::exchange(place.list[at]->named_in, list_) != list_) order_.push_back(place.list[at]);
    }
    place.at = span.begin + span.size;
  } else {
    for (const Endpoint& endpoint : locality->endpoints)
      take_in(locality, endpoint, place, effects);
  }
  const std::size_t size = order_.size() - begin;
  if (size == locality->endpoints.size()) spans_.try_emplace(locality, Span{begin, size});
}

void EndpointSet::take_in(const LocalityPtr& locality,
                          const Endpoint& endpoint,
                          Place& place,
                          LbEffects& effects) {
  Entry* const expected = place.next(endpoint);
  Entry& entry = expected != nullptr ? *expected : entry_of(endpoint);
  if (std::exchange(entry.named_in, list_) == list_) return;  // The list has the endpoint twice.
  order_.push_back(&entry);
  if (adopt(entry, locality, endpoint, effects)) tally(entry);
}

EndpointSet::Entry& EndpointSet::entry_of(const Endpoint& endpoint) {
  std::unique_ptr<Entry>& slot = entries_[key_of(endpoint)];
  if (slot == nullptr) {
    slot = std::make_unique<Entry>();
    slot->number = members_++;
    if (make_counter_ != nullptr) slot->counter = make_counter_();
    ++counts_[index(slot->state)];
  }
  return *slot;
}

// Updates a member from the new list. Even if nothing has changed, its pointers must lead into the
// new list, so that the old list can be freed. Returns whether the member's own fields changed.
bool EndpointSet::adopt(Entry& entry,
                        const LocalityPtr& locality,
                        const Endpoint& endpoint,
                        LbEffects& effects) {
  const LocalityPtr before = std::exchange(entry.locality, locality);
  const Endpoint* const known = std::exchange(entry.endpoint, &endpoint);
  if (known != nullptr) {
    const bool is_same = *known == endpoint && before->name == locality->name;
    if (is_same && before->weight == locality->weight) return false;
    changes_.list = true;
    if (is_same)
      return false;  // Only the locality's weight changed; ready() is still right for picks.
    if (entry.state == ConnectivityState::kReady) {
      changes_.ready = true;
      changes_.stale = true;
    }
    if (known->addresses == endpoint.addresses) return true;
    forget_first(known->addresses.front(), entry);
  }
  if (connects_ == Connects::kWhenAsked) by_first_[endpoint.addresses.front()] = &entry;
  if (entry.first.has_value()) {
    drive(
        entry, effects, [&](LbEffects& wants) { entry.first->update(endpoint.addresses, wants); });
  } else if (connects_ == Connects::kAtOnce) {
    connect(entry, effects);
  }
  return true;
}

void EndpointSet::let_go(Entry& entry, LbEffects& effects) {
  if (entry.first.has_value())
    drive(entry, effects, [&](LbEffects& wants) { entry.first->release_all(wants); });
  SIGNALBOX_INVARIANT(entry.heard_all, "an entry without a hold waits for no answer");
  if (entry.counts) --counts_[index(entry.state)];
  forget_failure(entry);
  tally_no_more(entry);
  forget_first(entry.endpoint->addresses.front(), entry);
  entries_.erase(key_of(*entry.endpoint));
}

void EndpointSet::forget_first(const Address& address, const Entry& entry) {
  const auto found = by_first_.find(address);
  if (found != by_first_.end() && found->second == &entry) by_first_.erase(found);
}

void EndpointSet::let_count(std::size_t member, bool counts) {
  Entry& entry = *order_[member];
  if (std::exchange(entry.counts, counts) == counts) return;
  counts ? ++counts_[index(entry.state)] : --counts_[index(entry.state)];
  has_failed(entry) ? take_failure(entry) : forget_failure(entry);
}

void EndpointSet::replace_counters(
    absl::FunctionRef<CallTrackerPtr(const CallTrackerPtr&)> replace) {
  for (const auto& [key, entry] : entries_)
    entry->counter = replace(entry->counter);
}

// --- connecting ---

void EndpointSet::connect(std::size_t member, LbEffects& effects) {
  connect(*order_[member], effects);
}

void EndpointSet::connect(const Address& first, LbEffects& effects) {
  const auto found = by_first_.find(first);
  if (found != by_first_.end()) connect(*found->second, effects);
}

void EndpointSet::connect(Entry& entry, LbEffects& effects) {
  if (entry.first.has_value())
    return drive(entry, effects, [&](LbEffects& wants) { entry.first->exit_idle(wants); });
  // Only leaf_tiers marks endpoints of a list UNHEALTHY: all of them, when the priority is in
  // panic. They are used whatever outlier detection and health checks find (I3 of
  // endpoint_set.hpp).
  const bool in_panic = entry.endpoint->health == HealthStatus::kUnhealthy;
  entry.first.emplace(connects_ == Connects::kAtOnce ? PickFirst::WhenLost::kReconnect
                                                     : PickFirst::WhenLost::kGoIdle,
                      attempt_delay_,
                      in_panic ? PickFirst::Health::kIgnored : PickFirst::Health::kReported,
                      entry.number << 32U);  // Each endpoint starts fewer than 2^32 timers.
  drive(entry, effects, [&](LbEffects& wants) {
    entry.first->update(entry.endpoint->addresses, wants);
  });
}

void EndpointSet::observe(const SubchannelStateChanged& event, LbEffects& effects) {
  const auto found = held_.find(event.address);
  if (found == held_.end()) return;  // The address was released meanwhile.
  found->second.last = event;
  const Users users = found->second.users;
  for (Entry* entry : users)
    hear(*entry, event, effects);
}

void EndpointSet::fire(const TimerId& timer, LbEffects& effects) {
  const auto found = held_.find(PickFirst::address_of(timer));
  if (found == held_.end()) return;  // The address was released meanwhile.
  const Users users = found->second.users;
  for (Entry* entry : users)
    drive(*entry, effects, [&](LbEffects& wants) { entry->first->fire(timer, wants); });
}

void EndpointSet::hear(Entry& entry, const SubchannelStateChanged& event, LbEffects& effects) {
  const Connection* const before = entry.connection.get();
  drive(entry, effects, [&](LbEffects& wants) { entry.first->observe(event, wants); });
  if (entry.connection == nullptr || entry.connection != event.connection) return;
  if (std::exchange(entry.tracker, event.tracker) == event.tracker) return;
  changes_.ready = true;
  changes_.stale |= entry.connection.get() == before;
}

// Runs `action` on one endpoint's PickFirst, and applies the effects that `action` returns in its
// argument. Endpoints with a common address share one subchannel: only the first endpoint acquires
// it, and only the last releases it. A later endpoint's PickFirst gets the last report at once.
void EndpointSet::drive(Entry& entry,
                        LbEffects& effects,
                        absl::FunctionRef<void(LbEffects&)> action) {
  LbEffects wants;
  action(wants);
  std::vector<SubchannelStateChanged> known_already;
  for (LbEffect& want : wants) {
    if (const auto* acquire = std::get_if<AcquireSubchannel>(&want)) {
      Held& held = held_[acquire->address];
      held.users.insert(std::ranges::upper_bound(held.users, entry.number, {}, &Entry::number),
                        &entry);
      if (held.last.has_value()) known_already.push_back(*held.last);
      if (held.users.size() > 1) continue;
    } else if (const auto* release = std::get_if<ReleaseSubchannel>(&want)) {
      if (!drop_user(release->address, entry)) continue;
    } else if (std::holds_alternative<RequestReresolution>(want)) {
      changes_.unreachable = true;
      continue;
    }
    effects.push_back(std::move(want));
  }
  recount(entry);
  tally(entry);
  for (const SubchannelStateChanged& event : known_already)
    hear(entry, event, effects);
}

// Removes `entry` from the endpoints that hold the address. True: no endpoint holds it any more.
bool EndpointSet::drop_user(const Address& address, Entry& entry) {
  const auto found = held_.find(address);
  SIGNALBOX_INVARIANT(found != held_.end(), "an endpoint releases what it holds");
  Users& users = found->second.users;
  users.erase(std::ranges::remove(users, &entry).begin(), users.end());
  if (!users.empty()) return false;
  held_.erase(found);
  return true;
}

void EndpointSet::recount(Entry& entry) {
  const bool heard_all = entry.first->heard_all();
  if (heard_all != entry.heard_all) heard_all ? --unheard_ : ++unheard_;
  entry.heard_all = heard_all;
  const ConnectivityState state = entry.first->state();
  ConnectionPtr connection = entry.first->connection();
  if (state != entry.state) {
    if (entry.counts) {
      --counts_[index(entry.state)];
      ++counts_[index(state)];
      changes_.states = true;
    }
    if (state == ConnectivityState::kReady) entry.ready_since = last_ready_ = now_;
    entry.state = state;
    forget_failure(entry);
  }
  if (connection != entry.connection) {
    changes_.stale |= entry.connection != nullptr;
    entry.connection = std::move(connection);
    entry.tracker = nullptr;
    changes_.ready = true;
  }
  if (has_failed(entry)) take_failure(entry);
}

// --- failures ---

bool EndpointSet::has_failed(const Entry& entry) {
  return entry.counts && entry.state == ConnectivityState::kTransientFailure;
}

void EndpointSet::take_failure(const Entry& entry) {
  failed_last_ = &entry;
  const absl::Status failure = entry.first->status();
  if (failure == last_failure_) return;
  last_failure_ = failure;
  changes_.failure = true;
}

void EndpointSet::forget_failure(const Entry& entry) {
  if (failed_last_ != &entry) return;
  failed_last_ = nullptr;
  last_failure_ = absl::OkStatus();
}

absl::Status EndpointSet::last_failure() const {
  if (failed_last_ != nullptr) return last_failure_;
  const auto other = std::ranges::find_if(order_, [](Entry* entry) { return has_failed(*entry); });
  return other == order_.end() ? absl::OkStatus() : (*other)->first->status();
}

// --- counts of fit members ---

// Outlier detection and health checks make an endpoint unfit only if they find every held address
// of the endpoint unfit.
bool EndpointSet::is_fit(const Entry& entry) const {
  if (unreachable_ == Unreachable::kUnfit && entry.state == ConnectivityState::kTransientFailure)
    return false;
  bool is_judged = false;
  for (const Address& address : entry.endpoint->addresses) {
    const auto found = held_.find(address);
    if (found == held_.end()) continue;
    if (!found->second.last.has_value() || found->second.last->healthy) return true;
    is_judged = true;
  }
  return !is_judged;
}

void EndpointSet::tally(Entry& entry) {
  const HostTally own{1, entry.endpoint->weight};
  const bool fit = is_fit(entry);
  if (own == entry.tallied && fit == entry.fit) return;
  tally_no_more(entry);
  entry.tallied = own;
  entry.fit = fit;
  add(all_, own);
  if (fit) add(fit_, own);
}

void EndpointSet::tally_no_more(Entry& entry) {
  take(all_, entry.tallied);
  if (entry.fit) take(fit_, entry.tallied);
}

// --- data for pickers ---

ReadyEndpoints EndpointSet::ready() const {
  const std::size_t size = count(ConnectivityState::kReady);
  ReadyEndpoints ready;
  ready.completes_.reserve(size);
  ready.chosen_.reserve(size);  // Must not reallocate: completes_ points into it.
  ready.owners_.reserve(size);
  // Neighbours mostly share a locality, so its zone is compared once.
  const Locality* compared = nullptr;
  CallZone zone = CallZone::kUnknown;
  for (const Entry* entry : order_) {
    if (entry->connection == nullptr || !entry->counts) continue;
    SIGNALBOX_INVARIANT(ready.chosen_.size() < size,
                        "the endpoints counted as READY are those with a connection");
    ready.chosen_.push_back({entry->locality, entry->endpoint, entry->tracker});
    ready.owners_.push_back(entry->connection);
    Complete& complete = ready.completes_.emplace_back(entry->connection.get());
    complete.endpoint = &ready.chosen_.back();
    if (const Locality* const own = entry->locality.get(); own != compared) {
      compared = own;
      zone = zone_of(own->name, caller_);
    }
    complete.zone = zone;
  }
  return ready;
}

std::vector<CallTrackerPtr> EndpointSet::ready_counters() const {
  std::vector<CallTrackerPtr> counters;
  counters.reserve(count(ConnectivityState::kReady));
  for (const Entry* entry : order_) {
    if (entry->connection != nullptr && entry->counts) counters.push_back(entry->counter);
  }
  return counters;
}

std::vector<AbsentEndpoint> EndpointSet::absent(std::size_t most) const {
  const std::size_t size = std::min(most, counted() - count(ConnectivityState::kReady));
  std::vector<AbsentEndpoint> absent;
  if (size == 0) return absent;
  absent.reserve(size);
  for (const Entry* entry : order_) {
    if (!entry->counts || entry->state == ConnectivityState::kReady) continue;
    absent.push_back({entry->locality,
                      entry->endpoint,
                      entry->state,
                      entry->first.has_value() ? entry->first->status() : absl::OkStatus()});
    if (absent.size() == size) break;
  }
  return absent;
}

}  // namespace signalbox::lb
