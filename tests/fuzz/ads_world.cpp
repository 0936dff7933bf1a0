// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/ads_world.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"

#include "messages/overloaded.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/decode_at_once.hpp"
#include "tests/support/decode_response.hpp"
#include "xds/type_url.hpp"

namespace signalbox::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr ServerId kServer = 0;
// The time between the end of a session and the start of the next one.
constexpr Duration kRestart = 2s;
const TimerId kStart{"start", 0};

xds::AdsSessionOptions session_options() {
  envoy::config::core::v3::Node node;
  node.set_id("n");
  xds::AdsSessionOptions options;
  options.server = "s";
  options.node = node.SerializeAsString();
  options.seed = 1;
  options.decode =
      xds::decode_at_once([](absl::string_view bytes) { return xds::decode_response(bytes); });
  return options;
}

xds::ClientOptions client_options(ModelOptions options) {
  xds::ClientOptions client;
  client.servers[kServer].fail_on_data_errors = options.fail_on_data_errors;
  client.servers[kServer].resource_timer_is_transient_error = options.timer_is_transient_error;
  return client;
}

}  // namespace

AdsWorld::AdsWorld(ModelOptions options)
    : model_(options), session_(session_options()), client_(client_options(options)) {}

// --- actions ----------------------------------------------------------------

void AdsWorld::watch(WatcherId watcher, const ResourceKey& key) {
  if (model_.is_watched(watcher, key)) return;
  told_[{watcher, key}] = Told{};
  model_.watch(watcher, key);
  tell_client(WatchesChanged{watcher, {Watch{key}}});
  check(false);
}

void AdsWorld::unwatch(WatcherId watcher, const ResourceKey& key) {
  model_.unwatch(watcher, key);
  tell_client(WatchesChanged{watcher, {Unwatch{key}}});
  check(false);
}

void AdsWorld::watcher_gone(WatcherId watcher) {
  model_.gone(watcher);
  tell_client(WatcherGone{watcher});
  check(false);
}

void AdsWorld::open_stream() {
  if (!std::exchange(opening_, false)) return;
  model_.opened(now_);
  tell_session(AdsStreamOpened{stream_});
  check(false);
}

void AdsWorld::close_stream() {
  if (!opening_ && !model_.is_live()) return;
  opening_ = false;
  model_.closed();
  tell_session(AdsStreamClosed{stream_, absl::UnavailableError("gone")});
  check(false);
}

void AdsWorld::respond(const SentResponse& response) {
  if (!model_.is_live()) return;
  model_.received(response);
  tell_session(AdsBytesReceived{stream_, encode(response)});
  check(false);
}

void AdsWorld::respond_nonsense() {
  if (!model_.is_live()) return;
  const AdsSessionEffects effects = session_.step(AdsBytesReceived{stream_, "\xff"}, now_);
  if (!effects.empty()) model_.refused();
  run(effects);
  check(false);
}

void AdsWorld::disturb() {
  const auto& [is_clients, timer] = last_cancelled_;
  if (is_clients)
    tell_client(TimerFired{timer});
  else
    tell_session(TimerFired{timer});
  if (stream_ > 1) {
    tell_session(AdsStreamOpened{stream_ - 1});
    tell_session(AdsBytesWritten{stream_ - 1});
    tell_session(AdsBytesReceived{stream_ - 1, encode(SentResponse{})});
    tell_session(AdsStreamClosed{stream_ - 1, absl::OkStatus()});
  }
  check(false);
}

void AdsWorld::advance(Duration duration) {
  const Instant end = now_ + duration;
  while (true) {
    auto next = timers_.end();
    for (auto timer = timers_.begin(); timer != timers_.end(); ++timer) {
      if (timer->second <= end && (next == timers_.end() || timer->second < next->second))
        next = timer;
    }
    if (next == timers_.end()) break;
    now_ = std::max(now_, next->second);
    const auto [is_clients, timer] = next->first;
    timers_.erase(next);
    model_.advance(now_);
    if (is_clients)
      tell_client(TimerFired{timer});
    else if (timer == kStart)
      start_session();
    else
      tell_session(TimerFired{timer});
  }
  now_ = end;
  model_.advance(now_);
  check(false);
}

void AdsWorld::end() {
  // Longer than the longest back-off with its jitter.
  advance(150s);
  check(true);
  SIGNALBOX_FUZZ_EXPECT(opening_ || model_.is_live() || !model_.is_anything_watched(),
                        "M3: what is watched is asked for again",
                        "no stream");
  open_stream();
  advance(30s);
  check(true);
  std::set<WatcherId> watchers;
  for (const auto& [which, told] : told_)
    watchers.insert(which.first);
  for (const WatcherId watcher : watchers)
    watcher_gone(watcher);
  advance(150s);
  SIGNALBOX_FUZZ_EXPECT(
      timers_.empty(), "nothing is waited for", timers_.begin()->first.second.name);
}

// --- between the cores ------------------------------------------------------

void AdsWorld::tell_session(const AdsSessionEvent& event) {
  run(session_.step(event, now_));
}

void AdsWorld::tell_client(const ClientEvent& event) {
  run(client_.step(event, now_, WallTime()));
}

// Messages count as written when the step is over. A session that is left has no further effects.
void AdsWorld::run(const AdsSessionEffects& effects) {
  std::vector<AdsBytesWritten> written;
  const std::uint64_t session = sessions_;
  for (const AdsSessionEffect& effect : effects) {
    if (session != sessions_) return;
    std::visit(
        Overloaded{
            [&](const OpenStream& order) {
              model_.opening(now_);
              stream_ = order.stream;
              opening_ = true;
            },
            [&](const SendBytes& order) {
              take_request(order);
              written.push_back({order.stream});
            },
            [&](const StartTimer& order) { timers_[{false, order.timer}] = now_ + order.delay; },
            [&](const CancelTimer& order) {
              timers_.erase({false, order.timer});
              last_cancelled_ = {false, order.timer};
            },
            [](const CloseStream&) {},  // AdsModel knows the close from the messages received.
            [](const ReadNext&) {},
            [](const ResponseRefused&) {},
            [](const StreamEnded&) {},
            [&](const auto& report) { tell_client(ServerReported{kServer, report}); },
        },
        effect);
  }
  for (const AdsBytesWritten& event : written)
    tell_session(event);
}

void AdsWorld::run(const ClientEffects& effects) {
  for (const ClientEffect& effect : effects) {
    std::visit(
        Overloaded{
            [&](const AskServer& order) {
              if (for_next_)
                for_next_->insert_or_assign(order.subscription.type, order.subscription);
              else
                tell_session(order.subscription);
            },
            [&](const LeaveServer&) { leave_server(); },
            [&](const NotifyWatcher& order) { note(order.watcher, order.what); },
            [](const CountUpdates&) {},
            [](const CountResources&) {},
            [&](const StartTimer& order) { timers_[{true, order.timer}] = now_ + order.delay; },
            [&](const CancelTimer& order) {
              timers_.erase({true, order.timer});
              last_cancelled_ = {true, order.timer};
            },
        },
        effect);
  }
}

void AdsWorld::leave_server() {
  model_.left();
  ++sessions_;
  session_ = xds::AdsSession(session_options());
  for_next_.emplace();
  std::erase_if(timers_, [](const auto& timer) { return !timer.first.first; });
  timers_[{false, kStart}] = now_ + kRestart;
  // Late events of the old session cannot reach the new one, which counts from 1 again.
  last_cancelled_ = {};
  stream_ = 0;
  opening_ = false;
}

void AdsWorld::start_session() {
  const auto subscriptions = *std::exchange(for_next_, std::nullopt);
  for (const auto& [type, subscription] : subscriptions)
    tell_session(subscription);
}

void AdsWorld::take_request(const SendBytes& effect) {
  SIGNALBOX_FUZZ_EXPECT(effect.stream == stream_, "requests go to the newest stream", "an old one");
  envoy::service::discovery::v3::DiscoveryRequest proto;
  const bool is_request = proto.ParseFromString(effect.bytes);
  const auto type = xds::resource_type_of(proto.type_url());
  SIGNALBOX_FUZZ_EXPECT(is_request && type, "a request can be read", proto.type_url());
  AdsRequest request;
  request.type = *type;
  request.version = proto.version_info();
  request.nonce = proto.response_nonce();
  request.names = {proto.resource_names().begin(), proto.resource_names().end()};
  request.has_node = proto.has_node();
  request.is_nack = proto.has_error_detail();
  SIGNALBOX_FUZZ_EXPECT(static_cast<int>(request.names.size()) == proto.resource_names_size(),
                        "each name once",
                        proto.ShortDebugString());
  model_.check_request(request);
}

void AdsWorld::note(WatcherId watcher, const ResourcesChanged& what) {
  for (const auto& change : what.changes) {
    std::visit(
        [&](const auto& changed) {
          SIGNALBOX_FUZZ_EXPECT(model_.is_watched(watcher, changed.key),
                                "only watchers are told",
                                xds::type_url_of(changed.key.type).data());
          fuzz::note(told_[{watcher, changed.key}], changed);
        },
        change);
  }
}

// --- after each action ------------------------------------------------------

void AdsWorld::check(bool settled) {
  model_.check_server();
  model_.check_subscriptions(settled);
  for (const auto& [which, told] : told_) {
    const auto& [watcher, key] = which;
    SIGNALBOX_FUZZ_EXPECT(model_.is_right(watcher, key, told),
                          "M5, M6: what a watcher has",
                          absl::StrCat(to_string(key.type),
                                       "/",
                                       key.name,
                                       ": ",
                                       text_of(told),
                                       "; expected ",
                                       model_.expected(key)));
  }
}

}  // namespace signalbox::fuzz
