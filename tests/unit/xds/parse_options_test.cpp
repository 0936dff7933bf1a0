// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/parse_options.hpp"

#include <map>
#include <string>

#include <catch2/catch.hpp>

namespace signalbox::xds {
namespace {

ParseOptions in(const std::map<std::string, std::string>& environment, bool trusted = false) {
  return parse_options_from(
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      trusted);
}

}  // namespace

TEST_CASE("parse options: each variable has one value that changes something",
          "[xds][parse][A55-40][D11]") {
  struct Row {
    const char* variable;
    bool ParseOptions::* option;
    bool usual;
    const char* changing;
    const char* other;
    const char* tag;
  };

  const auto row = GENERATE(values<Row>({
      {"GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT",
       &ParseOptions::keep_aggregate_lb_policy,
       false,
       "true",
       "false",
       "A75-8"},
      {"GRPC_EXPERIMENTAL_XDS_ENABLE_OVERRIDE_HOST",
       &ParseOptions::session_affinity,
       true,
       "false",
       "true",
       "A55-40"},
      {"GRPC_EXPERIMENTAL_XDS_DUALSTACK_ENDPOINTS",
       &ParseOptions::dualstack_endpoints,
       true,
       "false",
       "true",
       "A61"},
      {"GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT",
       &ParseOptions::endpoint_hash_key,
       true,
       "true",
       "false",
       "A76"},
      {"GRPC_EXPERIMENTAL_XDS_ORCA_LRS_PROPAGATION",
       &ParseOptions::endpoint_metrics_are_chosen,
       false,
       "true",
       "false",
       "A85"},
      {"GRPC_EXPERIMENTAL_XDS_HTTP_CONNECT",
       &ParseOptions::http_connect,
       false,
       "true",
       "false",
       "A86"},
      {"GRPC_EXPERIMENTAL_XDS_AUTHORITY_REWRITE",
       &ParseOptions::authority_rewrite,
       false,
       "true",
       "false",
       "A81"},
  }));
  DYNAMIC_SECTION(row.tag) {
    CHECK(in({}, true).*row.option == row.usual);
    CHECK(in({{row.variable, row.changing}}, true).*row.option != row.usual);
    CHECK(in({{row.variable, row.other}}, true).*row.option == row.usual);
    CHECK(in({{row.variable, ""}}, true).*row.option == row.usual);
    CHECK(in({{row.variable, "1"}}, true).*row.option == row.usual);
    CHECK(in({{row.variable, "TRUE"}}, true).*row.option == row.usual);
  }
}

TEST_CASE("parse options: servers that are not trusted rewrite no authority", "[xds][parse][A81]") {
  CHECK_FALSE(in({{"GRPC_EXPERIMENTAL_XDS_AUTHORITY_REWRITE", "true"}}).authority_rewrite);
  // Servers are not trusted unless the caller says so.
  CHECK_FALSE(parse_options_from([](const char*) { return "true"; }).authority_rewrite);
}

}  // namespace signalbox::xds
