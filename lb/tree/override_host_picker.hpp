// SPDX-License-Identifier: Apache-2.0
//
// override_host's picker — the host that a call's session is on, else whom the child picks.
//
//   endpoints ─▶ HostTable: whom a cookie may name ─┐
//   subchannel map ─▶ HostStates: how each one is ──┴▶ HostSlots ─┐
//   child's picker ───────────────────────────────────────────────┴▶ Picker::pick(session)
//
// A call of a session goes to the first READY address of its cookie; else it waits for the first
// IDLE one to connect; else for one that is connecting; else for the first that nobody holds to be
// created; else it is the child's, or fails if its session is strict. An address counts if the
// endpoint's health is one that sessions may stay on (override_host_status) and nobody finds the
// endpoint unfit: an ejected one has no calls by cookie either.
//
// Nearly every call finds the host of its cookie READY, and among thousands of hosts that one's
// memory is far away: all that such a call needs of it stands in one place, its seat, to which the
// cookie leads as it was sent (Seats). Only who finds no seat has its cookie read.
//
// Lock-free, allocates nothing on the complete path; writes nothing but SessionMarks and the
// one-shot flags of its asks.
//
// Source: gRFC A75 (the pick), A55 (strict is Envoy's), A61 (several addresses).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "lb/session/seats.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// What the configuration says of one address that a cookie may name.
struct Host {
  Address address;
  std::string hosts;  ///< What its cookies name: this one, then others of its endpoint (A55-23).
  CookieKey cookie;   ///< Of the plain cookie that says so, with the cluster that routes name.
  LocalityPtr locality;
  const Endpoint* endpoint = nullptr;  ///< In `locality`.
  SessionMarkPtr mark;                 ///< Never null.
  bool allowed = false;                ///< Its health is one that sessions may stay on.
};

/// All of them, by address (A55-27). Immutable; names its own strings, hence it is never copied.
class HostTable {
 public:
  /// DRAINING endpoints are in it only where sessions may stay on them (A55-30). Who is in `before`
  /// (null: nobody) keeps his mark. An address that several endpoints have is the first one's.
  /// `cluster`: as cookies have it. `memory`: of marks and seats.
  HostTable(const EndpointsPtr& endpoints,
            HealthStatusSet allowed,
            const HostTable* before,
            const ClusterName& cluster = {},
            std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  HostTable(const HostTable&) = delete;
  HostTable& operator=(const HostTable&) = delete;

  std::size_t size() const { return hosts_.size(); }

  const Host& operator[](std::size_t at) const { return hosts_[at]; }

  std::optional<std::size_t> find(absl::string_view address) const;

  /// Of those that are allowed.
  SessionMarksPtr marks() const;

  std::pmr::memory_resource* memory() const { return memory_; }

 private:
  void add(const LocalityPtr& locality,
           const Endpoint& endpoint,
           bool allowed,
           const HostTable* before,
           const ClusterName& cluster);

  std::pmr::memory_resource* memory_;
  std::vector<Host> hosts_;
  absl::flat_hash_map<absl::string_view, std::uint32_t> places_;
};

using HostTablePtr = std::shared_ptr<const HostTable>;

/// How the hosts of a table are, in its order, as the subchannel map told; nullopt: nobody holds
/// the address.
using HostStates = std::vector<std::optional<SubchannelStateChanged>>;

/// What pickers look at: both of the above as they were at one moment.
class HostSlots;
using HostSlotsPtr = std::shared_ptr<const HostSlots>;

/// Precondition: as many states as hosts.
HostSlotsPtr make_host_slots(HostTablePtr table, const HostStates& states);

/// `asks`: where kConnect and kCreate go, told once for each address and HostSlots; null: nowhere.
PickerPtr make_override_host_picker(PickerPtr child,
                                    HostSlotsPtr slots,
                                    std::shared_ptr<const AskTarget> asks);

}  // namespace signalbox::lb
