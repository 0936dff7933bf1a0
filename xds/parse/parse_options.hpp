// SPDX-License-Identifier: Apache-2.0
//
// ParseOptions — what a process may change about parsing: its environment, what its runtime can
// run, its bootstrap, its limits. Made anew for each response, as gRPC asks its environment.
//
//   environment ─▶ [parse_options_from] ─▶ ParseOptions ─▶ decode_response, parse_resource
//
// What the runtime cannot run is to the parser what it does not know: an LB policy is passed over
// for the next one of its list (A52), a filter is refused unless it is optional (A39). A new filter
// is one more name here; a new policy's row in the registry of lb_policy says whether it runs.

#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"

#include "messages/http_filter.hpp"
#include "messages/lb_config.hpp"
#include "xds/limits.hpp"

namespace signalbox::xds {

class RegexBudget;

using NameSet = std::set<std::string, std::less<>>;

/// Reads the JSON of a policy that the user registered; its error goes to who sent it. Never
/// throws. Empty: every JSON object is taken, and nothing is made of it.
using CustomPolicyParser =
    std::function<absl::StatusOr<CustomPolicyConfigPtr>(const std::string& json)>;
/// By the last segment of their TypedStruct's type URL (A52).
using CustomPolicyParsers = std::map<std::string, CustomPolicyParser, std::less<>>;

/// Reads a configuration of a filter that the user registered; as CustomPolicyParser.
using CustomFilterParser =
    std::function<absl::StatusOr<CallFilterPtr>(const RawFilterConfig& config)>;

/// A filter that the user registered (A39). It is never terminal.
struct CustomFilterParsers {
  CustomFilterParser parse;
  std::string override_type;  ///< Empty: it has no overrides.
  CustomFilterParser parse_override;
};

/// By the full name of their configuration's type: what stands behind the slash of the type URL, of
/// the Any itself or of the TypedStruct in it.
using CustomFilters = std::map<std::string, CustomFilterParsers, std::less<>>;

/// The names of the policies in the registry of lb_policy.cpp.
NameSet lb_policy_names();

struct ParseOptions {
  /// LB policies that the runtime has, by the name of LbConfig.
  NameSet lb_policies = lb_policy_names();
  /// LB policies registered by the user; null: none. Options are equal where this is the same map.
  std::shared_ptr<const CustomPolicyParsers> custom_lb_policies;
  /// HTTP filters that the runtime has.
  NameSet http_filters = {"fault", "router", "stateful_session"};
  /// HTTP filters registered by the user; null: none. As custom_lb_policies.
  std::shared_ptr<const CustomFilters> custom_http_filters;
  /// The instances of the bootstrap's certificate_providers (A29).
  NameSet certificate_providers;
  /// Connections can be checked against the system's root certificates (A82). Where they cannot, a
  /// cluster that asks for it is refused: it must not be reached in plaintext.
  bool system_roots = false;
  Limits limits;
  /// What the regular expressions of the response may cost; null: each is judged by itself. Set by
  /// the parser.
  RegexBudget* regexes = nullptr;
  /// Once it is true, parsing ends as soon as it can, and nothing comes of it: the runtime ends. It
  /// never becomes false again. Null: parsing is never abandoned.
  std::shared_ptr<const std::atomic<bool>> abandoned;

  /// An aggregate's LB policy is read, and takes the place of its leaves' own (A75-8). A temporary
  /// mechanism.
  bool keep_aggregate_lb_policy = false;
  /// The filter stateful_session, override_host_status, and endpoints that are DRAINING (A55-40).
  bool session_affinity = true;
  /// Endpoint.additional_addresses (A61).
  bool dualstack_endpoints = true;
  /// The metadata envoy.lb hash_key of an endpoint (A76).
  bool endpoint_hash_key = true;
  /// A cluster's health_checks.
  bool health_checks = true;
  /// Http11ProxyUpstreamTransport and the addresses of proxies in metadata (A86).
  bool http_connect = false;
  /// auto_host_rewrite, which only servers that the bootstrap trusts may ask for (A81).
  bool authority_rewrite = false;
  /// All calls have gRPC's paths: a route that matches none of these is left out, so that no
  /// configuration waits for its clusters. Other data planes have other paths.
  bool grpc_paths_only = true;

  friend bool operator==(const ParseOptions&, const ParseOptions&) = default;
};

inline bool is_abandoned(const ParseOptions& options) {
  return options.abandoned != nullptr && options.abandoned->load(std::memory_order_relaxed);
}

/// `options` with what the environment sets; `get` is as std::getenv. trusted_server: the server
/// feature trusted_xds_server, without which authorities are never rewritten.
ParseOptions parse_options_from(const std::function<const char*(const char*)>& get,
                                bool trusted_server = false,
                                ParseOptions options = {});

}  // namespace signalbox::xds
