// SPDX-License-Identifier: Apache-2.0
#include "actors/io/tls_files.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/certificates.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::actors {
namespace {

using test::Authority;
using test::TemporaryFolder;

// Three valid files in a folder, and the complaints of their reader.
class Files {
 public:
  Files() { write(client_); }

  xds::CertificateFiles names() const {
    return {.ca_certificate_file = folder.path("ca.pem"),
            .certificate_file = folder.path("cert.pem"),
            .private_key_file = folder.path("key.pem")};
  }

  TlsFiles tls() {
    return {names(), [this](const std::string& text) { complaints.push_back(text); }};
  }

  void write(const test::Issued& issued) const {
    folder.write("ca.pem", authority_.certificate());
    folder.write("cert.pem", issued.certificate);
    folder.write("key.pem", issued.key);
  }

  test::Issued issue() const { return authority_.issue("client"); }

  std::string ca() const { return authority_.certificate(); }

  TemporaryFolder folder;
  std::vector<std::string> complaints;

 private:
  const Authority authority_{"ca"};
  const test::Issued client_ = authority_.issue("client");
};

}  // namespace

TEST_CASE("tls files: what is not set is not read", "[actors][io][A65]") {
  CHECK(TlsFiles({}, [](const std::string&) {}).read().value() == PemTexts{});
}

TEST_CASE("tls files: a chain ends with its first certificate, roots with their last",
          "[actors][io][metrics]") {
  using std::chrono::hours;
  const auto now = std::chrono::system_clock::now();
  const auto is_in = [&](const std::optional<CertificateEnds::Time>& end, hours from, hours to) {
    return end && *end > now + from && *end < now + to;
  };
  Files files;
  CHECK(TlsFiles({}, [](const std::string&) {}).ends() == CertificateEnds());
  TlsFiles tls = files.tls();
  CHECK(is_in(tls.ends().identity, hours(23), hours(25)));
  CHECK(is_in(tls.ends().roots, hours(23), hours(25)));

  const Authority other("other");
  const test::Issued expired = other.issue("old", "", test::kExpired);
  files.folder.write("cert.pem", files.issue().certificate);  // It does not match the key file.
  CHECK(is_in(tls.ends().identity, hours(23), hours(25)));
  test::Issued client = files.issue();
  client.certificate += expired.certificate;
  files.write(client);
  files.folder.write("ca.pem", expired.certificate + files.ca());
  CHECK(tls.ends().identity == std::chrono::system_clock::from_time_t(1580515200));  // 2020-02-01
  CHECK(is_in(tls.ends().roots, hours(23), hours(25)));
}

// RFC 5280, 4.1.2.5: this date says that a certificate has no end. It is later than the last
// nanosecond of system_clock.
TEST_CASE("tls files: a certificate without an end has not expired", "[actors][io][metrics]") {
  Files files;
  const test::Issued endless =
      Authority("endless").issue("for ever", "", {.until = "99991231235959Z"});
  files.folder.write("ca.pem", endless.certificate);
  TlsFiles tls = files.tls();
  CHECK(tls.ends().roots > std::chrono::system_clock::now());
}

TEST_CASE("tls files: a chain and several roots are taken whole", "[actors][io][A65]") {
  Files files;
  const test::Issued client = files.issue();
  files.write({client.certificate + files.ca(), client.key});
  files.folder.write("ca.pem", files.ca() + Authority("other").certificate());
  TlsFiles tls = files.tls();
  const auto texts = tls.read();
  REQUIRE(texts.ok());
  CHECK(texts->certificate_chain == client.certificate + files.ca());
  CHECK(texts->private_key == client.key);
  CHECK(texts->roots.size() > files.ca().size());
}

TEST_CASE("tls files: bad ones are an error that names the field, the file and what is wrong",
          "[actors][io][A65]") {
  struct Row {
    const char* when;
    const char* file;
    const char* text;  ///< Null: the file is removed.
    const char* told;
  };

  const auto row = GENERATE(values<Row>({
      {"no roots", "ca.pem", nullptr, "ca_certificate_file "},
      {"roots are no PEM", "ca.pem", "garbage", "expected certificates in PEM"},
      {"no certificate", "cert.pem", nullptr, "certificate_file "},
      {"the certificate is empty", "cert.pem", "", "expected certificates in PEM"},
      {"the certificate is broken",
       "cert.pem",
       "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
       "expected certificates in PEM"},
      {"no key", "key.pem", nullptr, "the file cannot be read"},
      {"the key is no key", "key.pem", "garbage", "expected a private key in PEM"},
  }));
  Files files;
  const auto spoil = [&] {
    if (row.text != nullptr)
      files.folder.write(row.file, row.text);
    else
      std::filesystem::remove(files.folder.path(row.file));
  };
  DYNAMIC_SECTION(row.when << ", from the beginning") {
    spoil();
    TlsFiles tls = files.tls();
    const std::string error(tls.read().status().message());
    CHECK_THAT(error, Catch::Contains(row.told));
    CHECK_THAT(error, Catch::Contains(files.folder.path(row.file)));
    CHECK(files.complaints.empty());
  }
  DYNAMIC_SECTION(row.when << ", later: the last good ones stay, and it is told once") {
    TlsFiles tls = files.tls();
    const auto good = tls.read();
    REQUIRE(good.ok());
    spoil();
    CHECK(tls.read().value() == *good);
    CHECK(tls.read().value() == *good);
    REQUIRE(files.complaints.size() == 1);
    CHECK_THAT(files.complaints[0], Catch::Contains(files.folder.path(row.file)));

    // If the files are repaired and then spoilt again, there is a second complaint.
    const test::Issued fresh = files.issue();
    files.write(fresh);
    CHECK(tls.read().value().certificate_chain == fresh.certificate);
    spoil();
    CHECK(tls.read().value().certificate_chain == fresh.certificate);
    CHECK(files.complaints.size() == 2);
  }
}

TEST_CASE("tls files: a reading may do for a while, good or bad", "[actors][io][A29]") {
  Files files;
  std::vector<std::string> complaints;
  const auto complain = [&](const std::string& text) { complaints.push_back(text); };
  TlsFiles lasting(files.names(), complain, std::chrono::hours(1));
  const auto first = lasting.read();
  REQUIRE(first.ok());
  files.write(files.issue());
  CHECK(lasting.read().value() == *first);
  CHECK(files.tls().read().value().certificate_chain != first->certificate_chain);

  files.folder.write("key.pem", "garbage");
  TlsFiles bad(files.names(), complain, std::chrono::hours(1));
  const absl::Status why = bad.read().status();
  CHECK_FALSE(why.ok());
  files.write(files.issue());
  CHECK(bad.read().status() == why);
}

TEST_CASE("tls files: a pair that is half exchanged is not used", "[actors][io][A65]") {
  Files files;
  TlsFiles tls = files.tls();
  const auto before = tls.read();
  REQUIRE(before.ok());
  const test::Issued next = files.issue();
  files.folder.write("cert.pem", next.certificate);
  CHECK(tls.read().value() == *before);
  REQUIRE(files.complaints.size() == 1);
  CHECK_THAT(files.complaints[0], Catch::Contains("expected the key of"));
  files.folder.write("key.pem", next.key);
  CHECK(tls.read().value().private_key == next.key);
}

}  // namespace signalbox::actors
