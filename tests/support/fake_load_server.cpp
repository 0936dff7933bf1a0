// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_load_server.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "signalbox/envoy/service/load_stats/v3/lrs.pb.h"

namespace signalbox::testing {
namespace {

using envoy::service::load_stats::v3::LoadStatsRequest;
using envoy::service::load_stats::v3::LoadStatsResponse;
using std::chrono::milliseconds;
using std::chrono::seconds;

template <typename Stats>
void add(const std::string& name, const Stats& stats, CallLoad& load) {
  if (stats.num_requests_finished_with_metric() == 0) return;
  MetricSum& sum = load.metrics[name];
  sum.calls += stats.num_requests_finished_with_metric();
  sum.total += stats.total_metric_value();
}

// The load that one report has of one cluster. Sums of 0 are left out.
CallLoad load_of(const envoy::config::endpoint::v3::ClusterStats& cluster) {
  CallLoad load;
  std::uint64_t without_category = cluster.total_dropped_requests();
  for (const auto& drops : cluster.dropped_requests()) {
    if (drops.dropped_count() != 0) load.drops[drops.category()] += drops.dropped_count();
    without_category -= drops.dropped_count();
  }
  if (without_category != 0) load.drops[""] += without_category;
  for (const auto& locality : cluster.upstream_locality_stats()) {
    load.issued += locality.total_issued_requests();
    load.succeeded += locality.total_successful_requests();
    load.failed += locality.total_error_requests();
    for (const auto& metric : locality.load_metric_stats())
      add(metric.metric_name(), metric, load);
    add("cpu_utilization", locality.cpu_utilization(), load);
    add("mem_utilization", locality.mem_utilization(), load);
    add("application_utilization", locality.application_utilization(), load);
  }
  return load;
}

}  // namespace

CallLoad& CallLoad::operator+=(const CallLoad& other) {
  issued += other.issued;
  succeeded += other.succeeded;
  failed += other.failed;
  for (const auto& [category, count] : other.drops)
    drops[category] += count;
  for (const auto& [name, sum] : other.metrics) {
    metrics[name].calls += sum.calls;
    metrics[name].total += sum.total;
  }
  return *this;
}

bool CallLoad::has_all_of(const CallLoad& other) const {
  const auto has_drops = [&](const auto& entry) {
    const auto found = drops.find(entry.first);
    return found != drops.end() && found->second >= entry.second;
  };
  const auto has_metric = [&](const auto& entry) {
    const auto found = metrics.find(entry.first);
    return found != metrics.end() && found->second.calls >= entry.second.calls &&
           found->second.total >= entry.second.total;
  };
  return issued >= other.issued && succeeded >= other.succeeded && failed >= other.failed &&
         std::ranges::all_of(other.drops, has_drops) &&
         std::ranges::all_of(other.metrics, has_metric);
}

std::uint64_t CallLoad::events() const {
  std::uint64_t events = issued + succeeded + failed;
  for (const auto& [category, count] : drops)
    events += count;
  for (const auto& [name, sum] : metrics)
    events += sum.calls;
  return events;
}

class FakeLoadServer::FakeStream final : public actors::AdsTransport::Stream {
 public:
  FakeStream(FakeLoadServer* owner, std::uint64_t number) : owner_(owner), number_(number) {}

  ~FakeStream() override { owner_->streams_.erase(number_); }

  void send(std::string bytes) override {
    Open* open = owner_->find(number_);
    if (open == nullptr) return;
    const Duration delay = owner_->chance_.between(Duration::zero(), milliseconds(20));
    open->last_arrival = std::max(open->last_arrival, owner_->clock_.now() + delay);
    owner_->clock_.after(open->last_arrival - owner_->clock_.now(),
                         [owner = owner_, number = number_, sent = std::move(bytes)] {
                           owner->arrive(number, sent);
                         });
  }

  void read_next() override {
    Open* open = owner_->find(number_);
    if (open == nullptr) return;
    open->is_read = true;
    owner_->clock_.after(Duration::zero(),
                         [owner = owner_, number = number_] { owner->hand_over(number); });
  }

 private:
  FakeLoadServer* owner_;
  std::uint64_t number_;
};

std::unique_ptr<actors::AdsTransport::Stream> FakeLoadServer::open(Events events) {
  complaints_.require(!last_open_ || clock_.now() - *last_open_ >= seconds(1),
                      "at most one new stream of load reports per second [C7]");
  last_open_ = clock_.now();
  const std::uint64_t number = ++next_stream_;
  Open& open = streams_[number];
  open.events = std::move(events);
  open.silent = faults_.fires(Fault::kLoadStreamSilent);
  if (open.silent) {
    clock_.after(faults_.dice(Fault::kLoadStreamSilent).between(seconds(1), seconds(30)),
                 [this, number] { close(number, "keepalive timed out"); });
  }
  const Duration delay = milliseconds(1) + chance_.between(Duration::zero(), milliseconds(20));
  clock_.after(delay, [this, number] {
    if (Open* one = find(number)) one->events.opened();
  });
  return std::make_unique<FakeStream>(this, number);
}

void FakeLoadServer::say(Duration interval) {
  interval_ = interval;
  for (const auto& [number, open] : streams_) {
    if (open.has_node) answer(number);
  }
}

void FakeLoadServer::drop_streams() {
  std::vector<std::uint64_t> all;
  all.reserve(streams_.size());
  for (const auto& [number, open] : streams_)
    all.push_back(number);
  for (const std::uint64_t number : all)
    close(number, "stream reset");
}

void FakeLoadServer::close_silent() {
  std::vector<std::uint64_t> all;
  all.reserve(streams_.size());
  for (const auto& [number, open] : streams_) {
    if (open.silent || open.stopped) all.push_back(number);
  }
  for (const std::uint64_t number : all)
    close(number, "keepalive timed out");
}

FakeLoadServer::Open* FakeLoadServer::find(std::uint64_t stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() || found->second.closed ? nullptr : &found->second;
}

void FakeLoadServer::close(std::uint64_t stream, const std::string& why) {
  Open* open = find(stream);
  if (open == nullptr) return;
  open->closed = true;
  open->events.closed(absl::UnavailableError(why));
}

void FakeLoadServer::arrive(std::uint64_t stream, const std::string& bytes) {
  Open* open = find(stream);
  if (open == nullptr || open->stopped) return;
  if (open->has_node && faults_.fires(Fault::kLoadStreamStops)) {
    open->stopped = true;
    clock_.after(faults_.dice(Fault::kLoadStreamStops).between(seconds(1), seconds(30)),
                 [this, stream] { close(stream, "keepalive timed out"); });
    return;
  }
  open->events.written();
  LoadStatsRequest request;
  complaints_.require(request.ParseFromString(bytes), "a load report can be read");
  complaints_.require(request.has_node() != open->has_node,
                      "the first request has the node, and no other [C1]");
  if (!std::exchange(open->has_node, true) && !open->silent) {
    if (faults_.fires(Fault::kLoadServerLies)) {
      answer_falsely(stream);
    } else {
      answer(stream);
    }
    jump_later(stream);
  }
  std::uint64_t events = 0;
  for (const auto& cluster : request.cluster_stats()) {
    const CallLoad load = load_of(cluster);
    loads_[cluster.cluster_name()] += load;
    events += load.events();
  }
  largest_ = std::max(largest_, events);
}

void FakeLoadServer::answer(std::uint64_t stream) {
  Duration delay = chance_.between(Duration::zero(), milliseconds(20));
  if (faults_.fires(Fault::kLoadServerLate))
    delay = faults_.dice(Fault::kLoadServerLate).between(seconds(1), seconds(20));
  clock_.after(delay, [this, stream] {
    LoadStatsResponse response;
    response.set_send_all_clusters(true);
    response.mutable_load_reporting_interval()->set_seconds(interval_ / seconds(1));
    respond(stream, response.SerializeAsString());
  });
}

// Asks also for a cluster that does not exist, or for an interval that is none, or sends bytes that
// are no message. Always asks for all loads, because the client may forget those that no server
// asks for.
void FakeLoadServer::answer_falsely(std::uint64_t stream) {
  FakeChance& dice = faults_.dice(Fault::kLoadServerLies);
  LoadStatsResponse response;
  if (dice.percent(50)) response.add_clusters("nowhere");
  response.set_send_all_clusters(true);
  response.mutable_load_reporting_interval()->set_seconds(
      dice.one_of(std::vector<std::int64_t>{-1, 0, 1, std::int64_t{1} << 62}));
  if (dice.percent(50)) response.mutable_load_reporting_interval()->set_nanos(-7);
  const bool is_garbage = dice.percent(20);
  respond(stream, is_garbage ? "\xff\xff\xff\xff" : response.SerializeAsString());
  clock_.after(dice.between(seconds(1), seconds(10)), [this, stream] { answer(stream); });
}

// Asks for a report each second, or for none within the hour, and for the usual ones afterwards.
void FakeLoadServer::jump_later(std::uint64_t stream) {
  if (!faults_.fires(Fault::kLoadServerJumps)) return;
  FakeChance& dice = faults_.dice(Fault::kLoadServerJumps);
  LoadStatsResponse response;
  response.set_send_all_clusters(true);
  response.mutable_load_reporting_interval()->set_seconds(dice.percent(50) ? 1 : 3600);
  const Duration first = dice.between(seconds(1), seconds(10));
  clock_.after(first, [this, stream, bytes = response.SerializeAsString()] {
    if (faults_.has(Fault::kLoadServerJumps)) respond(stream, bytes);
  });
  clock_.after(first + dice.between(seconds(1), seconds(10)), [this, stream] { answer(stream); });
}

// Replaces the response that the client has not read yet.
void FakeLoadServer::respond(std::uint64_t stream, std::string bytes) {
  Open* open = find(stream);
  if (open == nullptr) return;
  open->unread = std::move(bytes);
  clock_.after(Duration::zero(), [this, stream] { hand_over(stream); });
}

void FakeLoadServer::hand_over(std::uint64_t stream) {
  Open* open = find(stream);
  if (open == nullptr || !open->is_read || open->unread.empty()) return;
  open->is_read = false;
  open->events.received(std::exchange(open->unread, {}));
}

}  // namespace signalbox::testing
