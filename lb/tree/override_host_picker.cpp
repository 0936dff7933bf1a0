// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/override_host_picker.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/health/host_count.hpp"
#include "lb/session/session.hpp"
#include "lb/trace.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

// `first`, then other addresses of the endpoint, up to kMostCookieHosts in all.
std::string hosts_of(const Endpoint& endpoint, const Address& first) {
  std::string hosts = first.str();
  std::size_t left = kMostCookieHosts - 1;
  for (const Address& address : endpoint.addresses) {
    if (left == 0) break;
    if (address == first) continue;
    absl::StrAppend(&hosts, ",", address.str());
    --left;
  }
  return hosts;
}

SessionMarkPtr new_mark(std::pmr::memory_resource* memory) {
  return std::allocate_shared<const SessionMark>(
      std::pmr::polymorphic_allocator<SessionMark>(memory));
}

}  // namespace

// --- the table ---

HostTable::HostTable(const EndpointsPtr& endpoints,
                     HealthStatusSet allowed,
                     const HostTable* before,
                     const ClusterName& cluster,
                     std::pmr::memory_resource* memory)
    : memory_(memory) {
  if (endpoints == nullptr) return;
  const auto each = [&](const auto& visit) {
    for (const Priority& priority : endpoints->priorities) {
      for (const LocalityPtr& locality : priority.localities) {
        for (const Endpoint& endpoint : locality->endpoints) {
          const bool is_allowed = allowed.contains(endpoint.health);
          if (is_allowed || !is_draining(endpoint)) visit(locality, endpoint, is_allowed);
        }
      }
    }
  };
  std::size_t size = 0;
  each([&](const LocalityPtr&, const Endpoint& endpoint, bool) {
    size += endpoint.addresses.size();
  });
  hosts_.reserve(size);  // Must not reallocate: places_ points into it.
  places_.reserve(size);
  each([&](const LocalityPtr& locality, const Endpoint& endpoint, bool is_allowed) {
    add(locality, endpoint, is_allowed, before, cluster);
  });
}

void HostTable::add(const LocalityPtr& locality,
                    const Endpoint& endpoint,
                    bool allowed,
                    const HostTable* before,
                    const ClusterName& cluster) {
  for (const Address& address : endpoint.addresses) {
    if (places_.contains(address.str())) continue;
    const auto known = before == nullptr ? std::nullopt : before->find(address.str());
    std::string hosts = hosts_of(endpoint, address);
    const CookieKey cookie(plain_cookie(hosts, cluster.str()));
    hosts_.push_back({address,
                      std::move(hosts),
                      cookie,
                      locality,
                      &endpoint,
                      known ? (*before)[*known].mark : new_mark(memory_),
                      allowed});
    places_.emplace(hosts_.back().address.str(), static_cast<std::uint32_t>(hosts_.size() - 1));
  }
}

std::optional<std::size_t> HostTable::find(absl::string_view address) const {
  const auto found = places_.find(address);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

SessionMarksPtr HostTable::marks() const {
  auto marks = std::make_shared<SessionMarks>();
  marks->reserve(hosts_.size());
  for (const Host& host : hosts_) {
    if (host.allowed)
      marks->emplace(host.address, SessionHost{host.mark, is_draining(*host.endpoint)});
  }
  return marks;
}

// --- the slots ---

class HostSlots final : public SessionHosts {
 public:
  struct Slot {
    const Host* host = nullptr;
    bool is_held = false;  ///< The address has a subchannel, in `state`.
    ConnectivityState state = ConnectivityState::kIdle;
    bool is_fit = false;  ///< EDS, outlier detection and health checks allow its calls.
    absl::Status status;
    ConnectionPtr connection;
    ChosenEndpoint chosen;
    Complete complete;
    mutable std::atomic<bool> asked{false};
  };

  HostSlots(HostTablePtr table, const HostStates& states)
      : table_(std::move(table)),
        slots_(states.size()),
        seats_(states.size(), table_->memory(), this) {
    SIGNALBOX_INVARIANT(states.size() == table_->size(), "each host has its state");
    for (std::size_t at = 0; at < states.size(); ++at) {
      fill(slots_[at], (*table_)[at], states[at]);
      if (takes_calls(slots_[at])) seat(slots_[at]);
    }
  }

  const Seats& seats() const { return seats_; }

  HostPromise promise(absl::string_view hosts) const override;

  static bool takes_calls(const Slot& slot) {
    return slot.is_fit && slot.is_held && slot.state == ConnectivityState::kReady;
  }

  /// The affinity of a call that the host takes.
  static Affinity affinity_to(const Host& host) {
    const bool drains = is_draining(*host.endpoint);
    return {drains ? AffinityResult::kHitDraining : AffinityResult::kHit, &host.hosts};
  }

  const Slot* find(absl::string_view address) const {
    const auto found = table_->find(address);
    return found ? &slots_[*found] : nullptr;
  }

 private:
  static void fill(Slot& slot,
                   const Host& host,
                   const std::optional<SubchannelStateChanged>& told) {
    slot.host = &host;
    slot.is_fit = host.allowed && (!told || told->healthy);
    if (!told) return;
    slot.is_held = true;
    slot.state = told->state;
    slot.status = told->status;
    slot.connection = told->connection;
    if (slot.connection == nullptr) return;
    slot.chosen = {host.locality, host.endpoint, told->tracker};
    slot.complete = Complete(slot.connection.get());
    slot.complete.endpoint = &slot.chosen;
  }

  void seat(const Slot& slot) {
    Seat seat;
    seat.complete = slot.complete;
    seat.mark = slot.host->mark.get();
    const Affinity affinity = affinity_to(*slot.host);
    seat.hosts = affinity.hosts;
    seat.result = affinity.result;
    seats_.give(slot.host->cookie, seat);
  }

  HostTablePtr table_;
  std::vector<Slot> slots_;  ///< In the table's order; never resized, hence never moved.
  Seats seats_;              ///< Of the hosts that take calls.
};

HostSlotsPtr make_host_slots(HostTablePtr table, const HostStates& states) {
  return std::make_shared<const HostSlots>(std::move(table), states);
}

// --- the pick ---

namespace {

using Slot = HostSlots::Slot;

// The next text between commas, which is removed from `rest`.
absl::string_view take_host(absl::string_view& rest) {
  const std::size_t comma = rest.find(',');
  const absl::string_view host = rest.substr(0, comma);
  rest = comma == absl::string_view::npos ? absl::string_view() : rest.substr(comma + 1);
  return host;
}

// The first host of each kind among the hosts of a cookie.
struct Named {
  const Slot* known = nullptr;
  const Slot* ready = nullptr;
  const Slot* idle = nullptr;
  const Slot* unheld = nullptr;
  bool is_connecting = false;
};

// Looks at hosts up to the first READY one. `visit` is called with each slot; null: the address is
// not known.
template <typename Visit>
Named look_up(const HostSlots& slots, absl::string_view hosts, const Visit& visit) {
  Named named;
  for (absl::string_view rest = hosts; !rest.empty() && named.ready == nullptr;) {
    const Slot* const slot = slots.find(take_host(rest));
    visit(slot);
    if (slot == nullptr) continue;
    if (named.known == nullptr) named.known = slot;
    if (!slot->is_fit) continue;
    if (!slot->is_held) {
      if (named.unheld == nullptr) named.unheld = slot;
    } else if (slot->state == ConnectivityState::kReady) {
      named.ready = slot;
    } else if (slot->state == ConnectivityState::kIdle) {
      if (named.idle == nullptr) named.idle = slot;
    } else if (slot->state == ConnectivityState::kConnecting) {
      named.is_connecting = true;
    }
  }
  return named;
}

}  // namespace

// The decision of pick_host(), in one word.
HostPromise HostSlots::promise(absl::string_view hosts) const {
  const Named named = look_up(*this, hosts, [](const Slot*) {});
  if (named.ready != nullptr) return HostPromise::kReady;
  if (named.idle != nullptr) return HostPromise::kIdle;
  if (named.is_connecting) return HostPromise::kConnecting;
  if (named.unheld != nullptr) return HostPromise::kUnheld;
  return named.known != nullptr ? HostPromise::kUnfit : HostPromise::kUnknown;
}

namespace {

// Why a call cannot go to the cookie's host.
std::string reason_of(const Slot* known) {
  if (known == nullptr) return "no endpoint of the cluster has this address";
  if (!known->host->allowed) {
    return absl::StrCat("its health is ",
                        to_string(known->host->endpoint->health),
                        ", which override_host_status does not name");
  }
  return std::string(known->status.message());
}

struct Verdict {
  std::string decision;
  std::string reason;
};

// For explanations.
Verdict verdict_of(const Slot* slot) {
  if (slot == nullptr || !slot->host->allowed) return {"not taken", reason_of(slot)};
  const absl::string_view health = to_string(slot->host->endpoint->health);
  if (!slot->is_held) return {"nobody holds it", absl::StrCat("its health is ", health)};
  std::string told = absl::StrCat("it is ", to_string(slot->state), ", its health is ", health);
  if (!slot->status.ok()) absl::StrAppend(&told, "; ", slot->status.message());
  if (!slot->is_fit) return {"not taken", absl::StrCat("it is set aside; ", told)};
  switch (slot->state) {
    case ConnectivityState::kReady:
      return {"taken", std::move(told)};
    case ConnectivityState::kTransientFailure:
      return {"not taken", std::move(told)};
    default:
      return {"waited for, if no other is READY", std::move(told)};
  }
}

// The status does not name an address that only the cookie has: that is a value of the call's
// metadata.
PickResult refuse(const Slot* known) {
  const std::string host = known == nullptr ? "the host of its cookie"
                                            : absl::StrCat("its host ", known->host->address.str());
  PickResult result;
  result.outcome = Drop{absl::UnavailableError(
      absl::StrCat("the session is strict, and ", host, " cannot be used: ", reason_of(known)))};
  return result;
}

class OverrideHostPicker final : public Picker {
 public:
  OverrideHostPicker(PickerPtr child, HostSlotsPtr slots, std::shared_ptr<const AskTarget> asks)
      : child_(std::move(child)), slots_(std::move(slots)), asks_(std::move(asks)) {}

  const Seats* seats() const override { return &slots_->seats(); }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  [[gnu::always_inline]] PickResult decide(const PickArgs& args, const Sink& sink) const {
    if (args.session == nullptr) return child_.ask(args, sink);
    if constexpr (!Sink::kTells) {
      const SessionArgs& session = *args.session;
      if (const Seat* const seat = slots_->seats().find(session.key, session.seat))
        return sit(*seat, args);
    }
    return pick_host(args, sink);
  }

  // Prefetches here, because not every call has done so before.
  static PickResult sit(const Seat& seat, const PickArgs& args) {
    seat.prefetch_marks();
    const Affinity affinity{.result = seat.result, .hosts = seat.hosts, .as_cookie = true};
    return hit(seat.complete, *seat.mark, affinity, *args.session, Silent{});
  }

  template <typename Sink>
  static void tell(const Sink& sink, absl::string_view decision, absl::string_view reason) {
    sink.tell([&] {
      return PickStep{"override_host", std::string(decision), std::string(reason), "CDS"};
    });
  }

  // Tells of one address of the cookie. An address that only the cookie has is not named: the
  // cookie may have been sealed.
  template <typename Sink>
  static void tell_verdict(const Sink& sink, const Slot* slot) {
    sink.tell([&] {
      const auto [decision, reason] = verdict_of(slot);
      const std::string address = slot == nullptr ? "" : " " + slot->host->address.str();
      return PickStep{
          "override_host", absl::StrCat("cookie's host", address, ": ", decision), reason, "CDS"};
    });
  }

  //  the first READY host
  //  else wait for the first IDLE host, else for any CONNECTING host
  //  else wait for the first host without a holder
  //  else the child picks
  template <typename Sink>
  [[gnu::noinline]] PickResult pick_host(const PickArgs& args, const Sink& sink) const {
    const absl::string_view hosts = lb::hosts_of(*args.session);
    if (hosts.empty()) {
      tell(sink, "a session begins", "the call has no cookie that names a host");
      return delegate(args, AffinityResult::kNew, sink);
    }
    const Named named =
        look_up(*slots_, hosts, [&](const Slot* slot) { tell_verdict(sink, slot); });
    if (named.ready != nullptr) {
      const Host& host = *named.ready->host;
      return hit(
          named.ready->complete, *host.mark, HostSlots::affinity_to(host), *args.session, sink);
    }
    if (named.idle != nullptr) {
      tell(sink, "the call waits", "its host is not connected; a pick lets it connect");
      return wait(AffinityResult::kQueued, sink, named.idle, PickAsk::Kind::kConnect);
    }
    if (named.is_connecting) {
      tell(sink, "the call waits", "its host is being connected");
      return wait(AffinityResult::kQueued, sink);
    }
    if (named.unheld != nullptr) {
      tell(sink, "the call waits", "nobody holds its host; a pick lets it be connected");
      return wait(AffinityResult::kCreated, sink, named.unheld, PickAsk::Kind::kCreate);
    }
    const auto why =
        named.known == nullptr ? AffinityResult::kUnknownHost : AffinityResult::kUnhealthy;
    if (!args.session->strict) {
      tell(sink, "the session moves", "no host of its cookie can be used, and it is not strict");
      return delegate(args, why, sink);
    }
    tell(sink, "the call is dropped", "no host of its cookie can be used, and it is strict");
    PickResult result = refuse(named.known);
    result.affinity.result = why;
    return result;
  }

  template <typename Sink>
  [[gnu::always_inline]] static PickResult hit(const Complete& complete,
                                               const SessionMark& mark,
                                               const Affinity& affinity,
                                               const SessionArgs& session,
                                               const Sink& sink) {
    sink.leave([&] { mark.touch(session.now); });
    tell(sink, "the session stays", "its host takes the call");
    PickResult result;
    result.outcome = complete;
    result.affinity = affinity;
    return result;
  }

  // Only the first of all calls that wait for the slot carries its ask.
  template <typename Sink>
  PickResult wait(AffinityResult why,
                  const Sink& sink,
                  const Slot* slot = nullptr,
                  PickAsk::Kind kind = PickAsk::Kind::kConnect) const {
    PickResult result;
    result.affinity.result = why;
    if (slot == nullptr || asks_ == nullptr) return result;
    sink.leave([&] {
      if (slot->asked.load(std::memory_order_relaxed)) return;
      if (slot->asked.exchange(true, std::memory_order_relaxed)) return;
      result.ask = PickAsk{kind, slot->host->address};
      result.ask_target = asks_.get();
    });
    return result;
  }

  // The session goes on, or begins, where the child sends the call.
  template <typename Sink>
  PickResult delegate(const PickArgs& args, AffinityResult why, const Sink& sink) const {
    PickResult result = child_.ask(args, sink);
    result.affinity = {why};
    const auto* complete = std::get_if<Complete>(&result.outcome);
    if (complete == nullptr || complete->connection == nullptr) return result;
    const Slot* const slot = slots_->find(complete->connection->address().str());
    if (slot == nullptr) return result;
    sink.leave([&] { slot->host->mark->touch(args.session->now); });
    result.affinity.hosts = &slot->host->hosts;
    return result;
  }

  ChildPicker child_;
  HostSlotsPtr slots_;
  std::shared_ptr<const AskTarget> asks_;
};

}  // namespace

PickerPtr make_override_host_picker(PickerPtr child,
                                    HostSlotsPtr slots,
                                    std::shared_ptr<const AskTarget> asks) {
  return std::make_shared<const OverrideHostPicker>(
      std::move(child), std::move(slots), std::move(asks));
}

}  // namespace signalbox::lb
