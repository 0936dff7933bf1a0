// SPDX-License-Identifier: Apache-2.0
#include "actors/io/cluster_credentials.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/certificates.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::actors::cluster_credentials_test {
namespace {

using Catch::Matchers::Contains;
using test::Authority;

// Valid files of three certificate provider instances: "all" has roots and an identity, "ca" has
// only roots, "me" has only an identity. The default refresh interval is so short that each
// connection reads the files again.
class Files {
 public:
  Files() {
    folder.write("ca.pem", authority_.certificate());
    be(authority_.issue("client"));
  }

  void be(const test::Issued& issued) const {
    folder.write("cert.pem", issued.certificate);
    folder.write("key.pem", issued.key);
  }

  ClusterCredentials credentials(Duration refresh_interval = std::chrono::nanoseconds(1)) {
    xds::CertificateFiles all{.ca_certificate_file = folder.path("ca.pem"),
                              .certificate_file = folder.path("cert.pem"),
                              .private_key_file = folder.path("key.pem"),
                              .refresh_interval = refresh_interval};
    xds::CertificateFiles ca = all;
    ca.certificate_file.clear();
    ca.private_key_file.clear();
    xds::CertificateFiles me = all;
    me.ca_certificate_file.clear();
    return make_cluster_credentials(
        {{"all", all}, {"ca", ca}, {"me", me}},
        [this](const std::string& text) { complaints.push_back(text); });
  }

  const Authority& authority() const { return authority_; }

  test::TemporaryFolder folder;
  std::vector<std::string> complaints;

 private:
  const Authority authority_{"ca"};
};

UpstreamTls tls(const std::string& roots, const std::string& identity = "") {
  UpstreamTls made{CertificateProvider{roots, ""}, std::nullopt, {}};
  if (!identity.empty()) made.identity = CertificateProvider{identity, ""};
  return made;
}

}  // namespace

TEST_CASE("cluster credentials: are the same while nothing changes", "[actors][io][tls][A29]") {
  Files files;
  const auto credentials = files.credentials();
  const auto first = credentials(tls("all", "all"));
  REQUIRE(first.ok());
  CHECK(credentials(tls("all", "all")).value() == *first);
  CHECK(credentials(tls("all")).value() != *first);
  UpstreamTls named = tls("all", "all");
  named.subject_alt_names = {{TextMatcher::Kind::kExact, "a", false}};
  CHECK(credentials(named).value() != *first);
  files.be(files.authority().issue("client"));
  CHECK(credentials(tls("all", "all")).value() != *first);
}

TEST_CASE("cluster credentials: of more than a thousand kinds, not all are kept",
          "[actors][io][tls][A29][limits]") {
  Files files;
  const auto credentials = files.credentials(std::chrono::hours(1));
  const auto of_kind = [&](int kind) {
    UpstreamTls named = tls("all");
    named.subject_alt_names = {{TextMatcher::Kind::kExact, std::to_string(kind), false}};
    return credentials(named).value().grpc;
  };
  std::weak_ptr<grpc::ChannelCredentials> first = of_kind(0);
  for (int kind = 1; kind < 1024; ++kind)
    of_kind(kind);
  REQUIRE(of_kind(0) == first.lock());
  const auto last = of_kind(1024);
  CHECK(first.expired());
  CHECK(of_kind(1024) == last);
}

TEST_CASE("cluster credentials: files are read again for new connections, not for each of many",
          "[actors][io][tls][A29]") {
  Files files;
  const auto credentials = files.credentials(std::chrono::hours(1));
  const auto first = credentials(tls("all", "all"));
  REQUIRE(first.ok());
  files.be(files.authority().issue("client"));
  // After one second a new connection reads the files again, although refresh_interval is longer.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (credentials(tls("all", "all")).value() == *first)
    REQUIRE(std::chrono::steady_clock::now() < deadline);
}

TEST_CASE("cluster credentials: without what is asked for there are none, and the text says why",
          "[actors][io][tls][A29]") {
  Files files;

  struct Row {
    const char* when;
    UpstreamTls wanted;
    const char* without;  ///< A file that is removed.
    std::vector<std::string> told;
  };

  const auto row = GENERATE(values<Row>({
      {"no such instance", tls("other"), "", {R"("other")", "none of that name"}},
      {"no such instance to show", tls("ca", "other"), "", {R"("other")", "none of that name"}},
      {"an instance without roots", tls("me"), "", {R"("me")", "has no ca_certificate_file"}},
      {"an instance without identity", tls("ca", "ca"), "", {R"("ca")", "has no certificate_file"}},
      {"no roots there",
       tls("all"),
       "ca.pem",
       {R"("all")", "ca_certificate_file /", "ca.pem", "cannot be read"}},
      {"no certificate there",
       tls("ca", "me"),
       "cert.pem",
       {R"("me")", "certificate_file /", "cert.pem", "cannot be read"}},
      {"no key there",
       tls("ca", "all"),
       "key.pem",
       {R"("all")", "private_key_file /", "key.pem", "cannot be read"}},
      {"the system's roots",
       UpstreamTls{SystemRoots{}, std::nullopt, {}},
       "",
       {"system_root_certs"}},
  }));
  DYNAMIC_SECTION(row.when) {
    if (row.without[0] != '\0') std::filesystem::remove(files.folder.path(row.without));
    const auto made = files.credentials()(row.wanted);
    REQUIRE_FALSE(made.ok());
    for (const std::string& part : row.told)
      CHECK_THAT(std::string(made.status().message()), Contains(part));
    CHECK(files.complaints.empty());
  }
}

TEST_CASE("cluster credentials: what another cluster needs of an instance is its own business",
          "[actors][io][tls][A29]") {
  Files files;
  std::filesystem::remove(files.folder.path("ca.pem"));
  const auto credentials = files.credentials();
  CHECK_FALSE(credentials(tls("all", "all")).ok());
  files.folder.write("ca.pem", files.authority().certificate());
  files.folder.write("key.pem", "garbage");
  CHECK(credentials(tls("all")).ok());
  CHECK_FALSE(credentials(tls("all", "all")).ok());
}

TEST_CASE("cluster credentials: the last good files stay in use, and that is told once",
          "[actors][io][tls][A29]") {
  Files files;
  const auto credentials = files.credentials();
  const auto good = credentials(tls("all", "all"));
  REQUIRE(good.ok());
  files.folder.write("key.pem", "garbage");
  CHECK(credentials(tls("all", "all")).value() == *good);
  CHECK(credentials(tls("all", "all")).value() == *good);
  REQUIRE(files.complaints.size() == 1);
  CHECK_THAT(files.complaints[0],
             Contains(R"("all")") && Contains("private_key_file") && Contains("stay in use"));
}

}  // namespace signalbox::actors::cluster_credentials_test
