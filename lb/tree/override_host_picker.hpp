// SPDX-License-Identifier: Apache-2.0
//
// override_host's picker — picks the host of a call's session, or else lets the child pick.
//
//   endpoints ─▶ HostTable: the hosts of cookies ───┐
//   subchannel map ─▶ HostStates: their states ─────┴▶ HostSlots ─┐
//   child's picker ───────────────────────────────────────────────┴▶ Picker::pick(session)
//
// The first rule that fits decides about a call of a session:
//   – The first READY address of its cookie takes the call.
//   – The call waits for the first IDLE address, which is told to connect.
//   – The call waits for an address that is CONNECTING.
//   – The call waits for the first address without a subchannel, which is then created.
//   – The child picks, or the call fails if its session is strict.
//
// An address counts if sessions may stay on an endpoint of that health (override_host_status), and
// if no judge finds the endpoint unfit. So an ejected endpoint gets no calls by cookie either.
//
// Nearly every call finds the host of its cookie READY. Among thousands of hosts that host's memory
// is far away. So all that such a call needs of the host stands in one place, its seat, and the
// cookie's text leads there as it was sent (Seats). A cookie is read only when its text leads to no
// seat.
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

/// The configuration of one address that a cookie may name.
struct Host {
  Address address;
  /// The addresses in its cookies: this one, then others of its endpoint (A55-23).
  std::string hosts;
  CookieKey cookie;  ///< The key of the plain cookie of `hosts` and the cluster that routes name.
  LocalityPtr locality;
  const Endpoint* endpoint = nullptr;  ///< In `locality`.
  SessionMarkPtr mark;                 ///< Never null.
  bool allowed = false;                ///< Sessions may stay on an endpoint of this health.
};

/// All hosts, by address (A55-27). Immutable. Its index points to its own strings, so it is never
/// copied.
class HostTable {
 public:
  /// DRAINING endpoints are in the table only if sessions may stay on them (A55-30). A host of
  /// `before` (null: there is none) keeps its mark. An address of several endpoints belongs to the
  /// first of them. `cluster`: the name in cookies. `memory`: for marks and seats.
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

  /// The marks of the allowed hosts.
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

/// The states of a table's hosts, in its order, as the subchannel map told them; nullopt: the
/// address has no holder.
using HostStates = std::vector<std::optional<SubchannelStateChanged>>;

/// A table and its states at one moment, for pickers.
class HostSlots;
using HostSlotsPtr = std::shared_ptr<const HostSlots>;

/// Precondition: as many states as hosts.
HostSlotsPtr make_host_slots(HostTablePtr table, const HostStates& states);

/// `asks`: receives kConnect and kCreate, once for each address and HostSlots; null: nothing does.
PickerPtr make_override_host_picker(PickerPtr child,
                                    HostSlotsPtr slots,
                                    std::shared_ptr<const AskTarget> asks);

}  // namespace signalbox::lb
