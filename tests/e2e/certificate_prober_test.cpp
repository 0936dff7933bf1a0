// SPDX-License-Identifier: Apache-2.0
//
// The prober of certificates against TLS servers and silent ones: how often it probes, how long it
// takes, and its end.
#include "actors/io/certificate_prober.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <grpcpp/security/server_credentials.h>
#include <poll.h>

#include "tests/e2e/ads_peer.hpp"
#include "tests/e2e/attempt_record.hpp"
#include "tests/support/certificates.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using actors::CertificateProber;
using actors::CertificateQuestion;

const char kNotSigned[] =
    "the server's certificate \"CN = server\" (issuer \"CN = ca\") is not signed by any "
    "certificate "
    "of the roots";

CertificateQuestion question(const std::string& address, const Authority& roots) {
  const actors::PemTexts texts{.roots = roots.certificate()};
  return {.address = address,
          .server_name = "localhost",
          .texts = std::make_shared<const actors::PemTexts>(texts),
          .roots = "the roots"};
}

// The answer, once it has come. Invalid: there is none.
std::future<std::string> ask(const CertificateProber& prober, CertificateQuestion question) {
  const auto promise = std::make_shared<std::promise<std::string>>();
  const bool is_asked = prober.asker()(
      std::move(question), [promise](const std::string& reason) { promise->set_value(reason); });
  return is_asked ? promise->get_future() : std::future<std::string>();
}

// The connections that wait in the backlog, which are closed.
int connections(MuteSocket& socket) {
  int count = 0;
  pollfd waiting{socket.descriptor(), POLLIN, 0};
  while (::poll(&waiting, 1, 0) == 1) {
    socket.close_one();
    ++count;
  }
  return count;
}

class TlsPeer {
 public:
  explicit TlsPeer(const Authority& ca) : peer_({.credentials = credentials_of(ca)}) {}

  const std::string& address() const { return peer_.address(); }

 private:
  static std::shared_ptr<grpc::ServerCredentials> credentials_of(const Authority& ca) {
    const Issued issued = ca.issue("server");
    grpc::SslServerCredentialsOptions options(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    options.pem_key_cert_pairs.push_back({issued.key, issued.certificate});
    return grpc::SslServerCredentials(options);
  }

  AdsPeer peer_;
};

}  // namespace

TEST_CASE("certificate_prober: finds the reason of a server's refused certificate",
          "[e2e][tls][A29][A65]") {
  const Authority ca("ca");
  const Authority other("other");
  const TlsPeer peer(ca);
  const CertificateProber prober;
  CHECK(ask(prober, question(peer.address(), other)).get() == kNotSigned);
  // The answer does not come from the earlier question, because the roots differ.
  CHECK(ask(prober, question(peer.address(), ca)).get().empty());
}

TEST_CASE("certificate_prober: probes a server once, however often it is asked",
          "[e2e][tls][A29][A65]") {
  const Authority ca("ca");
  MuteSocket mute;
  mute.listen();
  const CertificateProber prober({.longest = 200ms});
  auto first = ask(prober, question(mute.address().str(), ca));
  auto second = ask(prober, question(mute.address().str(), ca));
  CHECK(first.get().empty());
  CHECK(second.get().empty());
  CHECK(ask(prober, question(mute.address().str(), ca)).get().empty());
  CHECK(connections(mute) == 1);
  // Each of them is another question.
  const Authority renewed("ca");
  CHECK(ask(prober, question(mute.address().str(), renewed)).get().empty());
  CertificateQuestion renamed = question(mute.address().str(), ca);
  renamed.server_name = "another";
  CHECK(ask(prober, std::move(renamed)).get().empty());
  CHECK(connections(mute) == 2);
}

TEST_CASE("certificate_prober: probes again when the result is old", "[e2e][tls][A29][A65]") {
  const Authority ca("ca");
  MuteSocket mute;
  mute.listen();
  const CertificateProber prober({.longest = 1ms, .kept_for = 0s});
  CHECK(ask(prober, question(mute.address().str(), ca)).get().empty());
  CHECK(ask(prober, question(mute.address().str(), ca)).get().empty());
  CHECK(connections(mute) == 2);
}

TEST_CASE("certificate_prober: a question's own limit ends its probe", "[e2e][tls][A29][A65]") {
  const Authority ca("ca");
  MuteSocket mute;
  mute.listen();
  const CertificateProber prober({.longest = 1h});
  CertificateQuestion hasty = question(mute.address().str(), ca);
  hasty.until = std::chrono::steady_clock::now() + 1ms;
  CHECK(ask(prober, std::move(hasty)).get().empty());
}

TEST_CASE("certificate_prober: no reason is found where nothing can be asked",
          "[e2e][tls][A29][A65]") {
  const Authority ca("ca");
  const MuteSocket refusing;
  const AdsPeer plaintext({});
  const CertificateProber prober;
  CHECK(ask(prober, question(refusing.address().str(), ca)).get().empty());
  CHECK(ask(prober, question(plaintext.address(), ca)).get().empty());
  CHECK(ask(prober, question("localhost", ca)).get().empty());
  CHECK(ask(prober, question("", ca)).get().empty());
  CHECK_FALSE(ask(prober, {.address = plaintext.address()}).valid());
}

TEST_CASE("certificate_prober: the questions beyond its limits get no reason",
          "[e2e][tls][A29][A65][limits]") {
  const Authority ca("ca");
  const Authority other("other");
  const TlsPeer peer(ca);
  MuteSocket mute;
  mute.listen();
  SECTION("at once") {
    const CertificateProber prober({.longest = 1h, .at_once = 1});
    const auto slow = ask(prober, question(mute.address().str(), ca));
    CHECK(ask(prober, question(peer.address(), other)).get().empty());
  }
  SECTION("in a minute") {
    const CertificateProber prober({.longest = 1ms, .most_known = 1});
    CHECK(ask(prober, question(mute.address().str(), ca)).get().empty());
    CHECK(ask(prober, question(peer.address(), other)).get().empty());
  }
}

TEST_CASE("certificate_prober: its end answers what is open, and then nothing is asked",
          "[e2e][tls][A29][A65]") {
  const Authority ca("ca");
  MuteSocket mute;
  mute.listen();
  auto prober = std::make_unique<CertificateProber>(actors::CertificateProbes{.longest = 1h});
  const actors::AskForReason asker = prober->asker();
  auto open = ask(*prober, question(mute.address().str(), ca));
  prober = nullptr;
  REQUIRE(open.wait_for(0s) == std::future_status::ready);
  CHECK(open.get().empty());
  CHECK_FALSE(asker(question(mute.address().str(), ca), [](const std::string&) {}));
}

}  // namespace signalbox::test
