// SPDX-License-Identifier: Apache-2.0
//
// The demo's control plane: `signalbox serve` as a process, on an address that restarts keep.
//
//   resources ─▶ a file ─▶ [DemoControlPlane] ─▶ `signalbox serve` ─▶ ADS
//   script: kill(), start(); stop(), resume(); write_resources() ─▶
//
// Resources that are written while the process is dead or stopped are served when it runs again.
// The process ends with this object, and also with the thread that started it, in case the demo
// dies. Therefore only the main thread uses this object.

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "tools/child_process.hpp"
#include "tools/locked_folder.hpp"

namespace signalbox::tools {

class DemoControlPlane {
 public:
  DemoControlPlane();
  ~DemoControlPlane();
  DemoControlPlane(const DemoControlPlane&) = delete;
  DemoControlPlane& operator=(const DemoControlPlane&) = delete;

  /// Writes the file of resources, as JSON text. A running process follows the file.
  absl::Status write_resources(const std::string& text);

  /// Returns when the process serves the resources that were written last. Precondition: no process
  /// runs.
  absl::Status start();

  void kill();    ///< SIGKILL; returns when the process is gone.
  void stop();    ///< SIGSTOP: connections stay open, and requests get no answer.
  void resume();  ///< SIGCONT.

  /// `ip:port`. The port is valid after start().
  const std::string& address() const { return address_; }

 private:
  absl::StatusOr<LockedFolder> folder_;  // Has the file of resources.
  std::string address_;
  std::optional<ChildProcess> process_;  // Set while the process runs.
};

}  // namespace signalbox::tools
