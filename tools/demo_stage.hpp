// SPDX-License-Identifier: Apache-2.0
//
// DemoStage — all that a script of the demo controls: processes, a runtime, and calls in progress.
//
//   DemoTopology ─▶ [DemoStage] ─┬─ DemoBackends
//                                ├─ DemoControlPlane
//                                └─ Runtime ◀─ EngineRun, DemoSession ─▶ CallLog, DemoRecord
//
// set() comes first, then serve_…(), start_…() and finish_load(), in this order. The destructor
// ends the parts that were started. One thread uses a stage. A mutex guards log and record, because
// other threads add ended calls.

#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include <grpcpp/server.h>

#include "signalbox/runtime.hpp"
#include "tools/call_log.hpp"
#include "tools/commands.hpp"
#include "tools/demo_backends.hpp"
#include "tools/demo_control_plane.hpp"
#include "tools/demo_record.hpp"
#include "tools/demo_session.hpp"
#include "tools/demo_topology.hpp"
#include "tools/load/engine_run.hpp"

namespace signalbox::tools {

class DemoStage {
 public:
  /// `options` must outlive the stage.
  DemoStage(const DemoOptions& options, DemoTopology topology);
  ~DemoStage();
  DemoStage(const DemoStage&) = delete;
  DemoStage& operator=(const DemoStage&) = delete;

  /// Starts backends, control plane and runtime.
  absl::Status set();
  absl::Status serve_metrics();
  /// Does nothing without --admin.
  absl::Status serve_admin();
  /// Does nothing without --grpc-admin.
  absl::Status serve_grpc_admin();
  /// Starts the load, after a first call has succeeded. A few milliseconds after the end of a call
  /// of the load, the call is added to the log, and then passed to `also`, by one thread.
  absl::Status start_load(std::function<void(const FinishedCall&)> also = {});
  /// Starts the session beside the load. The session's calls are added to the log, too.
  void start_session();
  /// Stops sending calls, and waits for the answers under way. Harmless if neither load nor session
  /// was started.
  absl::Status finish_load();

  /// Records an act for --html. Call this before the script does the act.
  void act_begins(const DemoAct& act);
  /// Writes the page of --html, after finish_load(). Does nothing without --html.
  absl::Status write_page(std::string failure, std::vector<std::string> notes);

  const DemoTopology& topology() const { return topology_; }

  const std::vector<std::string>& leaves() const { return topology_.leaves(); }

  DemoBackends& backends() { return backends_; }

  DemoControlPlane& control_plane() { return control_plane_; }

  const Runtime& runtime() const { return *runtime_; }

  /// Precondition: start_session() was called.
  DemoSession& session() { return *session_; }

  /// Gives the control plane the demo's resources, with leaf number `first_leaf` first in the
  /// aggregate's list, and with `change`.
  absl::Status write_resources(std::size_t first_leaf, const EndpointChange& change = {});

  /// Returns the result of `use` on the log, called under the mutex.
  template <class Use>
  auto with_log(Use use) {
    const std::lock_guard lock(mutex_);
    return use(log_);
  }

 private:
  void take(const OpenLoop::Drained& drained, const std::vector<FinishedCall>& calls, CallTime now);
  void start_record(CallTime begin);
  void stop_looking();
  void note_places();

  const DemoOptions& options_;
  const DemoTopology topology_;
  std::mutex mutex_;  // Guards log_ and record_.
  CallLog log_;
  std::unique_ptr<DemoRecord> record_;  // Null without --html.
  std::int64_t started_unix_ms_ = 0;
  CallTime load_ended_;
  DemoBackends backends_;
  DemoControlPlane control_plane_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<grpc::Server> grpc_admin_;
  std::unique_ptr<EngineRun> load_;
  std::unique_ptr<DemoSession> session_;
  std::condition_variable_any stopped_looking_;
  std::jthread looker_;  // Polls the runtime's status for the places of endpoints, for record_.
};

}  // namespace signalbox::tools
