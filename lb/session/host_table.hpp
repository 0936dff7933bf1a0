// SPDX-License-Identifier: Apache-2.0
//
// HostTable — the hosts of one cluster that cookies of sessions may name.
//
//   EDS: endpoints ─▶ [HostTable] ─┬▶ HostSlots: the hosts and their states, for picks
//                                  └▶ SessionMarks ─▶ subchannel map: hosts that sessions use
//
// Source: gRFC A55 (stateful session affinity), A61 (several addresses).

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

#include "lb/session/cookie_key.hpp"
#include "messages/endpoints.hpp"
#include "messages/ids.hpp"
#include "messages/session.hpp"

namespace signalbox::lb {

/// The configuration of one address that a cookie may name.
struct Host {
  Address address;
  /// The addresses that a cookie for this host names, comma-separated: `address`, then others of
  /// the same endpoint (A55-23).
  std::string hosts;
  CookieKey cookie;  ///< The hash of an unsealed cookie, in gRPC's form, of `hosts` and cluster.
  LocalityPtr locality;
  const Endpoint* endpoint = nullptr;  ///< Points into `locality`.
  SessionMarkPtr mark;                 ///< Never null.
  bool allowed = false;                ///< The endpoint's health is one of override_host_status.
};

/// A cluster's hosts, by address (A55-27). Immutable. Not copyable, because the keys of its index
/// are views into the addresses of hosts_.
class HostTable {
 public:
  /// Reads only Priority::localities. DRAINING endpoints are in the table only if `allowed` has
  /// DRAINING, so that sessions may stay on them (A55-30). If several endpoints have an address,
  /// the first of them is its host. `before`: the table that this one replaces, or null; a host
  /// that was in it keeps its SessionMark (the time of the last use by a session). `cluster`: the
  /// name that cookies give the cluster. `memory`: where SessionMarks and seats are allocated.
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

  /// The SessionMarks (times of the last use by a session) of all hosts with Host::allowed.
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

}  // namespace signalbox::lb
