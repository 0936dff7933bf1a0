// SPDX-License-Identifier: Apache-2.0
#include "tools/load/recorder.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "tools/load/bins.hpp"
#include "tools/load/call_code.hpp"
#include "tools/load/tallies.hpp"

namespace signalbox::tools {
namespace {

constexpr const char* kUnknown = "unknown";

std::size_t bins_in(std::chrono::nanoseconds duration) {
  return static_cast<std::size_t>((duration.count() + kLoadBinNs - 1) / kLoadBinNs);
}

void add_latency(LoadBin& bin, std::uint64_t latency_ns) {
  const auto bucket = static_cast<std::uint32_t>(LatencyHistogram::bucket_of(latency_ns));
  const auto at = std::ranges::lower_bound(bin.latencies, bucket, {}, &LoadBucket::bucket);
  if (at != bin.latencies.end() && at->bucket == bucket) {
    ++at->count;
  } else {
    bin.latencies.insert(at, {.bucket = bucket, .count = 1});
  }
  bin.max_ns = std::max(bin.max_ns, latency_ns);
}

LoadShare& share_at(LoadBin& bin, std::uint32_t endpoint, std::uint32_t place) {
  for (LoadShare& share : bin.shares) {
    if (share.endpoint == endpoint && share.place == place) return share;
  }
  return bin.shares.emplace_back(LoadShare{.endpoint = endpoint, .place = place});
}

std::uint64_t not_negative(std::int64_t ns) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, ns));
}

// The highest rate of a whole second; of a shorter run, the rate on average.
double reachable_rate(const std::vector<std::uint64_t>& by_second, double ran_s) {
  std::uint64_t all = 0;
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < by_second.size(); ++i) {
    all += by_second[i];
    if (static_cast<double>(i + 1) <= ran_s) most = std::max(most, by_second[i]);
  }
  if (most > 0) return static_cast<double>(most);
  return ran_s > 0 ? static_cast<double>(all) / ran_s : 0;
}

}  // namespace

LoadRecorder::LoadRecorder(std::string side,
                           std::size_t sessions,
                           std::chrono::nanoseconds duration)
    : analysis_(sessions) {
  side_.name = std::move(side);
  side_.places.push_back({.cluster = kUnknown});
  side_.bins.resize(bins_in(duration));
  side_.endpoints.emplace_back();
  endpoints_.emplace_back();
}

void LoadRecorder::add_endpoint(std::string address) {
  Endpoint endpoint;
  if (const auto known = known_places_.find(address); known != known_places_.end())
    endpoint = {.place = index_of(known->second.place), .rank = known->second.rank};
  endpoints_.push_back(endpoint);
  side_.endpoints.push_back({.address = std::move(address), .place = endpoint.place});
}

void LoadRecorder::place(const std::string& address, const RankedPlace& place) {
  RankedPlace& known = known_places_[address];
  if (known == place) return;
  known = place;
  for (std::size_t i = 1; i < endpoints_.size(); ++i) {
    if (side_.endpoints[i].address != address) continue;
    endpoints_[i] = {.place = index_of(place.place), .rank = place.rank};
    side_.endpoints[i].place = endpoints_[i].place;
  }
}

void LoadRecorder::act_began(std::int64_t at_ns, bool is_fault) {
  acts_.push_back(at_ns);
  analysis_.fault_began(at_ns, is_fault);
}

void LoadRecorder::sent(const SentCall& call) {
  if (call.due_ns < 0) return;
  LoadBin& bin = bin_of(call.due_ns);
  ++bin.scheduled;
  ++side_.validity.scheduled;
  if (call.is_dropped) {
    ++side_.validity.dropped;
    ++second_.dropped;
    return;
  }
  ++bin.sent;
  ++side_.validity.sent;
  ++second_.sent;
  lateness_.record(not_negative(call.sent_ns - call.due_ns));
  const auto second = static_cast<std::size_t>(not_negative(call.sent_ns) / kSecondNs);
  if (second >= sent_by_second_.size()) sent_by_second_.resize(second + 1);
  ++sent_by_second_[second];
}

void LoadRecorder::ended(const EndedCall& call) {
  if (call.due_ns < 0) return;
  const std::uint64_t from_due = not_negative(call.ended_ns - call.due_ns);
  const std::uint64_t from_sent = not_negative(call.ended_ns - call.sent_ns);
  const bool is_ok = !is_failure(call.code);
  LoadBin& bin = bin_of(call.due_ns);
  ++bin.codes[call.code];
  ++side_.codes[call.code];
  LoadEndpoint& endpoint = side_.endpoints[call.endpoint];
  LoadShare& share = share_at(bin, call.endpoint, endpoints_[call.endpoint].place);
  ++(is_ok ? share.ok : share.failed);
  ++(is_ok ? endpoint.ok : endpoint.failed);
  ++(is_ok ? side_.ok : side_.failed);
  ++(is_ok ? second_.ok : second_.failed);
  if (is_ok) {
    add_latency(bin, from_due);
    side_.from_due.record(from_due);
    side_.from_sent.record(from_sent);
    second_latency_.record(from_due);
    if (call.is_closed_loop) side_.closed_loop.record(from_sent);
    if (call.stream_messages > 0)
      side_.first_message.record(not_negative(call.first_message_ns - call.due_ns));
  } else {
    side_.failed_from_due.record(from_due);
  }
  side_.stream_messages += call.stream_messages;
  if (call.is_closed_loop) ++closed_loop_;
  analysis_.ended(call, endpoints_[call.endpoint].rank);
}

LoadSecond LoadRecorder::take_second() {
  LoadSecond taken = std::exchange(second_, {});
  taken.p50_ns = second_latency_.percentile(50);
  taken.p99_ns = second_latency_.percentile(99);
  taken.max_ns = second_latency_.max();
  taken.latencies = buckets_of(second_latency_);
  second_latency_ = {};
  return taken;
}

LoadSide LoadRecorder::finish(std::chrono::nanoseconds ran,
                              std::uint64_t lateness_limit_ns,
                              const std::map<std::string, std::uint64_t>& messages) {
  side_.bins.resize(std::min(side_.bins.size(), bins_in(ran)));
  for (LoadBin& bin : side_.bins)
    finish_percentiles(bin);
  side_.unanswered = side_.validity.sent - std::min(side_.validity.sent, side_.ok + side_.failed);
  side_.closed_loop_skipped =
      side_.ok + side_.failed - std::min(side_.ok + side_.failed, closed_loop_);
  LoadValidity& validity = side_.validity;
  validity.lateness_p50_ns = lateness_.percentile(50);
  validity.lateness_p99_ns = lateness_.percentile(99);
  validity.lateness_p999_ns = lateness_.percentile(99.9);
  validity.lateness_max_ns = lateness_.max();
  validity.lateness_limit_ns = lateness_limit_ns;
  validity.reachable_rate =
      reachable_rate(sent_by_second_, std::chrono::duration<double>(ran).count());
  judge(validity);
  side_.faults = analysis_.figures();
  for (std::size_t i = 0; i < acts_.size(); ++i) {
    side_.faults[i].baseline_p99_ns = baseline_of(side_.bins, acts_[i]);
    side_.faults[i].recovery_ns =
        recovery_of(side_.bins, acts_[i], ran.count(), side_.faults[i].baseline_p99_ns);
  }
  side_.messages = most_frequent(messages);
  return std::move(side_);
}

LoadBin& LoadRecorder::bin_of(std::int64_t due_ns) {
  const auto index = static_cast<std::size_t>(due_ns / kLoadBinNs);
  if (index >= side_.bins.size()) side_.bins.resize(index + 1);
  return side_.bins[index];
}

std::uint32_t LoadRecorder::index_of(const LoadPlace& place) {
  const auto found = std::ranges::find(side_.places, place);
  const auto index = static_cast<std::uint32_t>(found - side_.places.begin());
  if (found == side_.places.end()) side_.places.push_back(place);
  return index;
}

void judge(LoadValidity& validity) {
  std::string reason;
  const auto scheduled = static_cast<double>(std::max<std::uint64_t>(1, validity.scheduled));
  const auto unsent = static_cast<double>(validity.scheduled - validity.sent);
  if (validity.scheduled == 0) {
    reason = "no call was due";
  } else if (unsent / scheduled > kMostUnsentShare) {
    reason = absl::StrFormat("%d of %d calls were not sent in time; at most %g %% may be",
                             validity.scheduled - validity.sent,
                             validity.scheduled,
                             100 * kMostUnsentShare);
  } else if (validity.lateness_p99_ns > validity.lateness_limit_ns) {
    reason = absl::StrFormat("calls were sent up to %.3f ms late (p99); at most %.3f ms may be",
                             static_cast<double>(validity.lateness_p99_ns) / 1e6,
                             static_cast<double>(validity.lateness_limit_ns) / 1e6);
  }
  validity.is_valid = reason.empty();
  if (!validity.is_valid && validity.scheduled > 0)
    absl::StrAppendFormat(
        &reason, "; this generator could send %.0f calls a second", validity.reachable_rate);
  validity.reason = std::move(reason);
}

}  // namespace signalbox::tools
