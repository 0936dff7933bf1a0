// SPDX-License-Identifier: Apache-2.0
#include "tools/load/live_counts.hpp"

#include <algorithm>

#include "tools/load/call_code.hpp"

namespace signalbox::tools {
namespace {

using Json = nlohmann::json;

Json times_json(const LiveTimes& times) {
  return {{"buckets", times.buckets}, {"sum_ns", times.sum_ns}};
}

LiveTimes times_of_json(const Json& json) {
  LiveTimes times;
  json.at("buckets").get_to(times.buckets);
  json.at("sum_ns").get_to(times.sum_ns);
  return times;
}

}  // namespace

void LiveTimes::record(std::int64_t ns) {
  const std::chrono::nanoseconds time(std::max<std::int64_t>(0, ns));
  const auto bound = std::ranges::lower_bound(kLiveBounds, time);
  ++buckets[static_cast<std::size_t>(bound - kLiveBounds.begin())];
  sum_ns += static_cast<std::uint64_t>(time.count());
}

void LiveTimes::add(const LiveTimes& other) {
  for (std::size_t i = 0; i < buckets.size(); ++i)
    buckets[i] += other.buckets[i];
  sum_ns += other.sum_ns;
}

void LiveCounts::add(const SentCall& call) {
  if (call.due_ns < 0) return;
  ++scheduled;
  if (call.is_dropped) {
    ++dropped;
    return;
  }
  ++sent;
  lateness.record(call.sent_ns - call.due_ns);
}

void LiveCounts::add(const EndedCall& call) {
  if (call.due_ns < 0) return;
  ++codes[call.code];
  (is_failure(call.code) ? failed : ok).record(call.ended_ns - call.due_ns);
}

void LiveCounts::add(const LiveCounts& other) {
  scheduled += other.scheduled;
  sent += other.sent;
  dropped += other.dropped;
  for (const auto& [code, count] : other.codes)
    codes[code] += count;
  ok.add(other.ok);
  failed.add(other.failed);
  lateness.add(other.lateness);
}

std::uint64_t LiveCounts::in_flight() const {
  std::uint64_t ended = 0;
  for (const auto& [code, count] : codes)
    ended += count;
  // An engine's two rings are read one after the other, so an end may be known before its call.
  return sent - std::min(sent, ended);
}

Json live_counts_json(const LiveCounts& counts) {
  Json codes = Json::array();
  for (const auto& [code, count] : counts.codes)
    codes.push_back({code, count});
  return {{"scheduled", counts.scheduled},
          {"sent", counts.sent},
          {"dropped", counts.dropped},
          {"codes", std::move(codes)},
          {"ok", times_json(counts.ok)},
          {"failed", times_json(counts.failed)},
          {"lateness", times_json(counts.lateness)}};
}

LiveCounts live_counts_of_json(const Json& json) {
  LiveCounts counts;
  json.at("scheduled").get_to(counts.scheduled);
  json.at("sent").get_to(counts.sent);
  json.at("dropped").get_to(counts.dropped);
  for (const Json& code : json.at("codes"))
    counts.codes[code.at(0).get<int>()] = code.at(1).get<std::uint64_t>();
  counts.ok = times_of_json(json.at("ok"));
  counts.failed = times_of_json(json.at("failed"));
  counts.lateness = times_of_json(json.at("lateness"));
  return counts;
}

}  // namespace signalbox::tools
