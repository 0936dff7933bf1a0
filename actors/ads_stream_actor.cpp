// SPDX-License-Identifier: Apache-2.0
#include "actors/ads_stream_actor.hpp"

#include <optional>
#include <utility>

#include "actors/io/ads_transport.hpp"
#include "actors/log_events.hpp"
#include "actors/seed.hpp"
#include "actors/transport_stream.hpp"
#include "actors/workload.hpp"
#include "metrics/instruments.hpp"
#include "xds/client/ads_session.hpp"

namespace signalbox::actors {
namespace {

using protocol::AdsStreamActor;

struct AdsStreamState {
  AdsStreamState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.
  static constexpr const char* name = "signalbox.ads_stream";

  using Self = protocol::SelfOf<AdsStreamActor, AdsStreamState>;

  template <typename Event>
  void feed(Event event) {
    const auto measured = workload.begin(self);
    for (auto& effect : core->step(AdsSessionEvent{std::move(event)}, protocol::now_of(self))) {
      std::visit([this](auto& order) { run(order); }, effect);
    }
  }

  void run(OpenStream& order) { stream.open(*transport, AdsStreamActor{self}, order.stream); }

  void run(CloseStream&) { stream.close(); }

  void run(ReadNext&) { stream.read_next(); }

  void run(SendBytes& order) { stream.send(std::move(order.bytes)); }

  void run(ResourcesReceived& order) {
    environment->instruments->record_response(order.type, order.bytes);
    protocol::send(self, sink, std::move(order));
  }

  void run(StreamEnded& order) {
    environment->instruments->count_stream_end(transport->server(), order.how);
  }

  void run(ResponseRefused& order) {
    environment->instruments->count_config_rejected(to_string(order.reason));
    if (environment->log) environment->log(refused_line(transport->server(), order));
  }

  void run(SubscriptionSent& order) { protocol::send(self, sink, std::move(order)); }

  void run(ServerStatusChanged& order) { protocol::send(self, sink, std::move(order)); }

  void run(StartTimer& order) {
    protocol::send_after(self, AdsStreamActor{self}, order.delay, TimerFired{order.timer});
  }

  void run(CancelTimer&) {}  // CAF cannot cancel a timer; the core drops its TimerFired.

  Self self = nullptr;
  EnvironmentPtr environment;
  std::shared_ptr<AdsTransport> transport;
  Workload workload;
  protocol::ResourceSink sink;
  std::optional<xds::AdsSession> core;
  TransportStream stream;
};

protocol::BehaviorOf<AdsStreamActor> ads_stream_behavior(AdsStreamState::Self self,
                                                         EnvironmentPtr environment,
                                                         ServerId server,
                                                         protocol::ResourceSink sink) {
  AdsStreamState& state = self->state;
  state.self = self;
  state.environment = std::move(environment);
  state.transport = state.environment->ads_transports.at(server);
  state.workload = Workload(state.environment->instruments->actor_stats("ads_stream"));
  for (const StreamEnd how : {StreamEnd::kOk, StreamEnd::kNoResponse, StreamEnd::kError})
    state.environment->instruments->count_stream_end(state.transport->server(), how, 0);
  state.sink = std::move(sink);
  xds::AdsSessionOptions options;
  options.node = state.environment->node_bytes;
  options.server = state.transport->server();
  options.seed = seed_of(state.environment->seed, "ads_stream", self->id());
  options.decode = state.environment->make_decoder(server);
  state.core.emplace(std::move(options));
  return {
      [&state](Subscribe& event) { state.feed(std::move(event)); },
      [&state](const AdsStreamOpened& event) { state.feed(event); },
      [&state](AdsBytesReceived& event) { state.feed(std::move(event)); },
      [&state](const AdsBytesWritten& event) { state.feed(event); },
      [&state](const AdsStreamClosed& event) { state.feed(event); },
      [&state](const TimerFired& event) { state.feed(event); },
  };
}

}  // namespace

AdsStreamActor spawn_ads_stream(caf::actor_system& system,
                                EnvironmentPtr environment,
                                ServerId server,
                                protocol::ResourceSink sink) {
  if (environment->detached_streams) {
    return system.spawn<caf::detached>(
        ads_stream_behavior, std::move(environment), server, std::move(sink));
  }
  return system.spawn(ads_stream_behavior, std::move(environment), server, std::move(sink));
}

}  // namespace signalbox::actors
