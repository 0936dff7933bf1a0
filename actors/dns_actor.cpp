// SPDX-License-Identifier: Apache-2.0
#include "actors/dns_actor.hpp"

#include <utility>

#include "actors/io/name_lookup.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {
namespace {

using protocol::DnsActor;

struct DnsState {
  DnsState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.
  static constexpr const char* name = "signalbox.dns";
};

protocol::BehaviorOf<DnsActor> dns_behavior(protocol::SelfOf<DnsActor, DnsState> self,
                                            EnvironmentPtr environment,
                                            protocol::WatcherActor listener) {
  return {
      [self, environment = std::move(environment), listener = std::move(listener)](
          const ResolveName& order) {
        protocol::send(self,
                       listener,
                       NameResolved{order.name, environment->name_lookup->resolve(order.name)});
        self->quit();
      },
  };
}

}  // namespace

DnsActor spawn_dns(caf::actor_system& system,
                   EnvironmentPtr environment,
                   protocol::WatcherActor listener) {
  if (environment->detached_lookups) {
    return system.spawn<caf::detached>(dns_behavior, std::move(environment), std::move(listener));
  }
  return system.spawn(dns_behavior, std::move(environment), std::move(listener));
}

}  // namespace signalbox::actors
