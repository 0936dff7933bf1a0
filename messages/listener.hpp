// SPDX-License-Identifier: Apache-2.0
//
// Listener — a validated LDS resource: the source of the routes, and the filters of every call.
//
//   xds/parse/listener ─▶ [Listener] ─▶ dependency manager ─▶ XdsConfig
//
// Source: gRFC A27 (LDS), A31 (HttpConnectionManager's max_stream_duration), A36 (listeners
// for servers), A39 (filters).

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "messages/http_filter.hpp"
#include "messages/ids.hpp"
#include "messages/route_config.hpp"

namespace signalbox {

/// The name of an RDS resource.
struct RdsName {
  std::string name;

  friend bool operator==(const RdsName&, const RdsName&) = default;
};

/// A listener for servers, on a socket: valid, but no client can use it (A36).
struct SocketListener {
  friend bool operator==(const SocketListener&, const SocketListener&) = default;
};

struct Listener {
  std::string name;
  /// The routes themselves, or the RDS resource that holds them. A SocketListener has neither.
  std::variant<RdsName, std::shared_ptr<const RouteConfig>, SocketListener> routes;
  /// HttpConnectionManager.common_http_protocol_options.max_stream_duration.
  std::optional<Duration> max_stream_duration;
  /// The chain, in the order in which calls pass it; the router is last (A39).
  std::vector<HttpFilter> filters;
};

}  // namespace signalbox
