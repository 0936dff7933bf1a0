// SPDX-License-Identifier: Apache-2.0
//
// TLS to the control plane: which servers are trusted, the client's identity, files that change,
// and the errors of connections.
#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <grpcpp/grpcpp.h>

#include "actors/io/connection_credentials.hpp"
#include "actors/io/grpc_ads_transport.hpp"
#include "tests/e2e/ads_peer.hpp"
#include "tests/e2e/attempt_record.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test {
namespace {

// Credentials of a server with a certificate of `own`. If `clients` is set, the server requires
// client certificates that `clients` has issued.
std::shared_ptr<grpc::ServerCredentials> server_of(const Authority& own,
                                                   const Authority* clients = nullptr,
                                                   const Dates& dates = {}) {
  const Issued issued = own.issue("server", "IP:127.0.0.1", dates);
  grpc::SslServerCredentialsOptions options(
      clients == nullptr ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                         : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_key_cert_pairs.push_back({issued.key, issued.certificate});
  if (clients != nullptr) options.pem_root_certs = clients->certificate();
  return grpc::SslServerCredentials(options);
}

// The client's files, and a transport that uses them.
class Client {
 public:
  explicit Client(bool has_certificate) : has_certificate_(has_certificate) {}

  void trust(const Authority& ca) const { folder_.write("ca.pem", ca.certificate()); }

  void be(const Issued& issued) const {
    folder_.write("cert.pem", issued.certificate);
    folder_.write("key.pem", issued.key);
  }

  void spoil() const { folder_.write("key.pem", "garbage"); }

  // Makes the transport. After it has refused a server's certificate, the transport makes a second
  // connection to learn why. `explaining`, if set, replaces the credentials of this connection.
  void connect_to(const std::string& address,
                  const std::shared_ptr<grpc::ChannelCredentials>& explaining = nullptr) {
    actors::GrpcAdsOptions options;
    options.server_uri = address;
    xds::TlsCredentials tls;
    tls.files.ca_certificate_file = folder_.path("ca.pem");
    if (has_certificate_) {
      tls.files.certificate_file = folder_.path("cert.pem");
      tls.files.private_key_file = folder_.path("key.pem");
    }
    options.security = actors::security_of(xds::ChannelCredentials(tls));
    options.credentials = actors::make_credentials(
        tls, [this](const std::string& text) { complaints.push_back(text); });
    if (explaining != nullptr) {
      options.credentials = [made = options.credentials, explaining] {
        return actors::ConnectionCredentials{made()->grpc, explaining};
      };
    }
    transport_ = actors::make_grpc_ads_transport(options);
  }

  actors::AdsTransport& transport() const { return *transport_; }

  std::vector<std::string> complaints;

 private:
  const bool has_certificate_;
  const TemporaryFolder folder_;
  std::shared_ptr<actors::AdsTransport> transport_;
};

// Sets an environment variable for the life of the object, or unsets it if `value` is null.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    set(value);
  }

  ~Variable() { set(before_ ? before_->c_str() : nullptr); }

  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, value, /*overwrite=*/1);
    }
  }

  const char* const name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("ads tls: a server is trusted if its authority is", "[e2e][ads][A65]") {
  const Authority ca("ca");
  const Authority other("other");
  AdsPeer peer({.credentials = server_of(ca)});
  Client client(false);
  client.trust(other);
  client.connect_to(peer.address());
  {
    AdsEnd end(client.transport());
    CHECK_FALSE(end.is_answered());
    CHECK(end.closed().code() == absl::StatusCode::kUnavailable);
  }
  // The next connection reads ca.pem again, which now has the authority of the server.
  client.trust(ca);
  CHECK(AdsEnd(client.transport()).is_answered());
}

TEST_CASE("ads tls: a server that speaks no TLS is not spoken to", "[e2e][ads][A65]") {
  AdsPeer peer({});
  const Authority ca("ca");
  Client client(false);
  client.trust(ca);
  client.connect_to(peer.address());
  AdsEnd end(client.transport());
  CHECK_FALSE(end.is_answered());
  CHECK_THAT(std::string(end.closed().message()), Catch::EndsWith("is the server plaintext?"));
}

TEST_CASE("ads tls: the error of a connection says or asks for what gRPC does not say",
          "[e2e][ads][A65]") {
  const Authority ca("ca");
  const Authority clients("clients");
  Client client(false);
  client.trust(ca);
  const auto error_of = [](actors::AdsTransport& transport) {
    AdsEnd end(transport);
    CHECK_FALSE(end.is_answered());
    CHECK(end.closed().code() == absl::StatusCode::kUnavailable);
    return std::string(end.closed().message());
  };
  SECTION("the authority of the server's certificate") {
    AdsPeer peer({.credentials = server_of(clients)});
    client.connect_to(peer.address());
    CHECK_THAT(error_of(client.transport()),
               Catch::Contains("certificate verify failed: the server's certificate (issuer \"CN = "
                               "clients\") is not signed by any certificate of "
                               "ca_certificate_file /") &&
                   Catch::EndsWith("/ca.pem"));
  }
  SECTION("the dates of the server's certificate") {
    AdsPeer peer({.credentials = server_of(ca, nullptr, kExpired)});
    client.connect_to(peer.address());
    CHECK_THAT(error_of(client.transport()),
               Catch::EndsWith("certificate verify failed: the server's certificate expired "
                               "2020-02-01 00:00:00 UTC"));
  }
  SECTION("the dates of the certificate of a server that wants one of the client") {
    AdsPeer peer({.credentials = server_of(ca, &clients, kNotYetValid)});
    client.connect_to(peer.address());
    CHECK_THAT(error_of(client.transport()),
               Catch::EndsWith("certificate verify failed: the server's certificate is not valid "
                               "before 2090-01-02 03:04:05 UTC"));
  }
  SECTION("the server's certificate, when the second connection does not show it") {
    AdsPeer peer({.credentials = server_of(clients)});
    client.connect_to(peer.address(), grpc::InsecureChannelCredentials());
    CHECK_THAT(error_of(client.transport()),
               Catch::Contains("certificate verify failed; is the server's certificate signed by a "
                               "certificate of ca_certificate_file /") &&
                   Catch::EndsWith("/ca.pem, and is today between the dates of both?"));
  }
  SECTION("the client's certificate") {
    AdsPeer peer({.credentials = server_of(ca, &clients)});
    client.connect_to(peer.address());
    CHECK_THAT(error_of(client.transport()),
               Catch::EndsWith("; does the server want a client certificate?"));
  }
  SECTION("TLS") {
    AdsPeer peer({.credentials = server_of(ca)});
    const auto transport = actors::make_grpc_ads_transport(
        {.server_uri = peer.address(),
         .credentials = actors::make_credentials(xds::InsecureCredentials{}, [](const auto&) {}),
         .security = actors::security_of(xds::InsecureCredentials{})});
    CHECK_THAT(error_of(*transport),
               Catch::EndsWith("; the connection is plaintext: does the server want TLS?"));
  }
}

TEST_CASE(
    "ads tls: a connection that explains a refusal carries no call, however good the "
    "certificate is",
    "[e2e][ads][A65]") {
  const Authority ca("ca");
  std::atomic<int> heard = 0;
  AdsPeer peer({.credentials = server_of(ca), .hear = [&](const std::string&) { ++heard; }});
  const auto explaining = actors::explaining_credentials(ca.certificate(), "the roots");
  const auto transport =
      actors::make_grpc_ads_transport({.server_uri = peer.address(), .credentials = [&] {
                                         return actors::ConnectionCredentials{explaining};
                                       }});
  AdsEnd end(*transport);
  CHECK_FALSE(end.is_answered());
  CHECK(end.closed().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(end.closed().message()), Catch::EndsWith("signalbox's verdict: "));
  CHECK(heard == 0);
}

TEST_CASE("ads tls: a refusal that the server does not explain in a second stays unexplained",
          "[e2e][ads][A65]") {
  MuteSocket mute;
  mute.listen();
  std::promise<std::string> verdict;
  actors::explain_refusal(
      grpc::CreateChannel(mute.address().str(),
                          actors::explaining_credentials(Authority("ca").certificate(), "ca")),
      [&](const std::string& found) { verdict.set_value(found); });
  auto found = verdict.get_future();
  REQUIRE(found.wait_for(kPatience) == std::future_status::ready);
  CHECK(found.get().empty());
}

TEST_CASE("ads tls: without roots of its own the system's are trusted, which know no test",
          "[e2e][ads][A65]") {
  const Authority ca("ca");
  AdsPeer peer({.credentials = server_of(ca)});
  const char* roots_file = nullptr;
  std::string error = "is not signed by any certificate of the system's roots";
  SECTION("of the system") {}
  SECTION("of a variable, which has no verdict") {
    roots_file = "/etc/roots.pem";
    error = "certificate verify failed";
  }
  const Variable file("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", roots_file);
  const Variable none("GRPC_NOT_USE_SYSTEM_SSL_ROOTS", nullptr);
  const Variable folder("GRPC_SYSTEM_SSL_ROOTS_DIR", nullptr);
  actors::GrpcAdsOptions options;
  options.server_uri = peer.address();
  options.credentials = actors::make_credentials(xds::TlsCredentials{}, [](const std::string&) {});
  const auto transport = actors::make_grpc_ads_transport(options);
  AdsEnd end(*transport);
  CHECK_FALSE(end.is_answered());
  CHECK(end.closed().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(end.closed().message()), Catch::EndsWith(error));
}

TEST_CASE("ads tls: a rotated certificate is shown with the next connection", "[e2e][ads][A65]") {
  const Authority servers("servers");
  const Authority old_clients("old clients");
  const Authority new_clients("new clients");
  Client client(true);
  client.trust(servers);
  client.be(old_clients.issue("client"));
  std::string address;
  {
    AdsPeer before({.credentials = server_of(servers, &old_clients)});
    address = before.address();
    client.connect_to(address);
    CHECK(AdsEnd(client.transport()).is_answered());
  }
  AdsPeer after({.address = address, .credentials = server_of(servers, &new_clients)});
  CHECK_FALSE(AdsEnd(client.transport()).is_answered());
  client.be(new_clients.issue("client"));
  CHECK(AdsEnd(client.transport()).is_answered());

  // A key file that cannot be parsed is reported, and the last good key stays in use.
  client.spoil();
  CHECK(AdsEnd(client.transport()).is_answered());
  REQUIRE(client.complaints.size() == 1);
  CHECK_THAT(client.complaints[0], Catch::Contains("private_key_file"));
}

TEST_CASE("ads tls: files that were never good are the stream's error", "[e2e][ads][A65]") {
  const Authority ca("ca");
  AdsPeer peer({.credentials = server_of(ca)});
  Client client(false);
  client.connect_to(peer.address());
  const absl::Status why = AdsEnd(client.transport()).closed();
  CHECK_THAT(std::string(why.message()),
             Catch::StartsWith("ca_certificate_file ") && Catch::EndsWith("cannot be read"));
  // The next stream reads ca.pem again. The file did not exist until now.
  client.trust(ca);
  CHECK(AdsEnd(client.transport()).is_answered());
}

}  // namespace signalbox::test
