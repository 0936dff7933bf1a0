// SPDX-License-Identifier: Apache-2.0
//
// LoadReport — all that a run of `signalbox load` found, as one plain value.
//
//   engine, fault analysis, thresholds ─▶ [LoadReport] ─▶ table, JSON, HTML, JUnit, .hdr
//                                              ▲──────── merge of several JSON files
//
// Times within the run are nanoseconds since the beginning of the measured part: the warm-up is
// before 0. Latencies are nanoseconds. A renderer rounds; the report does not. Renderers derive all
// shares, rates and percentiles that they show from these numbers, so all renderers agree.
//
// A call *belongs to* the moment when it was due, whenever it was sent or ended.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/load/histogram.hpp"

namespace signalbox::tools {

/// The version of the JSON form. It rises when a member is removed or changes its meaning.
inline constexpr int kLoadReportVersion = 1;

/// The width of a bin.
inline constexpr std::int64_t kLoadBinNs = 100'000'000;

/// A second, and how many bins it has.
inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::size_t kBinsInSecond = kSecondNs / kLoadBinNs;

/// A measurement is not valid if its lateness or its share of unsent calls is greater.
inline constexpr std::uint64_t kMostLatenessP99Ns = 1'000'000;  // Unless --max-lateness differs.
inline constexpr double kMostUnsentShare = 0.001;

/// The number of callers that LoadSide::closed_loop assumes: the default of the load tool ghz.
inline constexpr std::int64_t kClosedLoopCallers = 50;

struct LoadConfiguration {
  std::string target;    ///< "xds:///orders"
  std::string method;    ///< "/orders.v1.Orders/Place"; of HTTP requests "GET /orders/7".
  std::string rate;      ///< As it was given: "100..2000/30s".
  std::string arrivals;  ///< "poisson" or "even".
  double duration_s = 0;
  double warmup_s = 0;
  std::uint64_t seed = 0;
  double call_timeout_s = 0;
  std::uint64_t payload_bytes = 0;
  bool is_streaming = false;              ///< The method is server-streaming.
  std::uint32_t sessions = 0;             ///< Cookie jars; 0: calls have no session.
  std::uint32_t processes = 1;            ///< Processes of each side, which share its calls.
  std::vector<std::string> header_names;  ///< Without their values, which may be secrets.
  std::string script_file;                ///< Empty: no script.
  std::string script;                     ///< The script's text.
};

/// How well the generator kept to its schedule.
struct LoadValidity {
  std::uint64_t scheduled = 0;  ///< Calls that were due within the measured part.
  std::uint64_t sent = 0;
  /// Due, and never sent: too many calls were in flight, or the call's timeout had passed.
  std::uint64_t dropped = 0;
  /// Lateness is the time from when a call was due until it was sent.
  std::uint64_t lateness_p50_ns = 0;
  std::uint64_t lateness_p99_ns = 0;
  std::uint64_t lateness_p999_ns = 0;
  std::uint64_t lateness_max_ns = 0;
  /// The limit for the p99 (--max-lateness).
  std::uint64_t lateness_limit_ns = kMostLatenessP99Ns;
  bool is_valid = true;
  /// The most calls sent in one second of the run; in a run of less than a second, the average
  /// rate. Shown when the measurement is not valid.
  double reachable_rate = 0;
  std::string reason;  ///< Why the measurement is not valid; empty if it is.
};

/// Where calls went: a priority of a cluster.
struct LoadPlace {
  std::string cluster;                    ///< "unknown": no endpoint, or its cluster is not known.
  std::optional<std::uint32_t> priority;  ///< nullopt: not known.

  bool operator==(const LoadPlace&) const = default;
};

/// An endpoint with all of its calls.
struct LoadEndpoint {
  std::string address;      ///< "127.0.0.1:40001"; empty: calls that reached no endpoint.
  std::uint32_t place = 0;  ///< The endpoint's newest place, as an index of LoadSide::places.
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
};

/// The calls of one bin that went to one endpoint while it was in one place.
struct LoadShare {
  std::uint32_t endpoint = 0;  ///< Index of LoadSide::endpoints.
  std::uint32_t place = 0;     ///< Index of LoadSide::places.
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
};

/// One bucket of a LatencyHistogram.
struct LoadBucket {
  std::uint32_t bucket = 0;
  std::uint64_t count = 0;

  bool operator==(const LoadBucket&) const = default;
};

/// Calls that were due within kLoadBinNs. Bin i begins at i * kLoadBinNs.
struct LoadBin {
  std::uint64_t scheduled = 0;
  std::uint64_t sent = 0;
  /// Calls by code (call_code.hpp). A call that never ended has no code.
  std::map<int, std::uint64_t> codes;
  std::vector<LoadShare> shares;
  /// Latencies of calls that ended OK, from due: percentiles, and all buckets, so that reports can
  /// be merged.
  std::uint64_t p50_ns = 0;
  std::uint64_t p99_ns = 0;
  std::uint64_t max_ns = 0;
  std::vector<LoadBucket> latencies;  ///< In the order of the buckets, without empty ones.
};

/// The effects of one fault on the calls of one side. See fault_analysis.hpp for the rules.
struct LoadFaultFigures {
  std::uint64_t lost = 0;  ///< Calls that failed because of the fault.
  /// The time from the fault to the first call that a worse priority answered; nullopt: none did.
  std::optional<std::int64_t> first_success_ns;
  /// The time from the fault until the calls had recovered, by the rule in fault_analysis.hpp.
  /// nullopt: they did not, or the run cannot show it (Unrecovered has the reasons).
  std::optional<std::int64_t> recovery_ns;
  /// The p99 of the 5 s before the fault; 0: no call ended OK in them.
  std::uint64_t baseline_p99_ns = 0;
  std::uint64_t sessions_moved = 0;   ///< Sessions that another endpoint answered afterwards.
  std::uint64_t failback_errors = 0;  ///< Calls that failed while the better priority came back.
};

/// An act of the script.
struct LoadFault {
  std::string name;  ///< "kill primary", unique: "#2" is added to a second one.
  std::string verb;  ///< "kill", "mark", …
  std::string what;  ///< The act as a sentence for people.
  std::int64_t planned_ns = 0;
  std::int64_t at_ns = 0;  ///< When the act began.
  bool is_fault = true;    ///< False: a mark, or an act that ends a fault (cont, clear).
  std::string error;       ///< Why the act was not done, or failed; empty: neither.
};

/// The results of one client: signalbox (its channel, or its Pick API for HTTP), or gRPC's own
/// channel.
struct LoadSide {
  std::string name;  ///< "signalbox", "grpc".
  LoadValidity validity;
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  std::uint64_t unanswered = 0;  ///< Sent, and not ended when the run was over.
  /// The number of calls by code (call_code.hpp).
  std::map<int, std::uint64_t> codes;
  /// The 20 most frequent error texts, with the number of calls.
  std::map<std::string, std::uint64_t> messages;
  /// Latencies of calls that ended OK. `from_due` is what callers saw.
  LatencyHistogram from_due;
  LatencyHistogram from_sent;
  LatencyHistogram failed_from_due;  ///< Latencies of calls that failed, from due.
  /// Messages that server-streaming calls received until they ended, OK or not.
  std::uint64_t stream_messages = 0;
  /// The times from due until the first message, of calls that ended OK and received one.
  LatencyHistogram first_message;
  /// The latencies that a closed loop of kClosedLoopCallers would have recorded of the same calls.
  LatencyHistogram closed_loop;
  std::uint64_t closed_loop_skipped = 0;  ///< Calls that such a loop would not have sent.
  std::vector<LoadPlace> places;
  std::vector<LoadEndpoint> endpoints;
  std::vector<LoadBin> bins;
  std::vector<LoadFaultFigures> faults;  ///< One for each of LoadReport::faults.
  /// CPU time, user and system, per measured call that ended (ok and failed): of the whole process,
  /// and the part that the load engine itself used, without the channel.
  double cpu_per_call_ns = 0;
  double engine_cpu_per_call_ns = 0;
};

/// The result of one --fail-if option.
struct LoadThreshold {
  std::string text;   ///< As it was given: "recovery>1s".
  std::string side;   ///< Always the signalbox side: thresholds judge no other.
  std::string fault;  ///< The fault that the threshold names; empty: the whole run.
  /// The measured value in `unit`. nullopt: it could not be measured, such as a recovery that never
  /// came; it counts as greater than every limit.
  std::optional<double> measured;
  double limit = 0;
  std::string unit;  ///< "calls", "%", "ns", "/s".
  bool is_missed = false;
};

struct LoadReport {
  int version = kLoadReportVersion;
  std::string signalbox_version;
  LoadConfiguration configuration;
  std::int64_t started_unix_ms = 0;  ///< When the measured part began.
  double ran_s = 0;                  ///< How long the measured part was.
  bool is_cut = false;               ///< A signal ended the run early.
  std::uint32_t merged = 1;          ///< The number of runs in this report.
  std::vector<LoadFault> faults;     ///< In the order of their times.
  std::vector<LoadSide> sides;       ///< signalbox first; grpc second with --compare grpc.
  std::vector<LoadThreshold> thresholds;
  /// Facts about merged runs, or about a demo, that a reader of the report must know.
  std::vector<std::string> notes;
  /// The command's exit status. For load: exit_status_of(), or 128 + n after signal n.
  int exit_status = 0;
};

}  // namespace signalbox::tools
