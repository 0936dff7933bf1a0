// SPDX-License-Identifier: Apache-2.0
//
// The actor around xds::LrsSession, the load reports to one server. The actor owns the stream, and
// reads the runtime's LoadBook, which has the counts, when the LrsSession asks for it. The LoadBook
// outlives the actor. So when the actor dies, its successor reports the counts left unreported.

#pragma once

#include "actors/environment.hpp"
#include "actors/protocol/load_reporter.hpp"
#include "messages/ids.hpp"

namespace signalbox::actors {

/// Starts the load_reporter of one server. Precondition: the environment has a LoadBook, and a load
/// transport for `server`.
protocol::LoadReporterActor spawn_load_reporter(caf::actor_system& system,
                                                EnvironmentPtr environment,
                                                ServerId server);

}  // namespace signalbox::actors
