// SPDX-License-Identifier: Apache-2.0
//
// HTTP filters as data: a listener's chain, and the overrides of virtual hosts, routes and weighted
// clusters.
//
//   xds/parse/http_filter ─┬▶ Listener::filters              the chain, in order
//                          └▶ …::filter_overrides            by the name of the filter in the chain
//
// The most specific configuration wins: weighted cluster, route, virtual host, then the chain's
// own. Nothing is merged (A39). An override with a name that is not in the chain has no effect. The
// parser of an override does not see the chain. An override that holds another filter's
// configuration is therefore found only by lb/route/filter_chain.
//
// Source: gRFC A39 (filters), A55 (stateful_session), A33 (fault).

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"

#include "messages/call_filter.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// The terminal filter. It has no settings.
struct RouterFilter {
  friend bool operator==(const RouterFilter&, const RouterFilter&) = default;
};

/// The cookie that identifies a session (A55).
struct SessionCookie {
  std::string name;  ///< An RFC 6265 token, never empty.
  std::string path;  ///< Empty: all paths. No control characters, no ';', ASCII.
  Duration ttl{};    ///< Sent to the client as Max-Age when > 0; the filter never enforces it.

  friend bool operator==(const SessionCookie&, const SessionCookie&) = default;
};

/// Keeps a session on its backend (A55).
struct StatefulSessionFilter {
  /// nullopt: the filter does nothing. Either it is configured so, or an override sets
  /// `disabled`.
  std::optional<SessionCookie> cookie;
  /// True: while the session's host is unusable, calls of the session fail, and do not go to
  /// another host.
  bool strict = false;

  friend bool operator==(const StatefulSessionFilter&, const StatefulSessionFilter&) = default;
};

/// A share of the calls. It is a fraction because a header may lower its numerator (A33).
struct FaultShare {
  std::uint32_t numerator = 0;
  std::uint32_t denominator = 100;  ///< 100, 10,000 or 1,000,000.

  friend bool operator==(const FaultShare&, const FaultShare&) = default;
};

/// Delays and aborts calls on purpose (A33). Whether a call is delayed and whether it is aborted
/// are two independent draws.
struct FaultFilter {
  struct Delay {
    /// nullopt: the header x-envoy-fault-delay-request sets the delay.
    std::optional<Duration> fixed;
    FaultShare share;

    friend bool operator==(const Delay&, const Delay&) = default;
  };

  struct Abort {
    /// nullopt: x-envoy-fault-abort-grpc-request or x-envoy-fault-abort-request sets the status. OK
    /// ends the call as if the server had answered with trailers alone.
    std::optional<absl::StatusCode> status;
    FaultShare share;

    friend bool operator==(const Abort&, const Abort&) = default;
  };

  std::optional<Delay> delay;
  std::optional<Abort> abort;
  /// The most calls with an active fault at a time, counted over the whole process; nullopt: no
  /// limit.
  std::optional<std::uint32_t> max_active_faults;

  friend bool operator==(const FaultFilter&, const FaultFilter&) = default;
};

/// The configuration of a filter that the program registered, as the control plane wrote it.
struct RawFilterConfig {
  /// True: `text` is the JSON object of a TypedStruct. False: `text` is a serialised message.
  bool is_json = false;
  std::string text;

  friend bool operator==(const RawFilterConfig&, const RawFilterConfig&) = default;
};

/// A filter that the program registered. Equal texts are equal configurations.
struct CustomFilter {
  /// The type of the filter in the chain, as the program registered it; the same in an override.
  std::string type;
  RawFilterConfig raw;
  /// The parser's result for `raw`; null: the filter does nothing.
  CallFilterPtr filter = nullptr;

  friend bool operator==(const CustomFilter& left, const CustomFilter& right) {
    return left.type == right.type && left.raw == right.raw;
  }
};

using HttpFilterConfig =
    std::variant<RouterFilter, StatefulSessionFilter, FaultFilter, CustomFilter>;

/// Keyed by the filter's name in the chain. nullopt: the filter is disabled there
/// (envoy.config.route.v3.FilterConfig.disabled).
using FilterOverrides = std::map<std::string, std::optional<HttpFilterConfig>>;

/// One filter of the chain (A39).
struct HttpFilter {
  std::string name;
  std::string type;  ///< Full protobuf name of its configuration, without the type URL's prefix.
  HttpFilterConfig config = RouterFilter{};
  bool disabled = false;  ///< HttpFilter.disabled: off, unless an override brings a configuration.

  friend bool operator==(const HttpFilter&, const HttpFilter&) = default;
};

}  // namespace signalbox
