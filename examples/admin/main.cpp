// SPDX-License-Identifier: Apache-2.0
//
// A gRPC server that calls backends through signalbox, and shows operators what signalbox knows.
//
//   callers ─▶ Orders ──────────────────────▶ channel xds:///orders ─▶ backends
//   grpcdebug, health probes ─▶ CSDS, channelz, health ─▶ runtime
//   browser, signalbox dump ──▶ admin pages ────────────▶ runtime
//
// SIGINT and SIGTERM end the server. A server with callers on other machines gives the admin
// services a server and a port of their own, because the port decides which clients have access.
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "orders.grpc.pb.h"
#include <grpcpp/grpcpp.h>

#include "signalbox/runtime.hpp"

namespace demo = signalbox::demo::v1;

namespace {

// Passes orders on to a backend.
class Front final : public demo::Orders::Service {
 public:
  explicit Front(std::shared_ptr<grpc::ChannelInterface> backends)
      : backends_(demo::Orders::NewStub(std::move(backends))) {}

 private:
  grpc::Status Place(grpc::ServerContext* caller,
                     const demo::PlaceRequest* request,
                     demo::PlaceReply* reply) override {
    const auto context = grpc::ClientContext::FromServerContext(*caller);  // Deadline, cancelling.
    return backends_->Place(context.get(), *request, reply);
  }

  const std::unique_ptr<demo::Orders::Stub> backends_;
};

int fail(const std::string& what, const absl::Status& status) {
  std::cerr << "server: " << what << ": " << status << '\n';
  return 1;
}

int serve(const std::string& address, const std::string& admin_address) {
  const auto runtime = signalbox::Runtime::start();  // The bootstrap: from the environment.
  if (!runtime.ok()) return fail("signalbox", runtime.status());
  const auto pages = (*runtime)->serve_admin(admin_address);
  if (!pages.ok()) return fail("the admin pages", pages.status());

  Front front((*runtime)->channel("xds:///orders"));
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // Else two servers may share the port.
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&front);
  const auto added = (*runtime)->add_admin_services(builder);
  if (!added.ok()) return fail("the admin services", added);
  // The runtime must outlive the server, so it was made first.
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return fail(address, absl::UnavailableError("cannot listen"));

  const std::string host = address.substr(0, address.rfind(':'));
  std::cout << "serving " << host << ':' << port << ", admin pages on " << *pages << std::endl;
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  int signal = 0;
  sigwait(&stop, &signal);
  // The deadline ends the watches of health probes, which do not end by themselves.
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
  std::cout << "stopped" << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: server HOST:PORT ADMIN_HOST:PORT\n";
    return 2;
  }
  // All threads that start from now on leave these signals to sigwait().
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  return serve(argv[1], argv[2]);
}
