// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>

#include "hello.grpc.pb.h"
#include <grpcpp/grpcpp.h>

class Greeter final : public consumer::v1::Hello::Service {
  grpc::Status Greet(grpc::ServerContext*,
                     const consumer::v1::GreetRequest* request,
                     consumer::v1::GreetReply* reply) override {
    reply->set_text("hello " + request->name());
    return grpc::Status::OK;
  }
};

// Prints the server's port, and serves until the process is killed.
int main() {
  Greeter greeter;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&greeter);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << port << std::endl;
  server->Wait();
  return 0;
}
