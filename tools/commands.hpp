// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `signalbox`: their options as plain values, and one function each.
//
//   main (reads the options) ─▶ [run_…(options)] ─▶ exit status
//
// Results go to stdout, everything else to stderr.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include <sys/types.h>

#include "xds/limits.hpp"

namespace signalbox::tools {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  ///< It ran and failed.
inline constexpr int kExitUsage = 2;   ///< It could not be run as asked.

/// `signalbox COMMAND: TEXT` on stderr.
void say(absl::string_view command, absl::string_view text);

struct BackendOptions {
  std::string listen = "127.0.0.1:0";
  std::string name;
  std::string cluster;
  std::string certificate;  ///< Files in PEM; empty: plaintext.
  std::string private_key;
  std::string client_ca;     ///< Signed the clients' certificates; empty: they need none.
  int failing_attempts = 0;  ///< Of each call, as many fail UNAVAILABLE before one succeeds.
  pid_t parent = 0;          ///< Ends with this process.
  int at_once = 256;         ///< So many calls are worked on at a time; others wait in line.
};

/// One of the demo's backends. Writes one line of JSON when it is ready; SIGTERM ends it in peace.
int run_backend(const BackendOptions& options);

struct ServeOptions {
  std::string resources;
  std::string listen = "127.0.0.1:18000";
  pid_t parent = 0;  ///< Ends with this process; 0: on its own.
};

/// A control plane that serves a file. Writes one line of JSON when it is ready.
int run_serve(const ServeOptions& options);

struct CheckOptions {
  std::vector<std::string> files;
  xds::Limits limits;
  std::vector<std::string> lb_policies;   ///< Custom ones that resources may name.
  std::vector<std::string> http_filters;  ///< So are these: the types of their configurations.
  bool json = false;
};

int run_check(const CheckOptions& options);

struct VersionOptions {
  bool json = false;
};

/// What `signalbox version` prints as text, without the last newline.
std::string version_text();

int run_version(const VersionOptions& options);

inline constexpr absl::string_view kControlPlaneDrill = "control-plane";
inline constexpr absl::string_view kTieredDrill = "tiered";

struct DemoOptions {
  std::string drill;         ///< Empty: clusters fail over. Else the name of one.
  double seconds = 30;       ///< Of a drill: at least.
  double kill_seconds = 10;  ///< How long the drill's control plane is dead,
  double stop_seconds = 10;  ///< and how long it is stopped.
  std::string json;          ///< Empty: no data file.
  std::string metrics = "127.0.0.1:0";
  std::string admin;      ///< Empty: nobody may look in.
  std::string resources;  ///< Empty: those that are built in.
  double rps = 500;
  std::uint64_t seed = 1;
};

int run_demo(const DemoOptions& options);

struct PlanOptions {
  std::string resources;
  std::string bootstrap;  ///< Of the resources: for the names of its certificate providers.
  std::string cluster;    ///< Or target; neither: the only one.
  std::string target;
  std::vector<std::string> health;  ///< CLUSTER/PRIORITY=PERCENT, as `degraded`.
  std::vector<std::string> degraded;
  std::vector<std::string> down;  ///< Zones and endpoints.
  std::string mode = "both";      ///< `priority`, `tiered`, `both`.
  std::uint32_t panic_threshold = 0;
  std::vector<std::string> lb_policies;  ///< Custom ones that resources may name.
  std::string html;                      ///< Empty: no page.
  bool json = false;
};

/// How the calls of a cluster would spread.
int run_plan(const PlanOptions& options);

struct DumpOptions {
  std::string admin;
  std::string type;  ///< Empty: all.
  std::string name;  ///< Empty: all.
  double timeout_seconds = 30;
  bool json = false;
};

/// What the xDS client of a running process knows.
int run_dump(const DumpOptions& options);

struct ExplainOptions {
  std::string admin;                      ///< Empty: `resources` are asked, and
  std::string resources;                  ///< all of their endpoints count as connected.
  std::string bootstrap;                  ///< Of the resources; its servers are not asked.
  std::vector<std::string> lb_policies;   ///< Custom ones that resources may name.
  std::vector<std::string> http_filters;  ///< So are these: the types of their configurations.
  std::string target;
  std::string method;
  std::vector<std::string> headers;  ///< "name:value"
  std::vector<std::string> cookies;  ///< "name=value"
  std::optional<std::uint64_t> seed;
  double timeout_seconds = 30;
  bool json = false;
};

/// Where a call would go, and why.
int run_explain(const ExplainOptions& options);

}  // namespace signalbox::tools
