// SPDX-License-Identifier: Apache-2.0
//
// Hosts xds::LrsSession, the load reports to one server. The shell owns the stream, and reads the
// runtime's LoadBook when the session asks for it. The book outlives the shell. So the shell that
// follows a dead one reports what the dead one did not.

#pragma once

#include "actors/environment.hpp"
#include "actors/protocol/load_reporter.hpp"
#include "messages/ids.hpp"

namespace signalbox::actors {

/// Precondition: the environment has a LoadBook, and a load transport for `server`.
protocol::LoadReporterActor spawn_load_reporter(caf::actor_system& system,
                                                EnvironmentPtr environment,
                                                ServerId server);

}  // namespace signalbox::actors
