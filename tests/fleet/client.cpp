// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/client.hpp"

#include <utility>
#include <vector>

#include "messages/overloaded.hpp"
#include "tests/fleet/resources.hpp"
#include "tests/support/decode_at_once.hpp"
#include "tests/support/decode_response.hpp"

namespace signalbox::fleet {
namespace {

constexpr ServerId kServer = 0;
constexpr WatcherId kWatcher = 1;

xds::AdsSessionOptions session_options(Manner manner, std::uint64_t seed) {
  // All clients parse with the same options.
  static const xds::ParseOptions parse_options;
  xds::AdsSessionOptions options;
  options.server = "control-plane";
  options.seed = seed;
  options.decode = xds::decode_at_once(
      [](absl::string_view bytes) { return xds::decode_response(bytes, parse_options); });
  options.pace = stream_pace(manner);
  options.nack_backoff = nack_backoff(manner);
  return options;
}

xds::DependencyOptions target_options(std::uint64_t seed) {
  xds::DependencyOptions options;
  options.target = "xds:///orders";
  options.listener = kName;
  options.authority = kName;
  options.seed = seed;
  return options;
}

}  // namespace

Client::Client(testing::FakeClock& clock,
               Network& network,
               Manner manner,
               std::size_t number,
               std::uint64_t seed,
               std::function<void(const ResourceVersions&)> on_config)
    : clock_(clock),
      link_(make_link(
          manner,
          {clock, network, number, seed, [this](const auto& event) { tell_session(event); }})),
      session_(session_options(manner, seed)),
      core_(xds::ClientOptions{}),
      manager_(target_options(seed)),
      on_config_(std::move(on_config)) {}

void Client::start() {
  run(manager_.start());
}

void Client::on(std::uint64_t connection, FromServer message) {
  std::visit(
      Overloaded{
          [&](const Accepted&) { link_->accepted(connection); },
          [&](const Ended&) { link_->ended(connection); },
          [&](Response& response) { link_->received(connection, std::move(response.bytes)); },
      },
      message);
}

// --- between the cores ------------------------------------------------------

void Client::tell_session(const AdsSessionEvent& event) {
  run(session_.step(event, clock_.now()));
}

void Client::tell_core(const ClientEvent& event) {
  run(core_.step(event, clock_.now(), WallTime()));
}

void Client::tell_manager(const DependencyEvent& event) {
  run(manager_.step(event, clock_.now()));
}

void Client::run(const AdsSessionEffects& effects) {
  std::vector<AdsBytesWritten> written;
  for (const AdsSessionEffect& effect : effects) {
    std::visit(Overloaded{
                   [&](const OpenStream& order) { link_->open(order.stream); },
                   [&](const CloseStream& order) { link_->close(order.stream); },
                   [&](const SendBytes& order) {
                     link_->send(order.stream, order.bytes);
                     written.push_back({order.stream});
                   },
                   [&](const StartTimer& order) {
                     clock_.after_exactly(order.delay, [this, timer = order.timer] {
                       tell_session(TimerFired{timer});
                     });
                   },
                   [](const CancelTimer&) {},
                   [](const ReadNext&) {},
                   [](const ResponseRefused&) {},
                   [](const StreamEnded&) {},
                   [&](const auto& report) { tell_core(ServerReported{kServer, report}); },
               },
               effect);
  }
  for (const AdsBytesWritten& event : written)
    tell_session(event);
}

void Client::run(const ClientEffects& effects) {
  for (const ClientEffect& effect : effects) {
    std::visit(Overloaded{
                   [&](const AskServer& order) { tell_session(order.subscription); },
                   [&](const NotifyWatcher& order) { tell_manager(order.what); },
                   [&](const StartTimer& order) {
                     clock_.after_exactly(order.delay, [this, timer = order.timer] {
                       tell_core(TimerFired{timer});
                     });
                   },
                   [](const auto&) {},
               },
               effect);
  }
}

// All watches that one step adds or drops go to the client core in one message.
void Client::run(const DependencyEffects& effects) {
  WatchesChanged changed{kWatcher, {}};
  for (const DependencyEffect& effect : effects) {
    std::visit(Overloaded{
                   [&](const Watch& order) { changed.changes.emplace_back(order); },
                   [&](const Unwatch& order) { changed.changes.emplace_back(order); },
                   [&](const EmitConfig& order) { on_config_(order.origin.versions); },
                   [&](const StartTimer& order) {
                     clock_.after_exactly(order.delay, [this, timer = order.timer] {
                       tell_manager(TimerFired{timer});
                     });
                   },
                   [](const auto&) {},
               },
               effect);
  }
  if (!changed.changes.empty()) tell_core(changed);
}

}  // namespace signalbox::fleet
