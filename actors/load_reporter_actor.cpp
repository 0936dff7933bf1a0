// SPDX-License-Identifier: Apache-2.0
#include "actors/load_reporter_actor.hpp"

#include <optional>
#include <utility>

#include "actors/io/ads_transport.hpp"
#include "actors/log_events.hpp"
#include "actors/seed.hpp"
#include "actors/transport_stream.hpp"
#include "actors/workload.hpp"
#include "messages/counting/load_book.hpp"
#include "metrics/instruments.hpp"
#include "xds/lrs/lrs_session.hpp"

namespace signalbox::actors {
namespace {

using protocol::LoadReporterActor;

struct LoadReporterState {
  LoadReporterState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.
  static constexpr const char* name = "signalbox.load_reporter";

  using Self = protocol::SelfOf<LoadReporterActor, LoadReporterState>;

  template <typename Event>
  void feed(Event event) {
    const auto measured = workload.begin(self);
    step(std::move(event));
  }

  // Recursive: the effect ReadLoad is answered at once by the event LoadRead.
  void step(const LrsSessionEvent& event) {
    for (auto& effect : core->step(event, protocol::now_of(self)))
      std::visit([this](auto& order) { run(order); }, effect);
  }

  void run(OpenStream& order) { stream.open(*transport, LoadReporterActor{self}, order.stream); }

  void run(CloseStream&) { stream.close(); }

  void run(ReadNext&) { stream.read_next(); }

  void run(SendBytes& order) { stream.send(std::move(order.bytes)); }

  void run(ReadLoad& order) {
    LoadRead read;
    if (order.selection) {
      read.reading = book->read(server, *order.selection, protocol::now_of(self));
    } else {
      read.reading.is_in_use = book->is_in_use(server);
      read.reading.is_owed = book->is_owed(server);
    }
    step(std::move(read));
  }

  void run(SettleLoad& order) { book->settle(server, order.number); }

  void run(LoadReportSent&) {
    environment->instruments->count_load_report_sent(transport->server());
  }

  void run(LoadServerNoted& order) {
    if (environment->log) environment->log(load_line(transport->server(), order));
  }

  void run(StreamEnded& order) {
    environment->instruments->count_load_stream_end(transport->server(), order.how);
  }

  void run(StartTimer& order) {
    protocol::send_after(self, LoadReporterActor{self}, order.delay, TimerFired{order.timer});
  }

  Self self = nullptr;
  EnvironmentPtr environment;
  ServerId server = 0;
  std::shared_ptr<LoadBook> book;
  std::shared_ptr<AdsTransport> transport;
  Workload workload;
  std::optional<xds::LrsSession> core;
  TransportStream stream;
};

protocol::BehaviorOf<LoadReporterActor> load_reporter_behavior(LoadReporterState::Self self,
                                                               EnvironmentPtr environment,
                                                               ServerId server) {
  LoadReporterState& state = self->state;
  state.self = self;
  state.environment = std::move(environment);
  state.server = server;
  state.book = state.environment->policy.load_book;
  state.transport = state.environment->load_transports.at(server);
  state.workload = Workload(state.environment->instruments->actor_stats("load_reporter"));
  for (const StreamEnd how : {StreamEnd::kOk, StreamEnd::kNoResponse, StreamEnd::kError})
    state.environment->instruments->count_load_stream_end(state.transport->server(), how, 0);
  xds::LrsSessionOptions options;
  options.node = state.environment->node_bytes;
  options.seed = seed_of(state.environment->seed, "load_reporter", self->id());
  state.core.emplace(std::move(options));
  return {
      [&state](const LoadReportsWanted& event) { state.feed(event); },
      [&state](const AdsStreamOpened& event) { state.feed(event); },
      [&state](AdsBytesReceived& event) { state.feed(std::move(event)); },
      [&state](const AdsBytesWritten& event) { state.feed(event); },
      [&state](const AdsStreamClosed& event) { state.feed(event); },
      [&state](const TimerFired& event) { state.feed(event); },
  };
}

}  // namespace

LoadReporterActor spawn_load_reporter(caf::actor_system& system,
                                      EnvironmentPtr environment,
                                      ServerId server) {
  return system.spawn(load_reporter_behavior, std::move(environment), server);
}

}  // namespace signalbox::actors
