// SPDX-License-Identifier: Apache-2.0
//
// script — a drill: what is done, to which process or endpoint, and when.
//
//   YAML or JSON ─▶ [parse_script] ─▶ Script ─┬▶ [timeline] ─▶ --dry-run
//                                             └▶ LoadStage does the acts ─▶ LoadReport::faults
//
//   processes:
//     primary:
//       command: [./orders, --listen, 127.0.0.1:7001]     # started before the load, ended after it
//     other:
//       pidfile: /run/orders/other.pid                    # runs already, and is named by its file
//   acts:
//     - {at: 10s, kill: primary, for: 5s}                 # killed, and started again 5 s later
//     - {at: 20s, stop: [primary, other], for: 2s}        # SIGSTOP, then SIGCONT
//     - {at: 30s, drain: 127.0.0.1:7001, for: 5s}         # EDS health DRAINING, and back
//     - {at: 35s, delay: 127.0.0.1:7001, by: 100ms, for: 2s}
//     - {at: 40s, exec: [kubectl, delete, pod, orders-0]}
//     - {at: 50s, mark: version 2 takes over}
//
// Apart from exec, a script can only reach processes that it has started or that a pidfile names,
// never a process by its name. `control-plane` is the control plane that serves --resources.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace signalbox::tools {

/// The process that serves --resources.
inline constexpr absl::string_view kControlPlaneName = "control-plane";

enum class Verb : std::uint8_t {
  kKill,       ///< SIGKILL to processes.
  kTerm,       ///< SIGTERM.
  kStop,       ///< SIGSTOP.
  kCont,       ///< SIGCONT.
  kRestart,    ///< Ends what runs by SIGKILL, and starts the command.
  kDrain,      ///< EDS health DRAINING for endpoints of --resources.
  kUndrain,    ///< Endpoints get back the health that the file of --resources gives them.
  kDelay,      ///< Bytes to and from endpoints of --resources are late, by a proxy.
  kBandwidth,  ///< At most `amount` bytes a second pass, by a proxy.
  kBlackhole,  ///< Nothing passes, and nothing is closed.
  kReset,      ///< Connections are reset, and new ones too.
  kClear,      ///< Ends delay, bandwidth, blackhole and reset.
  kExec,       ///< A command of the user.
  kMark,       ///< Nothing but a line in the report.
};

struct ScriptProcess {
  std::vector<std::string> command;  ///< Empty: the script does not start the process.
  std::string pidfile;               ///< Empty: the script starts the process.
};

struct Act {
  std::chrono::nanoseconds at{};  ///< The time from the beginning of the measured part.
  Verb verb = Verb::kMark;
  /// Names of processes, addresses of endpoints, the words of a command, or the text of a mark.
  std::vector<std::string> words;
  double amount = 0;  ///< Of a delay: nanoseconds. Of a bandwidth: bytes a second.
  std::string name;   ///< "kill primary"; unique, so that thresholds can name it.
  std::string what;   ///< The act as a text for people: "SIGKILL to primary".

  /// False for a mark, and for an act that ends a fault.
  bool is_fault() const;
};

struct Script {
  std::map<std::string, ScriptProcess> processes;
  std::vector<Act> acts;  ///< In the order of their times.
};

absl::string_view to_string(Verb verb);

/// True if an act of this kind needs a proxy in front of the endpoints that it names.
bool needs_proxy(Verb verb);

/// `has_resources`: the tool serves --resources with its own control plane. Only then can a script
/// act on `control-plane`, and on endpoints: drain, undrain, delay, bandwidth, blackhole, reset,
/// clear. Errors name the file; the error of an act also has the line (YAML) and the number of the
/// act.
absl::StatusOr<Script> parse_script(absl::string_view text,
                                    absl::string_view file_name,
                                    bool has_resources);

/// A line for each act, for people.
std::string timeline(const Script& script);

}  // namespace signalbox::tools
