// SPDX-License-Identifier: Apache-2.0
//
// TLS to the backends as CDS says, while certificates and clusters change. Also the certificates'
// ends in /metrics and on the page /certs. Backends are processes of their own.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <grpcpp/security/credentials.h>
#include <nlohmann/json.hpp>

#include "channel/admin/status_json.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tools/admin_client.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;

const char* const kServerNames = "IP:127.0.0.1,DNS:*.orders.example,URI:spiffe://mesh/orders";

// The transport socket of a cluster. `names`: match_subject_alt_names; `identity`: whether the
// client shows its certificate.
std::string tls_yaml(const std::string& names = "",
                     bool identity = false,
                     const std::string& instance = "files") {
  return absl::StrCat(
      ", transport_socket: {name: tls, typed_config: {\"@type\": type.googleapis.com/"
      "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: "
      "{validation_context: {ca_certificate_provider_instance: {instance_name: ",
      instance,
      "}, match_subject_alt_names: [",
      names,
      "]}",
      identity
          ? absl::StrCat(", tls_certificate_provider_instance: {instance_name: ", instance, "}")
          : "",
      "}}}");
}

// A control plane, and a runtime with two certificate providers that read files of a folder.
class TlsWorld {
 public:
  TlsWorld() {
    folder.write("ca.pem", servers.certificate());
    folder.write("other-ca.pem", others.certificate());
    be(clients.issue("client"));
  }

  void be(const Issued& issued) const {
    folder.write("cert.pem", issued.certificate);
    folder.write("key.pem", issued.key);
  }

  // A backend with a certificate of `ca`. It requires a client certificate if `client_ca` is set.
  std::unique_ptr<BackendProcess> backend(const std::string& name,
                                          const Authority& ca,
                                          const Authority* client_ca = nullptr,
                                          const std::string& names = kServerNames) const {
    const Issued issued = ca.issue(name, names);
    std::vector<std::string> arguments{"--certificate",
                                       folder.write(name + "-cert.pem", issued.certificate),
                                       "--private-key",
                                       folder.write(name + "-key.pem", issued.key)};
    if (client_ca != nullptr) {
      arguments.insert(
          arguments.end(),
          {"--client-ca", folder.write(name + "-clients.pem", client_ca->certificate())});
    }
    return std::make_unique<BackendProcess>(name, arguments);
  }

  static std::string cluster(const std::string& tls, const std::vector<std::string>& addresses) {
    return absl::StrCat(listener_yaml("orders", "orders"),
                        routes_yaml("orders", "orders"),
                        cluster_yaml("orders", "", tls),
                        endpoints_yaml("orders", {addresses}));
  }

  void start(const std::string& yaml) {
    plane = start_plane(yaml);
    RuntimeOptions options = options_for(plane->address());
    options.bootstrap_json->pop_back();
    absl::StrAppend(&*options.bootstrap_json,
                    R"(,"certificate_providers":{"files":)",
                    provider("ca.pem"),
                    R"(,"others":)",
                    provider("other-ca.pem"),
                    "}}");
    options.channel_credentials = fallback;
    options.log_line = [this](const LogLine& line) {
      if (line.kind != LogKind::kCertificate) return;
      const std::lock_guard lock(mutex_);
      told_.push_back(line.text);
    };
    runtime = start_runtime(std::move(options));
    channel = runtime->channel("xds:///orders");
  }

  void set(const std::string& yaml) const { plane->set_resources(resources(yaml)); }

  // Calls until `cluster` answers a call, however earlier calls end.
  void require_served_by(const std::string& cluster) const {
    std::string last;
    const bool served = eventually([&] {
      const Answer answer = call(channel);
      last = answer.text();
      return answer.ok() && answer.cluster == cluster;
    });
    INFO(last);
    REQUIRE(served);
  }

  std::vector<std::string> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

  const Authority servers{"servers"};
  const Authority others{"other servers"};
  const Authority clients{"clients"};
  const TemporaryFolder folder;
  std::shared_ptr<grpc::ChannelCredentials> fallback;
  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<Runtime> runtime;
  std::shared_ptr<grpc::ChannelInterface> channel;

 private:
  std::string provider(const std::string& ca) const {
    return absl::StrCat(R"({"plugin_name":"file_watcher","config":{"ca_certificate_file":")",
                        folder.path(ca),
                        R"(","certificate_file":")",
                        folder.path("cert.pem"),
                        R"(","private_key_file":")",
                        folder.path("key.pem"),
                        R"(","refresh_interval":"0.001s"}})");
  }

  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

void check_refused(const Answer& answer, const std::vector<std::string>& parts) {
  INFO(answer.text());
  CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  for (const std::string& part : parts)
    CHECK_THAT(answer.status.error_message(), Contains(part));
}

}  // namespace

TEST_CASE("runtime tls: a backend is trusted if its authority is", "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  const auto good = world.backend("good", world.servers);
  const auto bad = world.backend("bad", world.others);
  SECTION("it is") {
    world.start(world.cluster(tls_yaml(), {good->address}));
    const Answer answer = call(world.channel);
    INFO(answer.text());
    CHECK(answer.cluster == "good");
  }
  SECTION("it is not") {
    world.start(world.cluster(tls_yaml(), {bad->address}));
    check_refused(call(world.channel), {bad->address, "andshake"});
  }
  SECTION("it is that of the other instance") {
    world.start(world.cluster(tls_yaml("", false, "others"), {bad->address}));
    CHECK(call(world.channel).cluster == "bad");
  }
}

// For a refused certificate gRPC's error is only "certificate verify failed"; stderr has more.
TEST_CASE("runtime tls: the error of a connection says or asks for what gRPC does not say",
          "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  const std::string refused = "certificate verify failed: the server's certificate";
  SECTION("the backend's certificate is signed by another authority") {
    const auto backend = world.backend("backend", world.others);
    world.start(world.cluster(tls_yaml(), {backend->address}));
    check_refused(
        call(world.channel),
        {"connection to " + backend->address + " failed: ",
         refused +
             " (issuer \"CN = other servers\") is not signed by any certificate of "
             "ca_certificate_file " +
             world.folder.path("ca.pem") + " of certificate provider instance \"files\""});
  }
  SECTION("the backend's certificate has expired") {
    const Issued issued = world.servers.issue("old", kServerNames, kExpired);
    const BackendProcess backend("old",
                                 {"--certificate",
                                  world.folder.write("old-cert.pem", issued.certificate),
                                  "--private-key",
                                  world.folder.write("old-key.pem", issued.key)});
    world.start(world.cluster(tls_yaml(), {backend.address}));
    check_refused(call(world.channel), {refused + " expired 2020-02-01 00:00:00 UTC"});
  }
  SECTION("the backend wants TLS") {
    const auto backend = world.backend("backend", world.servers);
    world.start(world.cluster("", {backend->address}));
    check_refused(call(world.channel),
                  {"connection to " + backend->address + " failed: ",
                   "; the connection is plaintext: does the server want TLS?"});
  }
  SECTION("the backend has no TLS") {
    const BackendProcess plain("plain");
    world.start(world.cluster(tls_yaml(), {plain.address}));
    check_refused(call(world.channel),
                  {"; the server's answer is not TLS: is the server plaintext?"});
  }
  SECTION("the backend wants a client certificate") {
    const auto backend = world.backend("backend", world.servers, &world.clients);
    world.start(world.cluster(tls_yaml(), {backend->address}));
    check_refused(call(world.channel), {"; does the server want a client certificate?"});
  }
  SECTION("the backend wants another client certificate") {
    const auto backend = world.backend("backend", world.servers, &world.clients);
    world.be(world.others.issue("client"));
    world.start(world.cluster(tls_yaml("", true), {backend->address}));
    check_refused(call(world.channel), {"; does the server trust the client's certificate?"});
  }
}

TEST_CASE("runtime tls: a backend without TLS gets no call of a cluster that asks for it",
          "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  const BackendProcess plain("plain");
  world.fallback = grpc::InsecureChannelCredentials();
  SECTION("though we have what TLS needs") {
    world.start(world.cluster(tls_yaml(), {plain.address}));
    check_refused(call(world.channel), {plain.address});
  }
  SECTION("nor when we have not") {
    std::filesystem::remove(world.folder.path("ca.pem"));
    world.start(world.cluster(tls_yaml(), {plain.address}));
    check_refused(call(world.channel), {plain.address, "ca_certificate_file"});
  }
}

TEST_CASE("runtime tls: the authority of a call need not be a name of the backend",
          "[e2e][runtime][tls][A29][A81]") {
  TlsWorld world;
  const auto backend = world.backend("orders", world.servers);
  world.start(world.cluster(tls_yaml("{exact: \"spiffe://mesh/orders\"}"), {backend->address}));
  Stub stub(world.channel);
  grpc::ClientContext context;
  context.set_authority("nobody.example");
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  demo::v1::PlaceReply reply;
  const grpc::Status status = stub.Place(&context, {}, &reply);
  INFO(status.error_message());
  CHECK(status.ok());
  CHECK(reply.cluster() == "orders");
}

TEST_CASE("runtime tls: one of the backend's names must be allowed", "[e2e][runtime][tls][A29]") {
  struct Row {
    const char* when;
    const char* names;
    bool allowed;
  };

  TlsWorld world;
  const auto backend = world.backend("orders", world.servers);
  // All clusters have the same address. A call must not use a connection that only the TLS settings
  // of another cluster allow.
  const std::vector<Row> rows{
      {"exact", "{exact: \"spiffe://mesh/orders\"}", true},
      {"exact, another", "{exact: \"spiffe://mesh/users\"}", false},
      {"exact, a wildcard's", "{exact: a.orders.example}", true},
      {"exact, two labels", "{exact: a.b.orders.example}", false},
      {"exact, an address", "{exact: 127.0.0.1}", true},
      {"exact, in another case", "{exact: \"SPIFFE://mesh/orders\"}", false},
      {"in any case", "{exact: \"SPIFFE://mesh/orders\", ignore_case: true}", true},
      {"prefix", "{prefix: \"spiffe://mesh/\"}", true},
      {"prefix, another", "{prefix: \"spiffe://other/\"}", false},
      {"suffix", "{suffix: /orders}", true},
      {"suffix, another", "{suffix: /users}", false},
      {"contains", "{contains: mesh}", true},
      {"contains, another", "{contains: fish}", false},
      {"regex", "{safe_regex: {regex: \"spiffe://[a-z]+/orders\"}}", true},
      {"regex, a part", "{safe_regex: {regex: \"spiffe\"}}", false},
      {"the second of two", "{exact: a.users.example}, {suffix: /orders}", true},
      {"none is asked for", "", true},
  };
  std::string yaml;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string name = absl::StrCat("orders-", i);
    absl::StrAppend(&yaml,
                    listener_yaml(name, name),
                    routes_yaml(name, name),
                    cluster_yaml(name, "", tls_yaml(rows[i].names)),
                    endpoints_yaml(name, {{backend->address}}));
  }
  world.start(yaml);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(rows[i].when);
    const Answer answer = call(world.runtime->channel(absl::StrCat("xds:///orders-", i)));
    if (rows[i].allowed) {
      INFO(answer.text());
      CHECK(answer.ok());
    } else {
      check_refused(answer,
                    {"match_subject_alt_names asks for",
                     "\"*.orders.example\", \"127.0.0.1\", \"spiffe://mesh/orders\""});
    }
  }
}

TEST_CASE("runtime tls: we say who we are where the cluster tells us to",
          "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  const auto backend = world.backend("orders", world.servers, &world.clients);
  SECTION("with a certificate that the backend trusts") {
    world.start(world.cluster(tls_yaml("", true), {backend->address}));
    const Answer answer = call(world.channel);
    INFO(answer.text());
    CHECK(answer.ok());
  }
  SECTION("without one") {
    world.start(world.cluster(tls_yaml("", false), {backend->address}));
    CHECK(call(world.channel).status.error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  SECTION("with one that it does not trust") {
    world.be(world.others.issue("client"));
    world.start(world.cluster(tls_yaml("", true), {backend->address}));
    CHECK(call(world.channel).status.error_code() == grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_CASE("runtime tls: rotated files are used for new connections, and the others stay",
          "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  const Authority new_servers("new servers");
  const Authority new_clients("new clients");
  const auto before = world.backend("before", world.servers, &world.clients);
  const auto after = world.backend("after", new_servers, &new_clients);
  world.start(world.cluster(tls_yaml("", true), {before->address}));
  world.require_served_by("before");

  world.folder.write("ca.pem", new_servers.certificate());
  world.be(new_clients.issue("client"));
  world.set(world.cluster(tls_yaml("", true), {before->address, after->address}));
  world.require_served_by("after");
  world.require_served_by("before");
  CHECK(metric(*world.runtime, "signalbox_connection_attempts_total", {"result=\"success\""}) == 2);
}

TEST_CASE("runtime tls: files that go bad leave the last good ones in use, and that is told",
          "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  const auto first = world.backend("first", world.servers, &world.clients);
  const auto second = world.backend("second", world.servers, &world.clients);
  world.start(world.cluster(tls_yaml("", true), {first->address}));
  world.require_served_by("first");

  world.folder.write("ca.pem", "garbage");
  std::filesystem::remove(world.folder.path("key.pem"));
  world.set(world.cluster(tls_yaml("", true), {second->address}));
  world.require_served_by("second");
  const auto told = world.told();
  REQUIRE(told.size() == 2);
  CHECK_THAT(told[0], Contains("\"files\"") && Contains("ca_certificate_file"));
  CHECK_THAT(told[1], Contains("\"files\"") && Contains("private_key_file"));
  CHECK(metric(*world.runtime, "signalbox_config_rejected_total", {"reason=\"certificate\""}) == 2);
  CHECK(metric(*world.runtime,
               "signalbox_certificate_reload_failures_total",
               {"role=\"endpoint\""}) == 2);
}

TEST_CASE("runtime tls: files that never were good are what calls say, until they are",
          "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  std::filesystem::remove(world.folder.path("ca.pem"));
  const auto backend = world.backend("orders", world.servers);
  world.start(world.cluster(tls_yaml(), {backend->address}));
  check_refused(call(world.channel),
                {"certificate provider instance \"files\"",
                 "ca_certificate_file " + world.folder.path("ca.pem"),
                 "cannot be read"});
  world.folder.write("ca.pem", world.servers.certificate());
  world.require_served_by("orders");
}

TEST_CASE("runtime tls: from plaintext to TLS to another authority, by updates of the cluster",
          "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  const BackendProcess plain("plain");
  const auto one = world.backend("one", world.servers);
  const auto two = world.backend("two", world.others);
  const std::vector<std::string> all{plain.address, one->address, two->address};
  const auto only = [&](const std::string& name, const std::string& tls) {
    world.set(world.cluster(tls, all));
    world.require_served_by(name);
    for (int i = 0; i < 20; ++i)
      CHECK(call(world.channel).cluster == name);
  };
  world.start(world.cluster("", all));
  world.require_served_by("plain");
  only("one", tls_yaml());
  only("two", tls_yaml("", false, "others"));
  only("plain", "");
}

TEST_CASE("runtime tls: calls on an old connection run to their end", "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  HoldingBackend plain("plain");
  const auto secure = world.backend("secure", world.servers);
  world.start(world.cluster("", {plain.address()}));
  Calls calls(world.channel);
  calls.start(1, {.item = "hold"});
  REQUIRE(eventually([&] { return plain.held() == 1; }));
  world.set(world.cluster(tls_yaml(), {plain.address(), secure->address}));
  world.require_served_by("secure");
  plain.release();
  const auto answers = calls.finish();
  REQUIRE(answers.size() == 1);
  INFO(answers[0].text());
  CHECK(answers[0].cluster == "plain");
}

TEST_CASE("runtime tls: a cluster that stays secured as it was keeps its connections",
          "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  const auto backend = world.backend("orders", world.servers);
  const std::string tls = tls_yaml("{exact: a.orders.example}");
  world.start(world.cluster(tls, {backend->address}));
  world.require_served_by("orders");
  world.set(world.cluster(tls + ", circuit_breakers: {thresholds: [{max_requests: 7}]}",
                          {backend->address}));
  REQUIRE(
      eventually([&] { return metric(*world.runtime, "signalbox_circuit_breaker_limit") == 7; }));
  CHECK(call(world.channel).ok());
  CHECK(metric(*world.runtime, "signalbox_connection_attempts_total") == 1);
}

TEST_CASE("runtime tls: fallback credentials are for clusters that say nothing of security",
          "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  // The fallback credentials have gRPC check the server's name against the target's name, "orders".
  // The address would not match.
  world.fallback = grpc::SslCredentials({.pem_root_certs = world.others.certificate()});
  const auto of_fallback = world.backend("of-fallback", world.others, nullptr, "DNS:orders");
  const auto of_cluster = world.backend("of-cluster", world.servers);
  const std::vector<std::string> both{of_fallback->address, of_cluster->address};
  world.start(world.cluster("", both));
  world.require_served_by("of-fallback");
  CHECK(call(world.channel).cluster == "of-fallback");
  world.set(world.cluster(tls_yaml(), both));
  world.require_served_by("of-cluster");
  CHECK(call(world.channel).cluster == "of-cluster");
}

TEST_CASE("runtime tls: an instance that the bootstrap does not have is a NACK",
          "[e2e][runtime][tls][A29]") {
  TlsWorld world;
  const BackendProcess plain("plain");
  world.start(world.cluster(tls_yaml("", false, "none"), {plain.address}));
  check_refused(call(world.channel), {"\"none\"", "certificate_providers (files, others)"});
  REQUIRE(world.plane->wait_for([](const DiscoveryRecord& record) { return !record.nacks.empty(); },
                                kPatience));
}

namespace {

// When the certificates of a role end, as /metrics shows it.
std::optional<WallTime> end_of(const Runtime& runtime, const std::string& role) {
  const auto seconds =
      metric(runtime, "signalbox_certificate_expiry_timestamp_seconds", {"role=\"" + role + "\""});
  if (!seconds) return std::nullopt;
  return WallTime(std::chrono::seconds(static_cast<std::int64_t>(*seconds)));
}

// The page /certs of a runtime, as JSON.
nlohmann::json certs_of(Runtime& runtime) {
  const auto served = runtime.serve_admin("127.0.0.1:0");
  REQUIRE(served.ok());
  const auto page =
      tools::admin_get(channel::parse_admin_address(*served).value(), "/certs?format=json");
  INFO(page.status().ToString());
  REQUIRE(page.ok());
  return nlohmann::json::parse(*page)["certificates"];
}

// Whether `end` lies within the next day. By default the certificates of tests end a day after they
// are made.
bool is_within_a_day(const std::optional<WallTime>& end) {
  const WallTime now = std::chrono::system_clock::now();
  return end && *end > now && *end <= now + std::chrono::hours(24);
}

}  // namespace

TEST_CASE("runtime tls: metrics and /certs say when certificates of endpoints end",
          "[e2e][runtime][tls][metrics][admin]") {
  TlsWorld world;
  const auto backend = world.backend("good", world.servers, &world.clients);
  world.start(world.cluster(tls_yaml("", true), {backend->address}));
  REQUIRE(call(world.channel).cluster == "good");
  Runtime& runtime = *world.runtime;
  CHECK(is_within_a_day(end_of(runtime, "endpoint_identity")));
  CHECK(is_within_a_day(end_of(runtime, "endpoint_root")));
  CHECK_FALSE(end_of(runtime, "control_plane_identity"));
  CHECK_FALSE(end_of(runtime, "control_plane_root"));

  // The program's next certificate has expired already.
  world.be(world.clients.issue("client", kServerNames, kExpired));
  CHECK(eventually([&] {
    const auto end = end_of(runtime, "endpoint_identity");
    return end && *end < std::chrono::system_clock::now();
  }));
  CHECK(is_within_a_day(end_of(runtime, "endpoint_root")));

  // The page has both certificate providers, by name: "files" and "others".
  const nlohmann::json certs = certs_of(runtime);
  INFO(certs.dump(1));
  REQUIRE(certs.size() == 2);
  const nlohmann::json& chain = certs[0]["cert_chain"].at(0);
  CHECK(chain["path"] == world.folder.path("cert.pem"));
  CHECK(chain["expiration_time"] == channel::rfc3339(*end_of(runtime, "endpoint_identity")));
  CHECK(chain["days_until_expiration"] == "0");
  CHECK(chain["subject_alt_names"][0]["dns"] == "*.orders.example");
  const nlohmann::json& root = certs[0]["ca_cert"].at(0);
  CHECK(root["path"] == world.folder.path("ca.pem"));
  CHECK(root["expiration_time"] == channel::rfc3339(*end_of(runtime, "endpoint_root")));
  CHECK(certs[1]["ca_cert"].at(0)["path"] == world.folder.path("other-ca.pem"));
  CHECK_THAT(certs.dump(), !Contains("key.pem") && !Contains("PRIVATE KEY"));
}

TEST_CASE("runtime tls: metrics and /certs say when certificates for the control plane end",
          "[e2e][runtime][tls][metrics][admin]") {
  const Authority planes("control planes");
  const Authority clients("clients");
  const Issued own = clients.issue("client", "DNS:client.example", kExpired);
  const TemporaryFolder folder;
  const RefusingAddress plane;
  RuntimeOptions options = options_for(plane.address());
  options.bootstrap_json =
      replaced(*options.bootstrap_json,
               R"({"type":"insecure"})",
               absl::StrCat(R"({"type":"tls","config":{"ca_certificate_file":")",
                            folder.write("ca.pem", planes.certificate()),
                            R"(","certificate_file":")",
                            folder.write("cert.pem", own.certificate),
                            R"(","private_key_file":")",
                            folder.write("key.pem", own.key),
                            R"("}})"));
  const auto runtime = start_runtime(std::move(options));
  const auto root = end_of(*runtime, "control_plane_root");
  const auto identity = end_of(*runtime, "control_plane_identity");
  CHECK(is_within_a_day(root));
  REQUIRE(identity);
  CHECK(*identity < std::chrono::system_clock::now());
  CHECK_FALSE(end_of(*runtime, "endpoint_identity"));

  const nlohmann::json certs = certs_of(*runtime);
  INFO(certs.dump(1));
  REQUIRE(certs.size() == 1);
  CHECK(certs[0]["cert_chain"].at(0)["expiration_time"] == channel::rfc3339(*identity));
  CHECK(certs[0]["ca_cert"].at(0)["expiration_time"] == channel::rfc3339(*root));
}

}  // namespace signalbox::test
