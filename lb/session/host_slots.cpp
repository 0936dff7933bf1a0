// SPDX-License-Identifier: Apache-2.0
#include "lb/session/host_slots.hpp"

#include <cstddef>
#include <utility>

#include "lb/health/host_count.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

bool takes_calls(const HostSlot& slot) {
  return slot.is_fit && slot.is_held && slot.state == ConnectivityState::kReady;
}

void fill(HostSlot& slot,
          const Host& host,
          const std::optional<SubchannelStateChanged>& report,
          const LocalityName& caller) {
  slot.host = &host;
  slot.is_fit = host.allowed && (!report || report->healthy);
  if (!report) return;
  slot.is_held = true;
  slot.state = report->state;
  slot.status = report->status;
  slot.connection = report->connection;
  if (slot.connection == nullptr) return;
  slot.chosen = {host.locality, host.endpoint, report->tracker};
  slot.complete = Complete(slot.connection.get());
  slot.complete.endpoint = &slot.chosen;
  if (host.locality != nullptr) slot.complete.zone = zone_of(host.locality->name, caller);
}

}  // namespace

absl::string_view take_host(absl::string_view& hosts) {
  const std::size_t comma = hosts.find(',');
  const absl::string_view host = hosts.substr(0, comma);
  hosts = comma == absl::string_view::npos ? absl::string_view() : hosts.substr(comma + 1);
  return host;
}

Affinity affinity_to(const Host& host) {
  const bool drains = is_draining(*host.endpoint);
  return {drains ? AffinityResult::kHitDraining : AffinityResult::kHit, &host.hosts};
}

void NamedHosts::add(const HostSlot& slot) {
  if (known == nullptr) known = &slot;
  if (!slot.is_fit) return;
  if (!slot.is_held) {
    if (unheld == nullptr) unheld = &slot;
  } else if (slot.state == ConnectivityState::kReady) {
    ready = &slot;
  } else if (slot.state == ConnectivityState::kIdle) {
    if (idle == nullptr) idle = &slot;
  } else if (slot.state == ConnectivityState::kConnecting) {
    is_connecting = true;
  }
}

HostSlots::HostSlots(HostTablePtr table, const HostStates& states, const LocalityName& caller)
    : table_(std::move(table)),
      slots_(states.size()),
      seats_(states.size(), table_->memory(), this) {
  SIGNALBOX_INVARIANT(states.size() == table_->size(), "each host has its state");
  for (std::size_t at = 0; at < states.size(); ++at) {
    fill(slots_[at], (*table_)[at], states[at], caller);
    if (takes_calls(slots_[at])) give_seat(slots_[at]);
  }
}

void HostSlots::give_seat(const HostSlot& slot) {
  Seat seat;
  seat.set(slot.complete);
  seat.mark = slot.host->mark.get();
  const Affinity affinity = affinity_to(*slot.host);
  seat.hosts = affinity.hosts;
  seat.result = affinity.result;
  seats_.give(slot.host->cookie, seat);
}

const HostSlot* HostSlots::find(absl::string_view address) const {
  const auto found = table_->find(address);
  return found ? &slots_[*found] : nullptr;
}

// Says in one value what override_host's picker would do with a call to these hosts.
HostPromise HostSlots::promise(absl::string_view hosts) const {
  const NamedHosts named = look_up(hosts, [](const HostSlot*) {});
  if (named.ready != nullptr) return HostPromise::kReady;
  if (named.idle != nullptr) return HostPromise::kIdle;
  if (named.is_connecting) return HostPromise::kConnecting;
  if (named.unheld != nullptr) return HostPromise::kUnheld;
  return named.known != nullptr ? HostPromise::kUnfit : HostPromise::kUnknown;
}

HostSlotsPtr make_host_slots(HostTablePtr table,
                             const HostStates& states,
                             const LocalityName& caller) {
  return std::make_shared<const HostSlots>(std::move(table), states, caller);
}

}  // namespace signalbox::lb
