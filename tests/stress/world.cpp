// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/world.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "prometheus/metric_family.h"

#include "messages/invariant.hpp"
#include "tests/stress/topology.hpp"

namespace signalbox::stress {
namespace {

constexpr std::size_t kBackends = 5;
constexpr std::size_t kLives = 2;

RuntimeOptions options_for(const std::string& server, std::uint64_t seed) {
  RuntimeOptions options;
  options.bootstrap_json = absl::StrCat("{\"xds_servers\": [{\"server_uri\": \"",
                                        server,
                                        "\", \"channel_creds\": [{\"type\": \"insecure\"}]}], "
                                        "\"node\": {\"id\": \"stress\"}}");
  options.resource_timeout = milliseconds(300);
  options.failover_timeout = milliseconds(200);
  options.initial_backoff = milliseconds(10);
  options.max_backoff = milliseconds(100);
  options.seed = seed;
  return options;
}

std::unique_ptr<tools::ControlPlane> start_plane() {
  auto plane = tools::ControlPlane::start("127.0.0.1:0");
  SIGNALBOX_INVARIANT(plane.ok(), "there is a free port");
  return *std::move(plane);
}

}  // namespace

World::World(Ledger& ledger, std::uint64_t seed)
    : ledger_(ledger), random_(seed), plane_(start_plane()) {
  for (std::size_t i = 0; i < kBackends; ++i)
    backends_.push_back(std::make_unique<Backend>());
  publish();
  for (std::size_t i = 0; i < kLives; ++i)
    lives_.push_back(begin_life());
}

World::~World() {
  end_runtimes();
}

// A server that is down is soon started again: calls should meet the moment of a server's end, not
// its absence.
void World::disturb() {
  if (!plane_is_up_ && one_in(random_, 3)) return toggle_plane();
  const int event = below(random_, 24);
  if (event < 10) return publish();
  if (event < 15) return toggle_backend();
  if (event < 21) return renew_channel();
  if (event < 22) return toggle_plane();
  if (event < 23) return renew_life();
  publish();
}

void World::publish() {
  ++events_["configurations"];
  std::vector<std::string> addresses{"127.0.0.1:1"};  // An address that refuses connections.
  for (const auto& backend : backends_)
    addresses.push_back(backend->address());
  plane_->set_resources(draw_resources(random_, addresses));
}

void World::toggle_backend() {
  Backend& backend = *backends_[random_() % kBackends];
  for (const auto& other : backends_) {
    if (!other->is_up() && !one_in(random_, 4)) return other->start();
  }
  if (!backend.is_up()) return backend.start();
  ++events_["backends stopped"];
  ledger_.backend_stopped();
  backend.stop();
  ledger_.backend_stopped();
}

void World::toggle_plane() {
  if (!plane_is_up_) {
    plane_is_up_ = plane_->start_again().ok();
    return;
  }
  ++events_["control planes stopped"];
  plane_->stop();
  plane_is_up_ = false;
}

// --- lives ------------------------------------------------------------------------

World::Life World::begin_life() {
  auto runtime = Runtime::start(options_for(plane_->address(), random_()));
  SIGNALBOX_INVARIANT(runtime.ok(), "the bootstrap is good");
  Life life{*std::move(runtime), {}, {}};
  for (const std::string& target : targets()) {
    life.channels.push_back(life.runtime->channel(target));
    life.routers.push_back(*life.runtime->router(target));
  }
  metrics_.push_back(life.runtime->metrics());
  return life;
}

World::Life& World::some_life(Random& random) {
  return lives_[random() % lives_.size()];
}

ChannelPtr World::channel(Random& random) {
  const std::lock_guard lock(mutex_);
  const Life& life = some_life(random);
  return life.channels[random() % life.channels.size()];
}

RouterPtr World::router(Random& random) {
  const std::lock_guard lock(mutex_);
  const Life& life = some_life(random);
  return life.routers[random() % life.routers.size()];
}

// Replaces the channel and the router of one of a runtime's targets. One time in three, the world
// first gives up the old ones, so that it holds none of this target for a moment.
void World::renew_channel() {
  ++events_["channels renewed"];
  Life& life = some_life(random_);
  const std::size_t index = random_() % targets().size();
  const auto set = [&](ChannelPtr channel, RouterPtr router) {
    const std::lock_guard lock(mutex_);
    life.channels[index].swap(channel);
    life.routers[index].swap(router);
  };
  if (one_in(random_, 3)) {
    const std::size_t other = (index + 1) % targets().size();
    set(life.channels[other], life.routers[other]);
  }
  const std::string& target = targets()[index];
  set(life.runtime->channel(target), *life.runtime->router(target));
}

// The old runtime ends on this thread or on another one, before or after its channels are released.
void World::renew_life() {
  ++events_["runtimes ended"];
  Life old = begin_life();
  {
    const std::lock_guard lock(mutex_);
    std::swap(old, some_life(random_));
  }
  if (endings_.size() > 8) {
    for (std::thread& ending : endings_)
      ending.join();
    endings_.clear();
  }
  const bool channels_first = one_in(random_, 2);
  if (one_in(random_, 2)) return end(old, channels_first);
  endings_.emplace_back([life = std::make_shared<Life>(std::move(old)), channels_first] {
    end(*life, channels_first);
  });
}

void World::end(Life& life, bool channels_first) {
  if (channels_first) life.channels.clear();
  if (channels_first) life.routers.clear();
  life = Life();
}

void World::end_runtimes() {
  std::vector<Life> lives;
  {
    const std::lock_guard lock(mutex_);
    lives.swap(lives_);
  }
  lives.clear();
  for (std::thread& ending : endings_)
    ending.join();
  endings_.clear();
}

// --- the end ----------------------------------------------------------------------

void World::check_counters() {
  double started = 0;
  double completed = 0;
  std::map<std::string, double> left;
  for (const auto& runtime : metrics_) {
    for (const auto& family : runtime->Collect()) {
      for (const auto& metric : family.metric) {
        if (family.name == "signalbox_rpcs_started_total") started += metric.counter.value;
        if (family.name == "signalbox_rpcs_completed_total") completed += metric.counter.value;
        if (family.name == "signalbox_rpcs_active" || family.name == "signalbox_connections_open" ||
            family.name == "signalbox_policies" || family.name == "signalbox_subchannels")
          left[family.name] += metric.gauge.value != 0 ? 1 : 0;
      }
    }
  }
  if (started != completed)
    ledger_.report(absl::StrCat("started ", started, " calls, completed ", completed));
  for (const auto& [gauge, series] : left) {
    if (series != 0) ledger_.report(absl::StrCat(gauge, ": ", series, " series are not zero"));
  }
  events_["calls counted"] = static_cast<int>(started);
}

std::string World::totals() const {
  std::string text;
  for (const auto& [event, count] : events_)
    absl::StrAppend(&text, event, ": ", count, "\n");
  int calls = 0;
  for (const auto& backend : backends_)
    calls += backend->calls();
  return absl::StrCat(text, "calls that backends ended: ", calls, "\n");
}

}  // namespace signalbox::stress
