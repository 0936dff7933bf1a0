// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_json.hpp"

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tools/load/call_code.hpp"

namespace signalbox::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

// --- fields --------------------------------------------------------------------------------------

// One list of fields both writes and reads a struct; it has the order of the file.
template <class Self, class T>
concept Is = std::same_as<std::remove_const_t<Self>, T>;

template <Is<LoadConfiguration> Self, class Visit>
void each_field(Self& of, const Visit& visit) {
  visit("target", of.target);
  visit("method", of.method);
  visit("rate", of.rate);
  visit("arrivals", of.arrivals);
  visit("duration_s", of.duration_s);
  visit("warmup_s", of.warmup_s);
  visit("seed", of.seed);
  visit("call_timeout_s", of.call_timeout_s);
  visit("payload_bytes", of.payload_bytes);
  visit("is_streaming", of.is_streaming);
  visit("sessions", of.sessions);
  visit("processes", of.processes);
  visit("header_names", of.header_names);
  visit("script_file", of.script_file);
  visit("script", of.script);
}

template <Is<LoadValidity> Self, class Visit>
void each_field(Self& of, const Visit& visit) {
  visit("scheduled", of.scheduled);
  visit("sent", of.sent);
  visit("dropped", of.dropped);
  visit("lateness_p50_ns", of.lateness_p50_ns);
  visit("lateness_p99_ns", of.lateness_p99_ns);
  visit("lateness_p999_ns", of.lateness_p999_ns);
  visit("lateness_max_ns", of.lateness_max_ns);
  visit("lateness_limit_ns", of.lateness_limit_ns);
  visit("is_valid", of.is_valid);
  visit("reachable_rate", of.reachable_rate);
  visit("reason", of.reason);
}

template <Is<LoadPlace> Self, class Visit>
void each_field(Self& of, const Visit& visit) {
  visit("cluster", of.cluster);
  visit("priority", of.priority);
}

template <Is<LoadEndpoint> Self, class Visit>
void each_field(Self& of, const Visit& visit) {
  visit("address", of.address);
  visit("place", of.place);
  visit("ok", of.ok);
  visit("failed", of.failed);
}

template <Is<LoadShare> Self, class Visit>
void each_field(Self& of, const Visit& visit) {
  visit("endpoint", of.endpoint);
  visit("place", of.place);
  visit("ok", of.ok);
  visit("failed", of.failed);
}

template <Is<LoadFaultFigures> Self, class Visit>
void each_field(Self& of, const Visit& visit) {
  visit("lost", of.lost);
  visit("first_success_ns", of.first_success_ns);
  visit("recovery_ns", of.recovery_ns);
  visit("baseline_p99_ns", of.baseline_p99_ns);
  visit("sessions_moved", of.sessions_moved);
  visit("failback_errors", of.failback_errors);
}

template <Is<LoadFault> Self, class Visit>
void each_field(Self& of, const Visit& visit) {
  visit("name", of.name);
  visit("verb", of.verb);
  visit("what", of.what);
  visit("planned_ns", of.planned_ns);
  visit("at_ns", of.at_ns);
  visit("is_fault", of.is_fault);
  visit("error", of.error);
}

template <Is<LoadThreshold> Self, class Visit>
void each_field(Self& of, const Visit& visit) {
  visit("text", of.text);
  visit("side", of.side);
  visit("fault", of.fault);
  visit("measured", of.measured);
  visit("limit", of.limit);
  visit("unit", of.unit);
  visit("is_missed", of.is_missed);
}

template <class T>
OrderedJson value_json(const T& value) {
  return value;
}

template <class T>
OrderedJson value_json(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

template <class T>
OrderedJson json_of(const T& from) {
  OrderedJson to = OrderedJson::object();
  each_field(from, [&to](const char* name, const auto& value) { to[name] = value_json(value); });
  return to;
}

template <class T>
OrderedJson list_json(const std::vector<T>& from) {
  OrderedJson to = OrderedJson::array();
  for (const T& one : from)
    to.push_back(json_of(one));
  return to;
}

template <class T>
void read(const OrderedJson& from, const char* name, T& to) {
  to = from.at(name).get<T>();
}

template <class T>
void read(const OrderedJson& from, const char* name, std::optional<T>& to) {
  const OrderedJson& value = from.at(name);
  if (!value.is_null()) to = value.get<T>();
}

template <class T>
T read_one(const OrderedJson& from) {
  T to;
  each_field(to, [&from](const char* name, auto& value) { read(from, name, value); });
  return to;
}

template <class T>
void read_list(const OrderedJson& from, const char* name, std::vector<T>& to) {
  for (const OrderedJson& one : from.at(name))
    to.push_back(read_one<T>(one));
}

// --- codes ---------------------------------------------------------------------------------------

OrderedJson codes_json(const std::map<int, std::uint64_t>& codes) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [code, count] : codes)
    object[code_key(code)] = count;
  return object;
}

std::map<int, std::uint64_t> codes_of(const OrderedJson& object) {
  std::map<int, std::uint64_t> codes;
  for (const auto& [name, count] : object.items()) {
    if (const auto code = code_of_key(name)) codes[*code] = count.get<std::uint64_t>();
  }
  return codes;
}

// --- writing -------------------------------------------------------------------------------------

OrderedJson histogram_json(const LatencyHistogram& histogram) {
  OrderedJson buckets = OrderedJson::array();
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

OrderedJson bin_json(const LoadBin& bin) {
  OrderedJson latencies = OrderedJson::array();
  for (const LoadBucket& bucket : bin.latencies)
    latencies.push_back({bucket.bucket, bucket.count});
  return {{"scheduled", bin.scheduled},
          {"sent", bin.sent},
          {"codes", codes_json(bin.codes)},
          {"shares", list_json(bin.shares)},
          {"p50_ns", bin.p50_ns},
          {"p99_ns", bin.p99_ns},
          {"max_ns", bin.max_ns},
          {"latencies", std::move(latencies)}};
}

// --- reading -------------------------------------------------------------------------------------

absl::Status read_histogram(const OrderedJson& from, LatencyHistogram& to) {
  for (const OrderedJson& bucket : from.at("buckets")) {
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

LoadBin bin_of(const OrderedJson& from) {
  LoadBin to;
  read(from, "scheduled", to.scheduled);
  read(from, "sent", to.sent);
  to.codes = codes_of(from.at("codes"));
  read_list(from, "shares", to.shares);
  read(from, "p50_ns", to.p50_ns);
  read(from, "p99_ns", to.p99_ns);
  read(from, "max_ns", to.max_ns);
  for (const OrderedJson& bucket : from.at("latencies"))
    to.latencies.push_back(
        {.bucket = bucket.at(0).get<std::uint32_t>(), .count = bucket.at(1).get<std::uint64_t>()});
  return to;
}

// Checks that every index is within its list, because renderers use the indexes unchecked.
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

absl::StatusOr<LoadSide> side_of(const OrderedJson& from) {
  LoadSide to;
  read(from, "name", to.name);
  to.validity = read_one<LoadValidity>(from.at("validity"));
  read(from, "ok", to.ok);
  read(from, "failed", to.failed);
  read(from, "unanswered", to.unanswered);
  to.codes = codes_of(from.at("codes"));
  read(from, "messages", to.messages);
  for (const auto& [name, histogram] : {std::pair{"from_due", &to.from_due},
                                        {"from_sent", &to.from_sent},
                                        {"failed_from_due", &to.failed_from_due},
                                        {"first_message", &to.first_message},
                                        {"closed_loop", &to.closed_loop}}) {
    if (auto status = read_histogram(from.at(name), *histogram); !status.ok()) return status;
  }
  read(from, "stream_messages", to.stream_messages);
  read(from, "closed_loop_skipped", to.closed_loop_skipped);
  read_list(from, "places", to.places);
  read_list(from, "endpoints", to.endpoints);
  for (const OrderedJson& bin : from.at("bins"))
    to.bins.push_back(bin_of(bin));
  read_list(from, "faults", to.faults);
  read(from, "cpu_per_call_ns", to.cpu_per_call_ns);
  read(from, "engine_cpu_per_call_ns", to.engine_cpu_per_call_ns);
  if (auto status = check_indexes(to); !status.ok()) return status;
  return to;
}

absl::StatusOr<LoadReport> report_of(const OrderedJson& from) {
  LoadReport to;
  read(from, "version", to.version);
  if (to.version != kLoadReportVersion)
    return absl::InvalidArgumentError(absl::StrCat("the report has version ",
                                                   to.version,
                                                   "; this program reads version ",
                                                   kLoadReportVersion));
  read(from, "signalbox_version", to.signalbox_version);
  to.configuration = read_one<LoadConfiguration>(from.at("configuration"));
  read(from, "started_unix_ms", to.started_unix_ms);
  read(from, "ran_s", to.ran_s);
  read(from, "is_cut", to.is_cut);
  read(from, "merged", to.merged);
  read_list(from, "faults", to.faults);
  for (const OrderedJson& side : from.at("sides")) {
    auto read_side = side_of(side);
    if (!read_side.ok()) return read_side.status();
    if (read_side->faults.size() != to.faults.size())
      return absl::InvalidArgumentError(
          absl::StrCat("side ", read_side->name, " has figures of another number of faults"));
    to.sides.push_back(*std::move(read_side));
  }
  read_list(from, "thresholds", to.thresholds);
  read(from, "notes", to.notes);
  read(from, "exit_status", to.exit_status);
  return to;
}

// Exceptions of the JSON library become errors here.
template <class T, class Read>
absl::StatusOr<T> read_text(absl::string_view text, const char* what, Read read_it) {
  try {
    return read_it(OrderedJson::parse(text.begin(), text.end()));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not ", what, ": ", error.what()));
  }
}

}  // namespace

nlohmann::ordered_json load_side_json(const LoadSide& side) {
  OrderedJson bins = OrderedJson::array();
  for (const LoadBin& bin : side.bins)
    bins.push_back(bin_json(bin));
  return {{"name", side.name},
          {"validity", json_of(side.validity)},
          {"ok", side.ok},
          {"failed", side.failed},
          {"unanswered", side.unanswered},
          {"codes", codes_json(side.codes)},
          {"messages", side.messages},
          {"from_due", histogram_json(side.from_due)},
          {"from_sent", histogram_json(side.from_sent)},
          {"failed_from_due", histogram_json(side.failed_from_due)},
          {"stream_messages", side.stream_messages},
          {"first_message", histogram_json(side.first_message)},
          {"closed_loop", histogram_json(side.closed_loop)},
          {"closed_loop_skipped", side.closed_loop_skipped},
          {"places", list_json(side.places)},
          {"endpoints", list_json(side.endpoints)},
          {"bins", std::move(bins)},
          {"faults", list_json(side.faults)},
          {"cpu_per_call_ns", side.cpu_per_call_ns},
          {"engine_cpu_per_call_ns", side.engine_cpu_per_call_ns}};
}

nlohmann::ordered_json load_report_json(const LoadReport& report) {
  OrderedJson sides = OrderedJson::array();
  for (const LoadSide& side : report.sides)
    sides.push_back(load_side_json(side));
  return {{"version", report.version},
          {"signalbox_version", report.signalbox_version},
          {"configuration", json_of(report.configuration)},
          {"started_unix_ms", report.started_unix_ms},
          {"ran_s", report.ran_s},
          {"is_cut", report.is_cut},
          {"merged", report.merged},
          {"faults", list_json(report.faults)},
          {"sides", std::move(sides)},
          {"thresholds", list_json(report.thresholds)},
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
