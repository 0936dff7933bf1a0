// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <iostream>

#include "hello.grpc.pb.h"
#include <grpcpp/grpcpp.h>

#include "signalbox/runtime.hpp"

// One call of a generated stub through the drop-in channel.
int main() {
  const auto runtime = signalbox::Runtime::start();
  if (!runtime.ok()) {
    std::cerr << runtime.status() << '\n';
    return 1;
  }
  const auto stub = consumer::v1::Hello::NewStub((*runtime)->channel("xds:///hello"));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  consumer::v1::GreetRequest request;
  consumer::v1::GreetReply reply;
  request.set_name("package");
  const grpc::Status status = stub->Greet(&context, request, &reply);
  std::cout << (status.ok() ? reply.text() : status.error_message()) << '\n';
  return status.ok() ? 0 : 1;
}
