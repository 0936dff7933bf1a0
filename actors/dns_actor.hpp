// SPDX-License-Identifier: Apache-2.0
//
// The dns actor looks up one name, then ends. Only dns actors may block, because in a runtime each
// has a thread of its own (Environment::detached_lookups).

#pragma once

#include "actors/environment.hpp"
#include "actors/protocol/dns.hpp"
#include "actors/protocol/watcher.hpp"

namespace signalbox::actors {

/// Starts the dns actor of one look-up of a LOGICAL_DNS name. The actor blocks during the look-up,
/// and ends once it has sent the result.
protocol::DnsActor spawn_dns(caf::actor_system& system,
                             EnvironmentPtr environment,
                             protocol::WatcherActor listener);

}  // namespace signalbox::actors
