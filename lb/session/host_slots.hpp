// SPDX-License-Identifier: Apache-2.0
//
// HostSlots — the hosts of a HostTable and their states at one moment, for the picks of sessions.
//
//   endpoints ─▶ HostTable: the hosts of cookies ───┐
//   subchannel map ─▶ HostStates: their states ─────┴▶ [HostSlots] ─┬▶ override_host's picker
//                                                                   └▶ Seats, SessionHosts
//
// Nearly every call of a session finds its host READY. Among thousands of hosts, the data of that
// host is rarely in the CPU's cache. So the result of a pick for the host is in one cache line, the
// host's seat. The seat is found by the hash of the undecoded cookie (Seats). A pick decodes a
// cookie only when no seat has its hash; then the cookie's hosts are looked up in the slots.
//
// A host is fit if sessions may stay on an endpoint of its health (override_host_status), and if
// neither outlier detection nor health checks find it unfit. So an ejected endpoint gets no calls
// by cookie either.
//
// Immutable, but for HostSlot::asked: of all picks with one HostSlots, only one for each host sends
// the ask to connect the host (or to create its subchannel).

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "lb/session/host_table.hpp"
#include "lb/session/seats.hpp"
#include "lb/session/session_hosts.hpp"
#include "messages/connectivity.hpp"
#include "messages/lb_events.hpp"
#include "messages/pick.hpp"
#include "messages/session.hpp"

namespace signalbox::lb {

/// The state of each host of a HostTable, in the table's order, as the subchannel map reported it.
/// nullopt: no policy holds a subchannel to the address, its report has not come yet, or sessions
/// may not stay on the host (Host::allowed).
using HostStates = std::vector<std::optional<SubchannelStateChanged>>;

/// One host and its state.
struct HostSlot {
  const Host* host = nullptr;
  bool is_held = false;  ///< There is a subchannel to the address; `state` is its state.
  ConnectivityState state = ConnectivityState::kIdle;
  bool is_fit = false;  ///< EDS, outlier detection and health checks allow its calls.
  absl::Status status;
  ConnectionPtr connection;
  ChosenEndpoint chosen;
  Complete complete;
  mutable std::atomic<bool> asked{false};
};

/// The first host of each kind among the hosts that a cookie names; null: none is of this kind.
/// `known`: the table has the host. The other kinds are fit hosts: `ready` and `idle` by the state
/// of their subchannel, `unheld` without a subchannel. `is_connecting`: a fit host is CONNECTING.
struct NamedHosts {
  const HostSlot* known = nullptr;
  const HostSlot* ready = nullptr;
  const HostSlot* idle = nullptr;
  const HostSlot* unheld = nullptr;
  bool is_connecting = false;

  /// Records one of the cookie's hosts, unless an earlier host is of the same kind.
  void add(const HostSlot& slot);
};

/// Removes the first host from a comma-separated list, and returns that host.
absl::string_view take_host(absl::string_view& hosts);

/// The report of a pick to its session when the call goes to `host`.
Affinity affinity_to(const Host& host);

class HostSlots final : public SessionHosts {
 public:
  /// `caller`: see PolicyOptions::caller. Precondition: `states` has one entry for each host of
  /// `table`.
  HostSlots(HostTablePtr table, const HostStates& states, const LocalityName& caller = {});

  const Seats& seats() const { return seats_; }

  HostPromise promise(absl::string_view hosts) const override;

  /// The slot of the address; null: the table does not have the address.
  const HostSlot* find(absl::string_view address) const;

  /// Looks the hosts of a comma-separated list up, until one is READY and fit. `visit` is called
  /// with the slot of each; null: the table does not have the host.
  template <typename Visit>
  NamedHosts look_up(absl::string_view hosts, const Visit& visit) const {
    NamedHosts named;
    while (!hosts.empty() && named.ready == nullptr) {
      const HostSlot* const slot = find(take_host(hosts));
      visit(slot);
      if (slot != nullptr) named.add(*slot);
    }
    return named;
  }

 private:
  void give_seat(const HostSlot& slot);

  HostTablePtr table_;
  std::vector<HostSlot> slots_;  ///< In the table's order; never resized, hence never moved.
  Seats seats_;                  ///< Has a seat for each host that is fit and READY.
};

using HostSlotsPtr = std::shared_ptr<const HostSlots>;

/// `caller`: see PolicyOptions::caller. Precondition: `states` has one entry for each host of
/// `table`.
HostSlotsPtr make_host_slots(HostTablePtr table,
                             const HostStates& states,
                             const LocalityName& caller = {});

}  // namespace signalbox::lb
