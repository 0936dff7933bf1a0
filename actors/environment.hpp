// SPDX-License-Identifier: Apache-2.0
//
// Environment — all that actors need of the world outside, in one place: a runtime fills it with
// sockets, a simulation with fakes. Shared, and constant after it was made.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lb/policy.hpp"
#include "lb/route/fault.hpp"
#include "lb/subchannel/subchannel_core.hpp"
#include "xds/client/client_options.hpp"
#include "xds/client/discovery_codec.hpp"
#include "xds/depend/cluster_graph.hpp"

namespace signalbox::metrics {
class Instruments;
}  // namespace signalbox::metrics

namespace signalbox::actors {

class AdsTransport;
class Connector;
class HealthProber;
class HeapTrimmer;
class NameLookup;
class Reclaimer;

struct Environment {
  std::shared_ptr<Connector> connector;
  /// Null: nothing is probed, whatever clusters have.
  std::shared_ptr<HealthProber> health_prober;
  /// One for each distinct control-plane server of the bootstrap; by ServerId.
  std::vector<std::shared_ptr<AdsTransport>> ads_transports;
  std::shared_ptr<NameLookup> name_lookup;
  std::shared_ptr<Reclaimer> reclaimer;
  /// Null: freed memory is left to the heap.
  std::shared_ptr<HeapTrimmer> trimmer;
  std::shared_ptr<metrics::Instruments> instruments;
  /// How xDS responses of a server become resources: a decoder for each session.
  std::function<xds::ResponseDecoder(ServerId)> make_decoder;

  std::string node_bytes;  ///< Serialised Node, sent with the first request of a stream.
  std::string node_id;     ///< For texts.
  std::uint64_t seed = 1;  ///< All chance of the control plane; cores derive theirs from it.
  /// Whom to ask for what; its servers are those of `ads_transports`.
  xds::ClientOptions client;
  /// What an aggregate makes of an underlying cluster that cannot be had.
  xds::MissingLeaf missing_leaf = xds::MissingLeaf::kSkip;
  lb::PolicyOptions policy;
  /// Where faults that filters inject are counted.
  lb::FaultOptions faults = {};
  /// Back-off of subchannels; address, settings and seed are the subchannel's own.
  lb::SubchannelOptions subchannel;
  /// Told, by an actor, what an operator should know; empty: nobody is. Does not throw.
  std::function<void(const std::string& text)> log;
  /// Look-ups block, so the dns actors have threads of their own. Off in a simulation.
  bool detached_lookups = true;
  /// Responses may be long to parse, so the ads_stream actors have threads of their own: no
  /// response of one server delays another server's, whatever the number of scheduler threads. Off
  /// in a simulation.
  bool detached_streams = true;
};

using EnvironmentPtr = std::shared_ptr<const Environment>;

}  // namespace signalbox::actors
