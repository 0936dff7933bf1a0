// SPDX-License-Identifier: Apache-2.0
//
// LoadStage — what a script acts on: processes of its own, processes of pidfiles, and the control
// plane that serves --resources.
//
//   Script ─▶ [LoadStage] ─┬▶ `signalbox launch` ─▶ a command of the script
//                          ├▶ the process of a pidfile, by a pidfd
//                          ├▶ FaultProxy in front of an endpoint
//                          └▶ DemoControlPlane ◀─ DrainedResources
//
// The processes that the stage started end with the stage, and with the thread that started them,
// in case the tool dies. When the stage ends, processes of pidfiles that the script stopped get
// SIGCONT. Only one thread uses a stage.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <sys/resource.h>
#include <sys/types.h>

#include "tools/child_process.hpp"
#include "tools/demo_control_plane.hpp"
#include "tools/load/drained_resources.hpp"
#include "tools/load/fault_proxy.hpp"
#include "tools/load/script.hpp"

namespace signalbox::tools {

class LoadStage {
 public:
  /// `script` must outlive the stage.
  explicit LoadStage(const Script& script);

  ~LoadStage();
  LoadStage(const LoadStage&) = delete;
  LoadStage& operator=(const LoadStage&) = delete;

  /// Checks that the script's endpoints exist, and serves the resources.
  absl::Status serve(DrainedResources resources);
  /// Starts the script's processes, and checks the pidfiles.
  absl::Status start();

  /// The bootstrap for a client of the control plane that serve() starts; empty before serve().
  std::string bootstrap() const;

  absl::Status act(const Act& act);

  /// Maps the address of each proxy to the address of the endpoint behind the proxy.
  std::map<std::string, std::string> proxied() const;

  /// Why commands of `exec` acts have failed or not yet ended, by the names of the acts.
  std::map<std::string, std::string> failed_runs();

 private:
  class Pidfd;

  struct Proxied {
    std::unique_ptr<FaultProxy> proxy;
    Harm harm;
  };

  absl::Status launch(const std::string& name);
  absl::Status act_on_process(Verb verb, const std::string& name);
  absl::Status signal_pidfile(const std::string& name, const std::string& path, int signal);
  absl::Status act_on_control_plane(Verb verb);
  absl::Status drain(const std::vector<std::string>& addresses, bool is_draining);
  absl::Status lead_through_proxies(DrainedResources& resources);
  void harm(const Act& act);
  absl::Status run(const Act& act);

  const Script& script_;
  const rlim_t files_;  // The limit of open files that commands get: that of before this stage.
  std::map<std::string, std::optional<ChildProcess>> processes_;  // Processes of commands, by name.
  // Processes of pidfiles that got SIGSTOP, by name.
  std::map<std::string, std::unique_ptr<Pidfd>> stopped_;
  // Commands of exec acts, by act name.
  std::map<std::string, ChildProcess> runs_;
  std::optional<DrainedResources> resources_;
  std::unique_ptr<DemoControlPlane> control_plane_;
  std::map<std::string, Proxied> proxies_;  // The proxy of each endpoint.
  bool is_served_ = false;                  // The control plane's process runs.
};

/// Replaces the calling process by the command, which ends with `parent`. Its stdout is /dev/null,
/// and its limit of open files is `files`. Returns only if that fails.
int launch_command(pid_t parent, rlim_t files, const std::vector<std::string>& command);

}  // namespace signalbox::tools
