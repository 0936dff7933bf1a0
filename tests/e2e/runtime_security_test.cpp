// SPDX-License-Identifier: Apache-2.0
//
// Insecure settings are reported, and secure settings are never weakened.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;

// The log of a runtime that is started with this bootstrap. The runtime has no target, so it
// connects to no server.
std::vector<std::string> told_at_start(const std::string& bootstrap) {
  const auto told = std::make_shared<std::vector<std::string>>();
  RuntimeOptions options;
  options.bootstrap_json = bootstrap;
  options.log = [told](const std::string& text) { told->push_back(text); };
  start_runtime(std::move(options));
  return *told;
}

// The bootstrap for `server`, with credentials of the type `tls` that have this config.
std::string tls_bootstrap(const std::string& server, const std::string& config) {
  return absl::StrReplaceAll(
      bootstrap_for(server),
      {{R"({"type":"insecure"})", absl::StrCat(R"({"type":"tls","config":)", config, "}")}});
}

}  // namespace

TEST_CASE("runtime: plaintext to a control plane on another machine is warned of",
          "[e2e][runtime][A27]") {
  const auto told = told_at_start(bootstrap_for("xds.example:18000"));
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Contains("xds.example:18000") && Contains("plaintext"));
  CHECK(told_at_start(bootstrap_for("127.0.0.1:18000")).empty());
  CHECK(told_at_start(tls_bootstrap("xds.example:18000", "{}")).empty());
}

TEST_CASE("runtime: certificates that cannot be read are what calls say, and no plaintext",
          "[e2e][runtime][A65]") {
  const BackendProcess backend("orders");
  const auto plane = start_plane(simple_yaml("orders", "orders", {backend.address}));
  const TemporaryFolder folder;
  RuntimeOptions options = options_for(plane->address());
  options.bootstrap_json = tls_bootstrap(
      plane->address(), absl::StrCat(R"({"ca_certificate_file":")", folder.path("ca.pem"), "\"}"));
  const auto runtime = start_runtime(std::move(options));
  const Answer answer = call(runtime->channel("xds:///orders"));
  CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(answer.status.error_message(),
             Contains("ca_certificate_file") && Contains(folder.path("ca.pem")));
  CHECK(plane->record().streams_opened == 0);
}

}  // namespace signalbox::test
