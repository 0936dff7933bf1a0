// SPDX-License-Identifier: Apache-2.0
//
// HttpRequest — the request that `signalbox load --http` sends, but for headers and body.
//
//   "http://shop/orders/7?all=1" ─▶ [parse_http_url] ─▶ HttpRequest ─▶ xds:///shop, GET, path

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace signalbox::tools {

struct HttpRequest {
  std::string verb = "GET";
  std::string host;        ///< The name and port of the URL: "shop", "shop:8080".
  std::string path = "/";  ///< With the query: "/orders/7?all=1".

  /// The target of the request's picks: "xds:///shop".
  std::string target() const { return "xds:///" + host; }

  /// The text that routes match: the path without its query.
  std::string route_path() const { return path.substr(0, path.find('?')); }

  bool operator==(const HttpRequest&) const = default;
};

/// INVALID_ARGUMENT says what is wrong with the URL. Only http:// is known: requests go to the
/// endpoints as they are, and an endpoint with TLS would refuse them.
absl::StatusOr<HttpRequest> parse_http_url(absl::string_view url);

}  // namespace signalbox::tools
