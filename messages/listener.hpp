// SPDX-License-Identifier: Apache-2.0
//
// Listener — a validated LDS resource: where the routes come from, and what every call passes.
//
//   xds/parse/listener ─▶ [Listener] ─▶ dependency manager ─▶ XdsConfig
//
// Source: gRFC A27 (LDS), A31 (HttpConnectionManager's max_stream_duration), A39 (filters).

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "messages/ids.hpp"
#include "messages/route_config.hpp"

namespace signalbox {

/// One HTTP filter of the chain, in order; the router is last (A39).
struct HttpFilter {
  std::string name;
  std::string type;  ///< Full protobuf name of its configuration, without the type URL's prefix.

  friend bool operator==(const HttpFilter&, const HttpFilter&) = default;
};

/// The name of an RDS resource.
struct RdsName {
  std::string name;

  friend bool operator==(const RdsName&, const RdsName&) = default;
};

struct Listener {
  std::string name;
  /// Either the routes themselves or the RDS resource that holds them.
  std::variant<RdsName, std::shared_ptr<const RouteConfig>> routes;
  /// HttpConnectionManager.common_http_protocol_options.max_stream_duration (A31-22).
  std::optional<Duration> max_stream_duration;
  std::vector<HttpFilter> filters;
};

}  // namespace signalbox
