// SPDX-License-Identifier: Apache-2.0
//
// Environment — the services and settings that actors get from outside. A runtime fills it with the
// real implementations, a simulation with fakes. Actors share it, and it does not change once it is
// made. A channel actor makes a copy for the policies of its target.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lb/policy.hpp"
#include "lb/route/fault.hpp"
#include "lb/subchannel/subchannel_core.hpp"
#include "messages/log_line.hpp"
#include "xds/client/client_options.hpp"
#include "xds/client/discovery_codec.hpp"
#include "xds/depend/missing_leaf.hpp"

namespace signalbox::metrics {
class Instruments;
}  // namespace signalbox::metrics

namespace signalbox::actors {

class AdsTransport;
class AskRelay;
class Connector;
class HealthProber;
class HeapTrimmer;
class LoadStreams;
class NameLookup;
class Reclaimer;
class Recorder;
class TargetBoard;

struct Environment {
  std::shared_ptr<Connector> connector;
  /// Runs the health checks of clusters; null: endpoints are not probed.
  std::shared_ptr<HealthProber> health_prober;
  /// Asks endpoints for their load (A51). Null: no endpoint is asked, so the effect WatchLoad does
  /// nothing.
  std::shared_ptr<LoadStreams> load_streams = nullptr;
  /// One transport for each distinct control-plane server of the bootstrap, indexed by ServerId.
  std::vector<std::shared_ptr<AdsTransport>> ads_transports;
  /// One transport for the load reports to each server, indexed by ServerId. Null: the server takes
  /// no load reports, for example because a resource file stands in for it. Each server for which
  /// `policy.load_book` counts calls has a transport.
  std::vector<std::shared_ptr<AdsTransport>> load_transports;
  std::shared_ptr<NameLookup> name_lookup;
  /// Sees the asks of picks on their way to policies; null: they go straight to the policies.
  std::shared_ptr<AskRelay> ask_relay = nullptr;
  /// Notes which targets are opened and closed; null: nothing is recorded.
  std::shared_ptr<Recorder> recorder = nullptr;
  std::shared_ptr<Reclaimer> reclaimer;
  /// Returns freed memory to the system; null: freed memory stays in the heap.
  std::shared_ptr<HeapTrimmer> trimmer;
  std::shared_ptr<metrics::Instruments> instruments;
  /// Receives what operators may see of one target's policies and subchannels; null: nothing is
  /// shown.
  std::shared_ptr<TargetBoard> status = nullptr;
  /// Makes the decoder of one AdsSession, which turns the server's xDS responses into resources.
  std::function<xds::ResponseDecoder(ServerId)> make_decoder;

  std::string node_bytes;  ///< Serialised Node, sent with the first request of a stream.
  std::string node_id;     ///< The node's ID, for error texts.
  std::uint64_t seed = 1;  ///< The runtime's seed, from which the cores' seeds are derived.
  /// The authorities and servers of the xDS client. A ServerId is an index into these servers and
  /// into `ads_transports`.
  xds::ClientOptions client;
  /// The behaviour of an aggregate when one of its underlying clusters is missing or invalid.
  xds::MissingLeaf missing_leaf = xds::MissingLeaf::kSkip;
  lb::PolicyOptions policy;
  /// Counters of the faults that fault filters inject into calls (A33).
  lb::FaultOptions faults = {};
  /// The back-off of subchannels. The address, the settings and the seed are set later, for each
  /// subchannel.
  lb::SubchannelOptions subchannel;
  /// Receives lines for the operator from actors. Must not throw. Empty: lines are dropped.
  std::function<void(LogLine line)> log;
  /// False: the log does not say when a target is first served. This is for explanations, in which
  /// connections are only assumed.
  bool announces_targets = true;
  /// True: each dns actor has a thread of its own, because look-ups block. False in a simulation.
  bool detached_lookups = true;
  /// True: each ads_stream actor has a thread of its own, because long responses take time to
  /// parse. So a long response does not occupy a scheduler thread. False in a simulation.
  bool detached_streams = true;
};

using EnvironmentPtr = std::shared_ptr<const Environment>;

}  // namespace signalbox::actors
