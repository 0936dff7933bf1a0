// SPDX-License-Identifier: Apache-2.0
//
// The demo's backends: a process each, killed and brought back by cluster.
//
//   DemoTopology::places ─▶ [DemoBackends] ─▶ `signalbox backend` × n ─▶ ports
//   script: kill(cluster), start(cluster) ─▶
//
// A backend that comes back listens on the port that it had. All end with this object, and, should
// the demo die, with the thread that started them: use it from the main thread alone.

#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "tools/child_process.hpp"
#include "tools/demo_topology.hpp"

namespace signalbox::tools {

/// Where a backend listens: on one address; a name (`localhost`) may have two, or none.
std::string backend_ip(const std::string& host);

class DemoBackends {
 public:
  explicit DemoBackends(const std::vector<BackendPlace>& places);
  ~DemoBackends();
  DemoBackends(const DemoBackends&) = delete;
  DemoBackends& operator=(const DemoBackends&) = delete;

  /// Starts the backends of a cluster and waits until they are ready. `on_first` is called as soon
  /// as one is.
  absl::Status start(const std::string& cluster, const std::function<void()>& on_first);

  /// SIGKILL to the backends of a cluster; returns when they are gone.
  void kill(const std::string& cluster);

  /// The same to one backend; its name is one of the places'.
  void kill_one(const std::string& name);

  /// `ip:port` of the backend of this name.
  std::string address_of(const std::string& name) const;
  /// `ip:port` of the backends of a cluster.
  std::set<std::string> addresses(const std::string& cluster) const;
  /// By name.
  std::map<std::string, int> ports() const;

 private:
  struct Backend {
    BackendPlace place;
    std::string ip;
    int port = 0;
    std::optional<ChildProcess> process;  // While it runs.
  };

  static std::string address_of(const Backend& backend);
  absl::Status launch(Backend& backend);
  absl::Status await(Backend& backend);

  std::vector<Backend> backends_;
};

}  // namespace signalbox::tools
