// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

#include "xds/bootstrap.hpp"

namespace signalbox::xds {
namespace {

Bootstrap with_default(const std::string& name_template) {
  Bootstrap bootstrap;
  bootstrap.client_default_listener_resource_name_template = name_template;
  bootstrap.authorities["auth"].client_listener_resource_name_template = "xdstp://auth/L/%s?x=%s";
  bootstrap.authorities["a:1"].client_listener_resource_name_template = "xdstp://a:1/%s";
  return bootstrap;
}

TEST_CASE("listener name: is the template with the target's name in it", "[xds][A47]") {
  struct Row {
    const char* when;
    const char* name_template;
    const char* target;
    const char* name;
  };

  const auto row = GENERATE(values<Row>({
      {"old style", "%s", "xds:///orders", "orders"},
      {"old style with a port", "%s", "xds:///orders.example:80", "orders.example:80"},
      {"old style keeps odd characters", "pre/%s", "xds:///a%20[b]/c", "pre/a [b]/c"},
      {"without slashes", "%s", "xds:orders", "orders"},
      {"new style encodes", "xdstp://x/L/%s", "xds:///a%20[b]/c", "xdstp://x/L/a%20%5Bb%5D/c"},
      {"new style keeps what a path may hold",
       "xdstp://x/%s",
       "xds:///a:1@b,c",
       "xdstp://x/a:1@b,c"},
      {"a template without a place for the name", "fixed", "xds:///orders", "fixed"},
      {"an authority, twice the name", "%s", "xds://auth/a[", "xdstp://auth/L/a%5B?x=a%5B"},
      {"an encoded authority", "%s", "xds://a%3A1/b", "xdstp://a:1/b"},
      {"UTF-8", "%s", "xds:///%c3%a9\xc3\xa9", "\xc3\xa9\xc3\xa9"},
      {"a query is left out", "%s", "xds:///orders?a=b#c", "orders"},
      {"a name that looks like a template", "%s", "xds:///a%25s", "a%s"},
  }));
  DYNAMIC_SECTION(row.when) {
    const auto name = listener_resource_name(with_default(row.name_template), row.target);
    INFO(name.status().message());
    REQUIRE(name.ok());
    CHECK(*name == row.name);
  }
}

TEST_CASE("data plane authority: is the target's path, decoded, and encoded as an authority",
          "[xds][A47]") {
  struct Row {
    const char* target;
    const char* authority;
  };

  const auto row = GENERATE(values<Row>({
      {"xds:///orders", "orders"},
      {"xds:orders", "orders"},
      {"xds:///echo.default.svc:7070", "echo.default.svc:7070"},
      {"xds://traffic-director/orders.example", "orders.example"},
      {"xds:///echo%2Edefault%3A7070?a=b#c", "echo.default:7070"},
      {"xds:///[2001:db8::1]:80", "[2001:db8::1]:80"},
      {"xds:///team/orders", "team%2Forders"},
      {"xds:///team%2forders", "team%2Forders"},
      {"xds:///a%20b%0a\xc3\xa9", "a%20b%0A%C3%A9"},
      {"xds:///a%zz", ""},
      {"dns:///orders", ""},
  }));
  CAPTURE(row.target);
  CHECK(data_plane_authority(row.target) == row.authority);
}

TEST_CASE("listener name: refuses targets that name no listener", "[xds][A47]") {
  struct Row {
    const char* target;
    const char* told;
  };

  const auto row = GENERATE(values<Row>({
      {"", "expected xds:///name"},
      {"orders", "expected xds:///name"},
      {"dns:///orders", "expected xds:///name"},
      {"xds:", "name is empty"},
      {"xds:///", "name is empty"},
      {"xds://auth", "name is empty"},
      {"xds://auth/", "name is empty"},
      {"xds://other/orders", "the bootstrap has no authority \"other\""},
      {"xds:///a%2", "two hexadecimal digits"},
      {"xds:///a%zz", "two hexadecimal digits"},
      {"xds://%/a", "two hexadecimal digits"},
      {"xds:///a\xff", "not UTF-8"},
      {"xds:///a%ff", "not UTF-8"},
      {"xds:///%ed%a0%80", "not UTF-8"},
  }));
  DYNAMIC_SECTION(row.target) {
    const auto name = listener_resource_name(with_default("%s"), row.target);
    REQUIRE_FALSE(name.ok());
    CHECK(name.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(name.status().message(), row.told));
    CHECK(absl::StrContains(name.status().message(), std::string("\"") + row.target + "\""));
  }
}

}  // namespace
}  // namespace signalbox::xds
