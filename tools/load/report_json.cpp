// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_json.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace signalbox::tools {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
std::optional<T> optional_of(const Json& from, const char* name) {
  const Json& value = from.at(name);
  if (value.is_null()) return std::nullopt;
  return value.get<T>();
}

Json codes_json(const std::map<int, std::uint64_t>& codes) {
  Json object = Json::object();
  for (const auto& [code, count] : codes)
    object[std::to_string(code)] = count;
  return object;
}

std::map<int, std::uint64_t> codes_of(const Json& object) {
  std::map<int, std::uint64_t> codes;
  for (const auto& [name, count] : object.items()) {
    int code = 0;
    if (absl::SimpleAtoi(name, &code)) codes[code] = count.get<std::uint64_t>();
  }
  return codes;
}

// --- writing -------------------------------------------------------------------------------------

Json histogram_json(const LatencyHistogram& histogram) {
  Json buckets = Json::array();
  for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
    if (histogram.counts()[i] > 0) buckets.push_back({i, histogram.counts()[i]});
  }
  return {{"count", histogram.count()},
          {"min_ns", histogram.min()},
          {"max_ns", histogram.max()},
          {"sum_ns", histogram.sum()},
          {"p50_ns", histogram.percentile(50)},
          {"p90_ns", histogram.percentile(90)},
          {"p95_ns", histogram.percentile(95)},
          {"p99_ns", histogram.percentile(99)},
          {"p999_ns", histogram.percentile(99.9)},
          {"buckets", std::move(buckets)}};
}

Json configuration_json(const LoadConfiguration& from) {
  return {{"target", from.target},
          {"method", from.method},
          {"rate", from.rate},
          {"arrivals", from.arrivals},
          {"duration_s", from.duration_s},
          {"warmup_s", from.warmup_s},
          {"seed", from.seed},
          {"call_timeout_s", from.call_timeout_s},
          {"payload_bytes", from.payload_bytes},
          {"sessions", from.sessions},
          {"header_names", from.header_names},
          {"script_file", from.script_file},
          {"script", from.script}};
}

Json validity_json(const LoadValidity& from) {
  return {{"scheduled", from.scheduled},
          {"sent", from.sent},
          {"dropped", from.dropped},
          {"lateness_p50_ns", from.lateness_p50_ns},
          {"lateness_p99_ns", from.lateness_p99_ns},
          {"lateness_p999_ns", from.lateness_p999_ns},
          {"lateness_max_ns", from.lateness_max_ns},
          {"lateness_limit_ns", from.lateness_limit_ns},
          {"is_valid", from.is_valid},
          {"reachable_rate", from.reachable_rate},
          {"reason", from.reason}};
}

Json bin_json(const LoadBin& bin) {
  Json shares = Json::array();
  for (const LoadShare& share : bin.shares)
    shares.push_back({{"endpoint", share.endpoint},
                      {"place", share.place},
                      {"ok", share.ok},
                      {"failed", share.failed}});
  Json latencies = Json::array();
  for (const LoadBucket& bucket : bin.latencies)
    latencies.push_back({bucket.bucket, bucket.count});
  return {{"scheduled", bin.scheduled},
          {"sent", bin.sent},
          {"codes", codes_json(bin.codes)},
          {"shares", std::move(shares)},
          {"p50_ns", bin.p50_ns},
          {"p99_ns", bin.p99_ns},
          {"max_ns", bin.max_ns},
          {"latencies", std::move(latencies)}};
}

Json figures_json(const LoadFaultFigures& from) {
  return {{"lost", from.lost},
          {"first_success_ns", optional_json(from.first_success_ns)},
          {"recovery_ns", optional_json(from.recovery_ns)},
          {"baseline_p99_ns", from.baseline_p99_ns},
          {"sessions_moved", from.sessions_moved},
          {"failback_errors", from.failback_errors}};
}

Json fault_json(const LoadFault& fault) {
  return {{"name", fault.name},
          {"verb", fault.verb},
          {"what", fault.what},
          {"planned_ns", fault.planned_ns},
          {"at_ns", fault.at_ns},
          {"is_fault", fault.is_fault},
          {"error", fault.error}};
}

Json threshold_json(const LoadThreshold& from) {
  return {{"text", from.text},
          {"side", from.side},
          {"fault", from.fault},
          {"measured", optional_json(from.measured)},
          {"limit", from.limit},
          {"unit", from.unit},
          {"is_missed", from.is_missed}};
}

// --- reading -------------------------------------------------------------------------------------

template <class T>
void read(const Json& from, const char* name, T& to) {
  to = from.at(name).get<T>();
}

absl::Status read_histogram(const Json& from, LatencyHistogram& to) {
  for (const Json& bucket : from.at("buckets")) {
    const auto index = bucket.at(0).get<std::size_t>();
    if (index >= LatencyHistogram::kBuckets)
      return absl::InvalidArgumentError(absl::StrCat(
          "a histogram has bucket ", index, "; the last one is ", LatencyHistogram::kBuckets - 1));
    to.add_bucket(index, bucket.at(1).get<std::uint64_t>());
  }
  if (to.count() > 0)
    to.add_extremes(from.at("min_ns").get<std::uint64_t>(),
                    from.at("max_ns").get<std::uint64_t>(),
                    from.at("sum_ns").get<std::uint64_t>());
  return absl::OkStatus();
}

LoadConfiguration configuration_of(const Json& from) {
  LoadConfiguration to;
  read(from, "target", to.target);
  read(from, "method", to.method);
  read(from, "rate", to.rate);
  read(from, "arrivals", to.arrivals);
  read(from, "duration_s", to.duration_s);
  read(from, "warmup_s", to.warmup_s);
  read(from, "seed", to.seed);
  read(from, "call_timeout_s", to.call_timeout_s);
  read(from, "payload_bytes", to.payload_bytes);
  read(from, "sessions", to.sessions);
  read(from, "header_names", to.header_names);
  read(from, "script_file", to.script_file);
  read(from, "script", to.script);
  return to;
}

LoadValidity validity_of(const Json& from) {
  LoadValidity to;
  read(from, "scheduled", to.scheduled);
  read(from, "sent", to.sent);
  read(from, "dropped", to.dropped);
  read(from, "lateness_p50_ns", to.lateness_p50_ns);
  read(from, "lateness_p99_ns", to.lateness_p99_ns);
  read(from, "lateness_p999_ns", to.lateness_p999_ns);
  read(from, "lateness_max_ns", to.lateness_max_ns);
  read(from, "lateness_limit_ns", to.lateness_limit_ns);
  read(from, "is_valid", to.is_valid);
  read(from, "reachable_rate", to.reachable_rate);
  read(from, "reason", to.reason);
  return to;
}

LoadBin bin_of(const Json& from) {
  LoadBin to;
  read(from, "scheduled", to.scheduled);
  read(from, "sent", to.sent);
  to.codes = codes_of(from.at("codes"));
  for (const Json& share : from.at("shares")) {
    LoadShare& added = to.shares.emplace_back();
    read(share, "endpoint", added.endpoint);
    read(share, "place", added.place);
    read(share, "ok", added.ok);
    read(share, "failed", added.failed);
  }
  read(from, "p50_ns", to.p50_ns);
  read(from, "p99_ns", to.p99_ns);
  read(from, "max_ns", to.max_ns);
  for (const Json& bucket : from.at("latencies"))
    to.latencies.push_back(
        {.bucket = bucket.at(0).get<std::uint32_t>(), .count = bucket.at(1).get<std::uint64_t>()});
  return to;
}

LoadFaultFigures figures_of(const Json& from) {
  LoadFaultFigures to;
  read(from, "lost", to.lost);
  to.first_success_ns = optional_of<std::int64_t>(from, "first_success_ns");
  to.recovery_ns = optional_of<std::int64_t>(from, "recovery_ns");
  read(from, "baseline_p99_ns", to.baseline_p99_ns);
  read(from, "sessions_moved", to.sessions_moved);
  read(from, "failback_errors", to.failback_errors);
  return to;
}

LoadFault fault_of(const Json& from) {
  LoadFault to;
  read(from, "name", to.name);
  read(from, "verb", to.verb);
  read(from, "what", to.what);
  read(from, "planned_ns", to.planned_ns);
  read(from, "at_ns", to.at_ns);
  read(from, "is_fault", to.is_fault);
  read(from, "error", to.error);
  return to;
}

LoadThreshold threshold_of(const Json& from) {
  LoadThreshold to;
  read(from, "text", to.text);
  read(from, "side", to.side);
  read(from, "fault", to.fault);
  to.measured = optional_of<double>(from, "measured");
  read(from, "limit", to.limit);
  read(from, "unit", to.unit);
  read(from, "is_missed", to.is_missed);
  return to;
}

// Indexes lead into lists of the side: a renderer relies on them.
absl::Status check_indexes(const LoadSide& side) {
  const auto wrong = [&side](const char* what) {
    return absl::InvalidArgumentError(
        absl::StrCat("side ", side.name, ": ", what, " is beyond the end of its list"));
  };
  for (const LoadEndpoint& endpoint : side.endpoints) {
    if (endpoint.place >= side.places.size()) return wrong("the place of an endpoint");
  }
  for (const LoadBin& bin : side.bins) {
    for (const LoadShare& share : bin.shares) {
      if (share.endpoint >= side.endpoints.size()) return wrong("the endpoint of a share");
      if (share.place >= side.places.size()) return wrong("the place of a share");
    }
    for (const LoadBucket& bucket : bin.latencies) {
      if (bucket.bucket >= LatencyHistogram::kBuckets) return wrong("the bucket of a bin");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadSide> side_of(const Json& from) {
  LoadSide to;
  read(from, "name", to.name);
  to.validity = validity_of(from.at("validity"));
  read(from, "ok", to.ok);
  read(from, "failed", to.failed);
  read(from, "unanswered", to.unanswered);
  to.codes = codes_of(from.at("codes"));
  read(from, "messages", to.messages);
  for (const auto& [name, histogram] : {std::pair{"from_due", &to.from_due},
                                        {"from_sent", &to.from_sent},
                                        {"failed_from_due", &to.failed_from_due},
                                        {"closed_loop", &to.closed_loop}}) {
    if (auto status = read_histogram(from.at(name), *histogram); !status.ok()) return status;
  }
  read(from, "closed_loop_skipped", to.closed_loop_skipped);
  for (const Json& place : from.at("places")) {
    LoadPlace& added = to.places.emplace_back();
    read(place, "cluster", added.cluster);
    added.priority = optional_of<std::uint32_t>(place, "priority");
  }
  for (const Json& endpoint : from.at("endpoints")) {
    LoadEndpoint& added = to.endpoints.emplace_back();
    read(endpoint, "address", added.address);
    read(endpoint, "place", added.place);
    read(endpoint, "ok", added.ok);
    read(endpoint, "failed", added.failed);
  }
  for (const Json& bin : from.at("bins"))
    to.bins.push_back(bin_of(bin));
  for (const Json& figures : from.at("faults"))
    to.faults.push_back(figures_of(figures));
  read(from, "cpu_per_call_ns", to.cpu_per_call_ns);
  read(from, "engine_cpu_per_call_ns", to.engine_cpu_per_call_ns);
  if (auto status = check_indexes(to); !status.ok()) return status;
  return to;
}

absl::StatusOr<LoadReport> report_of(const Json& from) {
  LoadReport to;
  read(from, "version", to.version);
  if (to.version != kLoadReportVersion)
    return absl::InvalidArgumentError(absl::StrCat("the report has version ",
                                                   to.version,
                                                   "; this program reads version ",
                                                   kLoadReportVersion));
  read(from, "signalbox_version", to.signalbox_version);
  to.configuration = configuration_of(from.at("configuration"));
  read(from, "started_unix_ms", to.started_unix_ms);
  read(from, "ran_s", to.ran_s);
  read(from, "is_cut", to.is_cut);
  read(from, "merged", to.merged);
  for (const Json& fault : from.at("faults"))
    to.faults.push_back(fault_of(fault));
  for (const Json& side : from.at("sides")) {
    auto read_side = side_of(side);
    if (!read_side.ok()) return read_side.status();
    if (read_side->faults.size() != to.faults.size())
      return absl::InvalidArgumentError(
          absl::StrCat("side ", read_side->name, " has figures of another number of faults"));
    to.sides.push_back(*std::move(read_side));
  }
  for (const Json& threshold : from.at("thresholds"))
    to.thresholds.push_back(threshold_of(threshold));
  read(from, "notes", to.notes);
  read(from, "exit_status", to.exit_status);
  return to;
}

// The library's exceptions end here.
template <class T, class Read>
absl::StatusOr<T> read_text(absl::string_view text, const char* what, Read read_it) {
  try {
    return read_it(Json::parse(text.begin(), text.end()));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not ", what, ": ", error.what()));
  }
}

}  // namespace

nlohmann::ordered_json load_side_json(const LoadSide& side) {
  Json places = Json::array();
  for (const LoadPlace& place : side.places)
    places.push_back({{"cluster", place.cluster}, {"priority", optional_json(place.priority)}});
  Json endpoints = Json::array();
  for (const LoadEndpoint& endpoint : side.endpoints)
    endpoints.push_back({{"address", endpoint.address},
                         {"place", endpoint.place},
                         {"ok", endpoint.ok},
                         {"failed", endpoint.failed}});
  Json bins = Json::array();
  for (const LoadBin& bin : side.bins)
    bins.push_back(bin_json(bin));
  Json faults = Json::array();
  for (const LoadFaultFigures& figures : side.faults)
    faults.push_back(figures_json(figures));
  return {{"name", side.name},
          {"validity", validity_json(side.validity)},
          {"ok", side.ok},
          {"failed", side.failed},
          {"unanswered", side.unanswered},
          {"codes", codes_json(side.codes)},
          {"messages", side.messages},
          {"from_due", histogram_json(side.from_due)},
          {"from_sent", histogram_json(side.from_sent)},
          {"failed_from_due", histogram_json(side.failed_from_due)},
          {"closed_loop", histogram_json(side.closed_loop)},
          {"closed_loop_skipped", side.closed_loop_skipped},
          {"places", std::move(places)},
          {"endpoints", std::move(endpoints)},
          {"bins", std::move(bins)},
          {"faults", std::move(faults)},
          {"cpu_per_call_ns", side.cpu_per_call_ns},
          {"engine_cpu_per_call_ns", side.engine_cpu_per_call_ns}};
}

nlohmann::ordered_json load_report_json(const LoadReport& report) {
  Json faults = Json::array();
  for (const LoadFault& fault : report.faults)
    faults.push_back(fault_json(fault));
  Json sides = Json::array();
  for (const LoadSide& side : report.sides)
    sides.push_back(load_side_json(side));
  Json thresholds = Json::array();
  for (const LoadThreshold& threshold : report.thresholds)
    thresholds.push_back(threshold_json(threshold));
  return {{"version", report.version},
          {"signalbox_version", report.signalbox_version},
          {"configuration", configuration_json(report.configuration)},
          {"started_unix_ms", report.started_unix_ms},
          {"ran_s", report.ran_s},
          {"is_cut", report.is_cut},
          {"merged", report.merged},
          {"faults", std::move(faults)},
          {"sides", std::move(sides)},
          {"thresholds", std::move(thresholds)},
          {"notes", report.notes},
          {"exit_status", report.exit_status}};
}

absl::StatusOr<LoadReport> read_load_report(absl::string_view text) {
  return read_text<LoadReport>(text, "a report of signalbox load", report_of);
}

absl::StatusOr<LoadSide> read_load_side(absl::string_view text) {
  return read_text<LoadSide>(text, "a side of a report", side_of);
}

}  // namespace signalbox::tools
