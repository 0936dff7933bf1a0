// SPDX-License-Identifier: Apache-2.0
//
// Calls go to the best priority that can take them, and move when it dies (gRFC A56).
//
//   ten calls a second ─▶ xds:///orders ─▶ priority 0: first
//                                      └─▶ priority 1: second, while priority 0 is gone
//
// Prints the name of the backend whenever another backend answers. The first failed call ends the
// program.
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "orders.grpc.pb.h"
#include <grpcpp/grpcpp.h>

#include "signalbox/runtime.hpp"

namespace demo = signalbox::demo::v1;

int main() {
  signalbox::RuntimeOptions options;  // The bootstrap: from the environment.
  options.standby_priorities = 1;     // The second priority is connected before it is needed.
  const auto runtime = signalbox::Runtime::start(std::move(options));
  if (!runtime.ok()) {
    std::cerr << "failover: " << runtime.status() << '\n';
    return 1;
  }
  const auto stub = demo::Orders::NewStub((*runtime)->channel("xds:///orders"));
  for (std::string before;;) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    context.set_wait_for_ready(before.empty());  // Backends may start a little later than this.
    demo::PlaceReply reply;
    const grpc::Status status = stub->Place(&context, {}, &reply);
    if (!status.ok()) {
      const auto code = static_cast<absl::StatusCode>(status.error_code());
      std::cerr << "failover: " << code << ": " << status.error_message() << '\n';
      return 1;
    }
    if (reply.backend() != before) std::cout << "calls go to " << reply.backend() << std::endl;
    before = reply.backend();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}
