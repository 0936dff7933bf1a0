// SPDX-License-Identifier: Apache-2.0
#include "tools/load/http_request.hpp"

#include <catch2/catch.hpp>

namespace signalbox::tools {

TEST_CASE("HTTP request: a URL names the target, the host and the path", "[load][http_request]") {
  struct Row {
    const char* url;
    HttpRequest request;
    const char* target;
    const char* route_path;
  };

  const Row row = GENERATE(
      Row{"http://shop/orders/7", {"GET", "shop", "/orders/7"}, "xds:///shop", "/orders/7"},
      Row{"http://shop", {"GET", "shop", "/"}, "xds:///shop", "/"},
      Row{"http://shop?a=/b", {"GET", "shop", "/?a=/b"}, "xds:///shop", "/"},
      Row{"http://shop:8080/a?b=c%20d?e",
          {"GET", "shop:8080", "/a?b=c%20d?e"},
          "xds:///shop:8080",
          "/a"});
  const auto request = parse_http_url(row.url);
  REQUIRE(request.ok());
  CHECK(*request == row.request);
  CHECK(request->target() == row.target);
  CHECK(request->route_path() == row.route_path);
}

TEST_CASE("HTTP request: another URL is refused with its reason", "[load][http_request]") {
  struct Row {
    const char* url;
    const char* why;
  };

  const Row row = GENERATE(Row{"https://shop/", "https is not supported, only http"},
                           Row{"shop/orders", "expected http://NAME/path"},
                           Row{"", "expected http://NAME/path"},
                           Row{"http:///orders", "the name is missing"},
                           Row{"http://shop/a b", "percent-encoded"},
                           Row{"http://shop/\r\nx: y", "percent-encoded"},
                           Row{"http://shop/#top", "a fragment (#) is never sent"},
                           Row{"http://me@shop/", "user names are not supported"});
  const auto request = parse_http_url(row.url);
  CHECK(request.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(request.status().message()), Catch::Contains(row.why));
}

}  // namespace signalbox::tools
