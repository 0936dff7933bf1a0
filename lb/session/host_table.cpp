// SPDX-License-Identifier: Apache-2.0
#include "lb/session/host_table.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/health/host_count.hpp"
#include "lb/session/session_cookie.hpp"

namespace signalbox::lb {
namespace {

// The text "ip:port,ip:port…": `first`, then other addresses of the endpoint, at most
// kMostCookieHosts in all.
std::string hosts_text(const Endpoint& endpoint, const Address& first) {
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
    std::string hosts = hosts_text(endpoint, address);
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

}  // namespace signalbox::lb
