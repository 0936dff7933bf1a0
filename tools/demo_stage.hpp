// SPDX-License-Identifier: Apache-2.0
//
// What the demo's scripts play on: processes, a runtime, calls under way.
//
//   DemoTopology ─▶ [DemoStage] ─┬─ DemoBackends
//                                ├─ DemoControlPlane
//                                └─ Runtime ◀─ DemoLoad, DemoSession ─▶ CallLog
//
// Started in the order of its functions, ended in the reverse one. One thread uses it; the log is
// guarded, as calls end in any.

#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "signalbox/runtime.hpp"
#include "tools/call_log.hpp"
#include "tools/commands.hpp"
#include "tools/demo_backends.hpp"
#include "tools/demo_control_plane.hpp"
#include "tools/demo_load.hpp"
#include "tools/demo_session.hpp"
#include "tools/demo_topology.hpp"

namespace signalbox::tools {

class DemoStage {
 public:
  /// `options` outlive it.
  DemoStage(const DemoOptions& options, DemoTopology topology);
  ~DemoStage();
  DemoStage(const DemoStage&) = delete;
  DemoStage& operator=(const DemoStage&) = delete;

  /// Backends, control plane, runtime.
  absl::Status set();
  absl::Status serve_metrics();
  /// Nothing unless it was asked for.
  absl::Status serve_admin();
  /// Returns when a first call has gone through. `also` is called after the log has a call, by any
  /// thread.
  absl::Status start_load(std::function<void(const FinishedCall&)> also = {});
  /// Beside the load; its calls are in the log.
  void start_session();
  /// Sends no more calls, and waits for the answers under way. Harmless where none are sent.
  absl::Status finish_load();

  const DemoTopology& topology() const { return topology_; }

  const std::vector<std::string>& leaves() const { return topology_.leaves(); }

  DemoBackends& backends() { return backends_; }

  DemoControlPlane& control_plane() { return control_plane_; }

  const Runtime& runtime() const { return *runtime_; }

  /// Once it has been started.
  DemoSession& session() { return *session_; }

  /// The control plane's next resources are the demo's, with this leaf as the first of the
  /// aggregate, and this change.
  absl::Status write_resources(std::size_t first_leaf, const EndpointChange& change = {});

  /// What `use` makes of the log.
  template <class Use>
  auto with_log(Use use) {
    const std::lock_guard lock(mutex_);
    return use(log_);
  }

 private:
  const DemoOptions& options_;
  const DemoTopology topology_;
  std::mutex mutex_;  // Guards the log.
  CallLog log_;
  DemoBackends backends_;
  DemoControlPlane control_plane_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<DemoLoad> load_;
  std::unique_ptr<DemoSession> session_;
};

}  // namespace signalbox::tools
