// SPDX-License-Identifier: Apache-2.0
//
// Backend — a gRPC server in this process that is stopped and started again on its port, in the
// middle of calls.

#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "tests/stress/load.grpc.pb.h"

namespace signalbox::stress {

class Backend {
 public:
  Backend();
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  /// "ip:port"; it never changes.
  std::string address() const;

  bool is_up() const { return server_ != nullptr; }

  /// Ends the server's calls, and returns when they are over.
  void stop();
  /// Does nothing if another process has the port meanwhile; start() may then be called again.
  void start();

  int calls() const;

 private:
  class Service;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace signalbox::stress
