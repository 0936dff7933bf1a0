// SPDX-License-Identifier: Apache-2.0
//
// The demo's control plane: `signalbox serve` as a process, on an address that it keeps for life.
//
//   resources ─▶ a file ─▶ [DemoControlPlane] ─▶ `signalbox serve` ─▶ ADS
//   script: kill(), start(); stop(), resume(); write_resources() ─▶
//
// Resources that are written while the process is dead or stopped are its next ones. The process
// ends with this object, and, should the demo die, with the thread that started it: use it from the
// main thread alone.

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"

#include "tools/child_process.hpp"

namespace signalbox::tools {

class DemoControlPlane {
 public:
  DemoControlPlane();
  ~DemoControlPlane();
  DemoControlPlane(const DemoControlPlane&) = delete;
  DemoControlPlane& operator=(const DemoControlPlane&) = delete;

  /// The text of a JSON file of resources; a process that runs follows it.
  absl::Status write_resources(const std::string& text);

  /// Returns when it serves what was written last. Precondition: it does not run.
  absl::Status start();

  void kill();    ///< SIGKILL; returns when it is gone.
  void stop();    ///< SIGSTOP: its connections stay, and nobody answers.
  void resume();  ///< SIGCONT.

  /// `ip:port`; once it has been started.
  const std::string& address() const { return address_; }

 private:
  std::string folder_;
  std::string address_;
  std::optional<ChildProcess> process_;  // While it runs.
};

}  // namespace signalbox::tools
