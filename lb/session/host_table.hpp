// SPDX-License-Identifier: Apache-2.0
//
// HostTable — the hosts of one cluster that cookies of sessions may name.
//
//   EDS: endpoints ─▶ [HostTable] ─┬▶ HostSlots: the hosts and their states, for picks
//                                  └▶ SessionMarks ─▶ subchannel map: lately used hosts
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
  /// The addresses that the host's cookies name: `address`, then others of the same endpoint
  /// (A55-23).
  std::string hosts;
  CookieKey cookie;  ///< The key of the plain cookie of `hosts` and the cluster that routes name.
  LocalityPtr locality;
  const Endpoint* endpoint = nullptr;  ///< Points into `locality`.
  SessionMarkPtr mark;                 ///< Never null.
  bool allowed = false;                ///< override_host_status has the health of the endpoint.
};

/// A cluster's hosts, by address (A55-27). Immutable. Its index points to its own strings, so it is
/// never copied.
class HostTable {
 public:
  /// Reads only Priority::localities. DRAINING endpoints are in the table only if sessions may stay
  /// on them (A55-30). A host that is in `before` too keeps its SessionMark; null: there is no
  /// table before. An address of several endpoints belongs to the first of them. `cluster`: the
  /// name in cookies. `memory`: what SessionMarks and host slots are allocated from.
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

}  // namespace signalbox::lb
