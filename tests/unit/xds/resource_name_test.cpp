// SPDX-License-Identifier: Apache-2.0
#include "xds/client/resource_name.hpp"

#include <catch2/catch.hpp>

#include "tests/support/xds_resources.hpp"

namespace signalbox::xds {
namespace {

using tests::cds;
using tests::lds;

const std::string kListener = "envoy.config.listener.v3.Listener/";

}  // namespace

TEST_CASE("resource name: says whose a resource is", "[xds][client][A47]") {
  struct Row {
    std::string name;
    AuthorityName authority;
    std::string canonical;
  };

  const auto row = GENERATE(values<Row>({
      {"orders", std::nullopt, "orders"},
      {"orders?b=2&a=1", std::nullopt, "orders?b=2&a=1"},
      {"xdstp://east/" + kListener + "orders", "east", "xdstp://east/" + kListener + "orders"},
      {"xdstp:///" + kListener + "a/b", "", "xdstp:///" + kListener + "a/b"},
      {"xdstp:/" + kListener + "a", "", "xdstp:/" + kListener + "a"},
      {"xdstp://a%20b/" + kListener + "x", "a b", "xdstp://a%20b/" + kListener + "x"},
      {"xdstp://east/" + kListener + "o?b=2&a=1&c",
       "east",
       "xdstp://east/" + kListener + "o?a=1&b=2&c"},
      {"xdstp://east/" + kListener + "o?zone2=x&zone=1",
       "east",
       "xdstp://east/" + kListener + "o?zone=1&zone2=x"},
      {"xdstp://east/" + kListener + "o?#entry=x", "east", "xdstp://east/" + kListener + "o"},
      {"xdstp://east/" + kListener + "o?b=1?2&a",
       "east",
       "xdstp://east/" + kListener + "o?a&b=1?2"},
  }));
  const auto name = parse_resource_name(lds(row.name));
  REQUIRE(name.ok());
  CHECK(name->authority == row.authority);
  CHECK(name->canonical == row.canonical);
}

TEST_CASE("resource name: an xdstp: name is of the type that is watched", "[xds][client][A47]") {
  const std::string name = GENERATE(as<std::string>{},
                                    "xdstp:",
                                    "xdstp://east",
                                    "xdstp://east/",
                                    "xdstp://east/orders",
                                    "xdstp://east/envoy.config.listener.v3.Listener",
                                    "xdstp://east/envoy.config.listener.v3.Listener/",
                                    "xdstp://east/envoy.config.listener.v3.Listener/?a=b",
                                    "xdstp://east/envoy.config.cluster.v3.Cluster/orders",
                                    "xdstp://%/envoy.config.listener.v3.Listener/orders");
  const auto parsed = parse_resource_name(lds(name));
  CHECK(parsed.status() ==
        absl::InvalidArgumentError(
            "the name must be xdstp://<authority>/envoy.config.listener.v3.Listener/<id>, found " +
            name));
}

}  // namespace signalbox::xds
