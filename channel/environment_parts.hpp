// SPDX-License-Identifier: Apache-2.0
//
// environment_parts — the parts of the actors' environment that options and bootstrap decide. A
// runtime and a replay of its recording make them alike.
//
//   RuntimeOptions, Bootstrap, environment variables ─▶ [environment_parts] ─▶ actors::Environment

#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "actors/environment.hpp"
#include "channel/lb_policies.hpp"
#include "metrics/instruments.hpp"
#include "signalbox/runtime.hpp"
#include "xds/bootstrap.hpp"
#include "xds/node.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::channel {

/// Returns an environment variable, as std::getenv does.
using GetVariable = std::function<const char*(const char*)>;

using ParseOptionsPtr = std::shared_ptr<const xds::ParseOptions>;

/// The parse options that stay the same for the life of a runtime.
ParseOptionsPtr lasting_parse_options(const RuntimeOptions& options,
                                      const RegisteredLbPolicies& custom,
                                      std::shared_ptr<const xds::CustomFilters> filters,
                                      const xds::Bootstrap& bootstrap,
                                      std::shared_ptr<const std::atomic<bool>> abandoned);

/// Makes the decoders of AdsSessions. For each response they read the environment variables that
/// change the parser's rules (A75-8).
std::function<xds::ResponseDecoder(ServerId)> decoders(ParseOptionsPtr lasting,
                                                       const xds::Bootstrap& bootstrap,
                                                       GetVariable get);

/// The locality of the client; empty if the bootstrap names none.
LocalityName locality_of(const xds::NodeConfig& node);

/// Sets the options of policies, and the settings of the actors that are copied from the options
/// and the bootstrap.
void add_settings(const RuntimeOptions& options,
                  const xds::Bootstrap& bootstrap,
                  const GetVariable& get,
                  actors::Environment& environment);

/// Adds the actors' counters, and the limits that all runtimes of the process share.
void add_counters(const RuntimeOptions& options,
                  const std::shared_ptr<metrics::Instruments>& instruments,
                  actors::Environment& environment);

}  // namespace signalbox::channel
