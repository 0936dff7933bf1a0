// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include <grpc/grpc.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "actors/io/tls_files.hpp"
#include "tools/child_process.hpp"
#include "tools/commands.hpp"
#include "tools/proto/orders.grpc.pb.h"
#include "tools/stop_signals.hpp"
#include "xds/utf8.hpp"

namespace signalbox::tools {
namespace {

constexpr auto kMaxWork = std::chrono::seconds(10);
// After this time, the shutdown cancels the calls in progress.
constexpr auto kDrainTime = std::chrono::seconds(1);

// The number of earlier attempts of the call, as retrying clients send it (gRFC A6).
int earlier_attempts(const grpc::ServerContext& context) {
  const auto header = context.client_metadata().find("grpc-previous-rpc-attempts");
  int attempts = 0;
  if (header != context.client_metadata().end())
    static_cast<void>(absl::SimpleAtoi(
        absl::string_view(header->second.data(), header->second.size()), &attempts));
  return attempts;
}

class OrdersService final : public demo::v1::Orders::Service {
 public:
  explicit OrdersService(const BackendOptions& options)
      : options_(options), places_(options.at_once) {}

  grpc::Status Place(grpc::ServerContext* context,
                     const demo::v1::PlaceRequest* request,
                     demo::v1::PlaceReply* reply) override {
    if (options_.failing_attempts > 0 && earlier_attempts(*context) < options_.failing_attempts)
      return {grpc::StatusCode::UNAVAILABLE, "this attempt is to fail"};
    places_.acquire();
    std::this_thread::sleep_for(std::min<std::chrono::microseconds>(
        std::chrono::microseconds(request->work_us()), kMaxWork));
    places_.release();
    reply->set_backend(options_.name);
    reply->set_cluster(options_.cluster);
    reply->set_pid(static_cast<std::uint32_t>(::getpid()));
    reply->set_connection(context->peer());
    return grpc::Status::OK;
  }

 private:
  const BackendOptions& options_;
  std::counting_semaphore<> places_;
};

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> credentials_of(
    const BackendOptions& options) {
  if (options.certificate.empty()) return grpc::InsecureServerCredentials();
  actors::TlsFiles files({.ca_certificate_file = options.client_ca,
                          .certificate_file = options.certificate,
                          .private_key_file = options.private_key},
                         /*complain=*/nullptr);
  const auto texts = files.read();
  if (!texts.ok()) return texts.status();
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({texts->private_key, texts->certificate_chain});
  if (!options.client_ca.empty()) {
    tls.pem_root_certs = texts->roots;
    tls.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return grpc::SslServerCredentials(tls);
}

}  // namespace

int run_backend(const BackendOptions& options) {
  block_stop_signals();
  die_with_parent(options.parent > 0 ? options.parent : ::getppid());

  for (const auto& [option, text] :
       {std::pair{"--name", options.name}, {"--cluster", options.cluster}}) {
    if (xds::is_utf8(text)) continue;
    say("backend", absl::StrCat(option, ": is not UTF-8"));
    return kExitUsage;
  }
  const auto credentials = credentials_of(options);
  if (!credentials.ok()) {
    say("backend", credentials.status().message());
    return kExitUsage;
  }
  OrdersService service(options);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(options.listen, *credentials, &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    say("backend", absl::StrCat("cannot listen on ", options.listen, ": is the address in use?"));
    return kExitUsage;
  }
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  std::cout << nlohmann::json{{"name", options.name},
                              {"cluster", options.cluster},
                              {"address", absl::StrCat(host, ":", port)},
                              {"pid", ::getpid()}}
                   .dump()
            << '\n'
            << std::flush;

  while (!wait_for_stop(std::chrono::hours(1))) {
  }
  server->Shutdown(std::chrono::system_clock::now() + kDrainTime);
  server->Wait();
  return kExitOk;
}

}  // namespace signalbox::tools
