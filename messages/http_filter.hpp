// SPDX-License-Identifier: Apache-2.0
//
// HTTP filters as data: what a listener's chain consists of, and what virtual hosts, routes and
// weighted clusters put in its place.
//
//   xds/parse/http_filter ─┬▶ Listener::filters              the chain, in order
//                          └▶ …::filter_overrides            by the name of the filter in the chain
//
// The most specific override wins: weighted cluster, route, virtual host, then the chain's own.
// Nothing is merged (A39). An override whose name is none of the chain's means nothing; one that
// holds another filter's configuration cannot be seen where it is parsed: lb/route/filter_chain
// finds it.
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

/// The terminal filter: its presence is its whole meaning.
struct RouterFilter {
  friend bool operator==(const RouterFilter&, const RouterFilter&) = default;
};

/// The cookie that a session is known by (A55-9 to A55-11).
struct SessionCookie {
  std::string name;  ///< An RFC 6265 token, never empty.
  std::string path;  ///< Empty: all paths. No control characters, no ';', ASCII.
  Duration ttl{};    ///< Told to the client as Max-Age where > 0; never enforced by us.

  friend bool operator==(const SessionCookie&, const SessionCookie&) = default;
};

/// Keeps a session on its backend (A55).
struct StatefulSessionFilter {
  /// nullopt: the filter does nothing, here (A55-8) or by an override's `disabled` (A55-12).
  std::optional<SessionCookie> cookie;
  bool strict = false;  ///< Fails rather than falls back when the host is unusable (A55-43).

  friend bool operator==(const StatefulSessionFilter&, const StatefulSessionFilter&) = default;
};

/// A share of the calls. Kept as a fraction: a header that controls the share gives but another
/// numerator, of at most this one (A33).
struct FaultShare {
  std::uint32_t numerator = 0;
  std::uint32_t denominator = 100;  ///< 100, 10,000 or 1,000,000.

  friend bool operator==(const FaultShare&, const FaultShare&) = default;
};

/// Delays and aborts calls on purpose (A33). The two are drawn independently.
struct FaultFilter {
  struct Delay {
    /// nullopt: x-envoy-fault-delay-request says how long.
    std::optional<Duration> fixed;
    FaultShare share;

    friend bool operator==(const Delay&, const Delay&) = default;
  };

  struct Abort {
    /// nullopt: x-envoy-fault-abort-grpc-request or x-envoy-fault-abort-request says with what. OK
    /// ends the call as if the server had answered with trailers alone.
    std::optional<absl::StatusCode> status;
    FaultShare share;

    friend bool operator==(const Abort&, const Abort&) = default;
  };

  std::optional<Delay> delay;
  std::optional<Abort> abort;
  /// Of the whole process at once; nullopt: as many as there are.
  std::optional<std::uint32_t> max_active_faults;

  friend bool operator==(const FaultFilter&, const FaultFilter&) = default;
};

/// What a filter registered by the user is configured with, as the control plane wrote it.
struct RawFilterConfig {
  bool is_json = false;  ///< The value of a TypedStruct, as a JSON object; else a message's bytes.
  std::string text;

  friend bool operator==(const RawFilterConfig&, const RawFilterConfig&) = default;
};

/// A filter registered by the user. Equal texts are equal configurations.
struct CustomFilter {
  std::string type;  ///< As registered: that of the chain, in an override too.
  RawFilterConfig raw;
  CallFilterPtr filter = nullptr;  ///< What its parser made of `raw`; null: it does nothing.

  friend bool operator==(const CustomFilter& left, const CustomFilter& right) {
    return left.type == right.type && left.raw == right.raw;
  }
};

using HttpFilterConfig =
    std::variant<RouterFilter, StatefulSessionFilter, FaultFilter, CustomFilter>;

/// By the filter's name in the chain; nullopt: the filter is disabled there
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
