// SPDX-License-Identifier: Apache-2.0
#include "actors/io/connection_credentials.hpp"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "actors/io/abandoned_channel.hpp"
#include "actors/io/certificate_verdict.hpp"
#include "actors/io/grpc_access.hpp"
#include "actors/io/grpc_poller.hpp"

namespace signalbox::actors {
namespace {

// The beginning of RefusingVerifier's text. verdict_in() finds the verdict by this mark, because
// gRPC puts other words before the verifier's text.
constexpr absl::string_view kMark = "signalbox's verdict: ";

class RefusingVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  RefusingVerifier(std::string roots, std::string name)
      : roots_(std::move(roots)), name_(std::move(name)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* sync_status) override {
    const grpc::string_ref pem = request->peer_cert_full_chain();
    *sync_status = {
        grpc::StatusCode::UNAUTHENTICATED,
        absl::StrCat(kMark, certificate_verdict({pem.data(), pem.size()}, roots_, name_))};
    return true;
  }

  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const std::string roots_;
  const std::string name_;
};

std::string verdict_in(absl::string_view message) {
  const auto at = message.rfind(kMark);
  return at == absl::string_view::npos ? "" : std::string(message.substr(at + kMark.size()));
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> explaining_credentials(std::string roots,
                                                                 std::string name) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<RefusingVerifier>(std::move(roots),
                                                                                std::move(name)));
  return grpc::experimental::TlsCredentials(options);
}

void explain_refusal(std::shared_ptr<grpc::Channel> channel,
                     std::function<void(const std::string& verdict)> explained) {
  grpc_channel* const connecting = GrpcAccess::c_channel(*channel);
  GrpcPoller::Hold().hurry();
  watch_failure(connecting,
                "",
                [channel = std::move(channel),
                 explained = std::move(explained)](const absl::Status& failure) mutable {
                  explained(verdict_in(failure.message()));
                  abandon(std::move(channel));
                });
}

}  // namespace signalbox::actors
