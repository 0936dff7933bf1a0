// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `signalbox`: their options as plain values, and one function each.
//
//   main (reads the options) ─▶ [run_…(options)] ─▶ exit status
//
// Results, and the lines in which the demo says what happens, go to stdout; everything else goes to
// stderr.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include <sys/types.h>

#include "messages/log_line.hpp"
#include "signalbox/plan.hpp"
#include "tools/load/report_files.hpp"
#include "xds/limits.hpp"

namespace signalbox::tools {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  ///< The command ran and failed.
inline constexpr int kExitUsage = 2;   ///< The command could not be run as asked.

/// The form of the lines that commands write to stderr.
enum class LogFormat : std::uint8_t {
  kText,  ///< `signalbox COMMAND: TEXT`
  kJson   ///< One JSON object a line, with `time`, `level`, `command` and `text`.
};

/// Sets the form of log lines for the whole process, from now on.
void set_log_format(LogFormat format);
LogFormat log_format();

/// Writes a line to stderr. `time` is UTC. Control characters are escaped; in kText, line ends are
/// not, because some errors are lists.
void say(absl::string_view command, absl::string_view text, LogLevel level = LogLevel::kError);

/// Says why a process was not asked or did not answer. Returns kExitUsage for a wrong address or
/// question and for a missing permission, and otherwise kExitFailed.
int fail_to_ask(absl::string_view command, const absl::Status& status);

struct BackendOptions {
  std::string listen = "127.0.0.1:0";
  std::string name;
  std::string cluster;
  /// `certificate` and `private_key` are files in PEM. Empty: the backend uses plaintext.
  std::string certificate;
  std::string private_key;
  std::string client_ca;     ///< CA of the clients' certificates; empty: clients need none.
  int failing_attempts = 0;  ///< Attempts of each call that fail UNAVAILABLE before one succeeds.
  pid_t parent = 0;   ///< The backend ends with this process; 0: with the process that started it.
  int at_once = 256;  ///< The most calls that are worked on at a time; other calls wait.
};

/// Runs one of the demo's backends. Writes one line of JSON when the backend is ready. SIGTERM ends
/// it; calls in progress get a second to finish.
int run_backend(const BackendOptions& options);

struct ServeOptions {
  std::string resources;
  std::string listen = "127.0.0.1:18000";
  pid_t parent = 0;  ///< The control plane ends with this process; 0: it runs on its own.
};

/// Runs a control plane that serves a file of resources. Writes one line of JSON when it is ready.
int run_serve(const ServeOptions& options);

struct CheckOptions {
  std::vector<std::string> files;
  xds::Limits limits;
  std::vector<std::string> lb_policies;  ///< Custom policies that resources may name.
  /// Custom filters that resources may name, by configuration type.
  std::vector<std::string> http_filters;
  bool json = false;
};

int run_check(const CheckOptions& options);

struct VersionOptions {
  bool json = false;
};

/// The text that `signalbox version` prints, without the last newline.
std::string version_text();

int run_version(const VersionOptions& options);

inline constexpr absl::string_view kControlPlaneDrill = "control-plane";
inline constexpr absl::string_view kTieredDrill = "tiered";

struct DemoOptions {
  std::string drill;    ///< Empty: clusters fail over. Else kControlPlaneDrill or kTieredDrill.
  double seconds = 30;  ///< How long the script runs, if no act of it has to wait.
  double kill_seconds = 10;  ///< How long the control-plane drill keeps the control plane dead.
  double stop_seconds = 10;  ///< How long the same drill keeps the control plane stopped.
  std::string json;          ///< Empty: no data file.
  std::string html;          ///< Empty: no page.
  std::string metrics = "127.0.0.1:0";
  std::string metrics_detail = "cluster";  ///< `cluster`, `endpoint`, `none`.
  std::string metrics_buckets = "short";   ///< `short`, `grpc`.
  std::string admin;                       ///< Address of the admin pages; empty: none.
  std::string grpc_admin;                  ///< Address of the gRPC admin services; empty: none.
  std::string resources;                   ///< Empty: the built-in resources.
  std::string record;                      ///< Empty: nothing is recorded.
  double rps = 500;
  std::uint64_t seed = 1;
};

int run_demo(const DemoOptions& options);

struct LoadOptions {
  std::string target;
  std::string call;     ///< "orders.v1.Orders/Place"
  std::string http;     ///< "http://shop/orders/7", in place of `target` and `call`; empty: gRPC.
  std::string request;  ///< The method of HTTP; empty: POST with `data_file`, else GET.
  std::string data;     ///< The request as JSON, with `protoset` or `reflection`.
  std::string protoset;
  bool reflection = false;  ///< The method's types are asked of the target.
  /// A file with the request's bytes. If `data_file` and `data` are empty, the request is empty.
  std::string data_file;
  bool is_streaming = false;         ///< Without a descriptor: the method is server-streaming.
  std::vector<std::string> headers;  ///< "name:value"
  std::string rate = "100";
  std::string arrivals = "poisson";  ///< `poisson`, `even`.
  /// Durations are texts such as "1m30s".
  std::string duration = "10s";
  std::string warmup = "0s";
  std::string timeout = "5s";
  std::string start_timeout = "20s";
  std::string max_lateness = "1ms";
  std::string start_at;  ///< RFC 3339; empty: as soon as the sides are ready.
  std::uint64_t seed = 1;
  std::uint64_t sessions = 0;
  std::int64_t max_in_flight = 10'000;
  std::uint64_t processes = 1;  ///< Processes of each side, which share its calls.
  /// A bootstrap file. Empty: the environment gives the bootstrap, unless `resources` is set.
  std::string bootstrap;
  std::string resources;  ///< A file of resources, served by a control plane of this command.
  std::string script;
  std::vector<std::string> fail_if;
  std::string compare;  ///< Empty: no comparison. `grpc`: with gRPC's own xDS channel.
  std::string metrics;  ///< Address of /metrics while the command runs; empty: none.
  ReportFiles files;
  bool quiet = false;
  bool dry_run = false;
};

/// The measurement of `load` is not valid: calls were sent too late or not at all, or a process
/// died.
inline constexpr int kExitNotValid = 3;

/// Sends calls on schedule, does the acts of a script, and prints what callers saw. Returns also
/// kExitNotValid, and 128 + n after signal n.
int run_load(const LoadOptions& options);

struct LoadMergeOptions {
  std::vector<std::string> reports;  ///< JSON files of `load`.
  ReportFiles files;
};

/// Adds the reports of several machines up. Returns also kExitNotValid.
int run_load_merge(const LoadMergeOptions& options);

struct PlanOptions {
  std::string resources;
  std::string zone;  ///< The caller's; empty: that of the bootstrap.
  /// run_plan() fills `assumptions.health` from `health` and `degraded` below, and the caller from
  /// `zone`.
  PlanRequest request;
  /// CLUSTER/PRIORITY=PERCENT: the percentage of healthy (degraded) endpoints to assume.
  std::vector<std::string> health;
  std::vector<std::string> degraded;
  std::string mode = "both";  ///< `priority`, `tiered`, `both`.
  std::string html;           ///< Empty: no page.
  bool json = false;
};

/// Prints how the calls to a cluster would spread.
int run_plan(const PlanOptions& options);

struct DumpOptions {
  std::string admin;
  std::string type;  ///< The type of the resources to print; empty: all types.
  std::string name;  ///< The name of the resources to print; empty: all names.
  double timeout_seconds = 30;
  bool json = false;
};

/// Prints what the xDS client of a running process knows.
int run_dump(const DumpOptions& options);

struct ReadyOptions {
  std::string admin;
  std::string target;  ///< The target that must be ready; empty: all targets of the process.
  double timeout_seconds = 2;
};

/// Asks a running process whether it is ready. kExitFailed: it is not, or it does not answer.
/// kExitUsage: nothing listens at the address, or the question is wrong.
int run_ready(const ReadyOptions& options);

struct TopOptions {
  std::string admin;
  double interval_seconds = 1;
  double timeout_seconds = 5;
  std::uint64_t count = 0;  ///< Ends after so many intervals; 0: runs until it is stopped.
};

/// Shows a running process's clusters, again and again: a table in a terminal, else lines.
int run_top(const TopOptions& options);

struct ExplainOptions {
  std::string admin;                     ///< A process's admin address; empty: see `resources`.
  std::string resources;                 ///< A file, explained as if its endpoints were connected.
  std::string bootstrap;                 ///< Used with `resources`; its servers are not contacted.
  std::vector<std::string> lb_policies;  ///< Custom policies that resources may name.
  /// Custom filters that resources may name, by configuration type.
  std::vector<std::string> http_filters;
  std::string target;
  std::string method;
  std::vector<std::string> headers;  ///< "name:value"
  std::vector<std::string> cookies;  ///< "name=value"
  std::optional<std::uint64_t> seed;
  double timeout_seconds = 30;
  bool json = false;
};

/// Prints where a call would go, and why.
int run_explain(const ExplainOptions& options);

struct ReplayOptions {
  std::string file;
  std::string until;    ///< "12.5s", or a time in RFC 3339; empty: the recording's end.
  std::string explain;  ///< The path of a call to explain then; empty: none.
  std::string target;   ///< Of the call; empty: the only one.
  std::vector<std::string> headers;  ///< "name:value"
  std::vector<std::string> cookies;  ///< "name=value"
  std::optional<std::uint64_t> seed;
  std::string diff;  ///< The output of --json by another signalbox; empty: none.
  bool json = false;
  bool allow_cut = false;  ///< A file that was cut off is replayed up to there.
};

/// Replays a recording, and prints what changed when. kExitFailed: the recording is damaged, or
/// --diff found a difference.
int run_replay(const ReplayOptions& options);

}  // namespace signalbox::tools
