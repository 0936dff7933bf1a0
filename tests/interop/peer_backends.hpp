// SPDX-License-Identifier: Apache-2.0
//
// PeerBackends — the independent backends of the interop tests: servers of grpc-go in one process,
// that restart gracefully.

#pragma once

#include <string>
#include <vector>

#include "tools/child_process.hpp"

namespace signalbox::test {

class PeerBackends {
 public:
  explicit PeerBackends(int count);

  const std::vector<std::string>& addresses() const { return addresses_; }

  /// The backend's next server listens, then the server before it sends GOAWAY. Returns when all
  /// calls of the old server have ended.
  void restart(std::size_t backend);

 private:
  std::string event();

  tools::ChildProcess process_;
  std::vector<std::string> addresses_;
};

}  // namespace signalbox::test
