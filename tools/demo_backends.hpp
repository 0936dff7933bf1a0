// SPDX-License-Identifier: Apache-2.0
//
// The demo's backends, one process each. They are killed by cluster or by name, and started by
// cluster.
//
//   DemoTopology::places ─▶ [DemoBackends] ─▶ `signalbox backend` × n ─▶ ports
//   script: kill(cluster), kill_one(name), start(cluster) ─▶
//
// A restarted backend listens on its former port. All backends end with this object, and also with
// the thread that started them, in case the demo dies. Therefore only the main thread uses this
// object.

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

/// The IP address on which a backend listens: `host` itself if it is an IPv4 address, else
/// 127.0.0.1, because a name (`localhost`) may have two addresses, or none.
std::string backend_ip(const std::string& host);

class DemoBackends {
 public:
  explicit DemoBackends(const std::vector<BackendPlace>& places);
  ~DemoBackends();
  DemoBackends(const DemoBackends&) = delete;
  DemoBackends& operator=(const DemoBackends&) = delete;

  /// Starts all backends of a cluster, and then waits until each of them is ready.
  /// `on_first` is called when the first one in the order of the places is ready.
  absl::Status start(const std::string& cluster, const std::function<void()>& on_first);

  /// SIGKILL to the backends of a cluster; returns when they are gone.
  void kill(const std::string& cluster);

  /// SIGKILL to the backend of this name (see BackendPlace); returns when it is gone.
  void kill_one(const std::string& name);

  /// `ip:port` of the backend of this name; empty: there is none. The port is 0 before its first
  /// start.
  std::string address_of(const std::string& name) const;
  /// `ip:port` of the backends of a cluster.
  std::set<std::string> addresses(const std::string& cluster) const;
  /// Ports by backend name.
  std::map<std::string, int> ports() const;

 private:
  struct Backend {
    BackendPlace place;
    std::string ip;
    int port = 0;
    std::optional<ChildProcess> process;  // Set while the backend runs.
  };

  static std::string address_of(const Backend& backend);
  absl::Status launch(Backend& backend);
  absl::Status await(Backend& backend);

  std::vector<Backend> backends_;
};

}  // namespace signalbox::tools
