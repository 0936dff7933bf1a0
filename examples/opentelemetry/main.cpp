// SPDX-License-Identifier: Apache-2.0
//
// Makes one call with an empty request, and sends the call's spans to a collector.
#include <future>
#include <regex>

#include "otlp_observer.hpp"
#include <grpcpp/generic/generic_stub.h>

#include "signalbox/runtime.hpp"

int main(int argc, char** argv) {
  std::cmatch url;
  const std::regex form("http://[^/]+:([0-9]{1,5})");
  if (argc != 4 || !std::regex_match(argv[1], url, form) || std::stoi(url[1]) > 65'535 ||
      argv[3][0] != '/') {
    std::cerr << "usage: traced_call http://COLLECTOR:PORT xds:///NAME /SERVICE/METHOD\n";
    return 2;
  }
  const auto runtime =
      signalbox::Runtime::start({.call_observer = std::make_shared<OtlpObserver>(argv[1])});
  if (!runtime.ok()) {
    std::cerr << "traced_call: " << runtime.status() << '\n';
    return 1;
  }
  grpc::GenericStub stub((*runtime)->channel(argv[2]));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  context.set_wait_for_ready(true);  // The backend may start a little later than this program.
  const grpc::Slice nothing;
  grpc::ByteBuffer request(&nothing, 1), reply;
  std::promise<grpc::Status> ended;
  stub.UnaryCall(&context, argv[3], {}, &request, &reply, [&](const grpc::Status& status) {
    ended.set_value(status);
  });
  const grpc::Status status = ended.get_future().get();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  std::cout << absl::Status(code, status.error_message()) << std::endl;
  return status.ok() ? 0 : 1;
}
