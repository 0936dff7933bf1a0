// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <iostream>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "signalbox/runtime.hpp"

// A server with the admin services alone. The link proves that the package has their library.
int main() {
  const auto runtime = signalbox::Runtime::start();
  if (!runtime.ok()) {
    std::cerr << runtime.status() << '\n';
    return 1;
  }
  grpc::ServerBuilder builder;
  const auto added = (*runtime)->add_admin_services(builder, {.channelz = false});
  const auto server = builder.BuildAndStart();
  if (!added.ok() || server == nullptr) {
    std::cerr << added << '\n';
    return 1;
  }
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}
