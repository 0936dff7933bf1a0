// SPDX-License-Identifier: Apache-2.0
//
// ParseOptions — the inputs of parsing beside the bytes: environment variables, the features of the
// runtime, the bootstrap, and the limits. For each response the options are made anew, because gRPC
// also reads its environment each time.
//
//   environment ─▶ [parse_options_from] ─▶ ParseOptions ─▶ ResponseParser, parse_resource
//
// The parser treats a feature that the runtime lacks as unknown. An unknown LB policy is skipped
// for the next entry of its list (A52). An unknown filter is refused unless it is optional (A39). A
// new filter needs a name in `http_filters`. A new policy needs a row in the registry of lb_policy.

#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"

#include "messages/http_filter.hpp"
#include "messages/ids.hpp"
#include "messages/lb_config.hpp"
#include "xds/limits.hpp"

namespace signalbox::xds {

class RegexBudget;

using NameSet = std::set<std::string, std::less<>>;

/// Reads the JSON of a policy that the user registered. Its error goes into the NACK. Must not
/// throw. Empty: every JSON object is valid, and has no parsed configuration.
using CustomPolicyParser =
    std::function<absl::StatusOr<CustomPolicyConfigPtr>(const std::string& json)>;
/// Keys: the last segment of the TypedStruct's type URL (A52).
using CustomPolicyParsers = std::map<std::string, CustomPolicyParser, std::less<>>;

/// Reads the configuration of a filter that the user registered. The rules of CustomPolicyParser
/// apply to it too.
using CustomFilterParser =
    std::function<absl::StatusOr<CallFilterPtr>(const RawFilterConfig& config)>;

/// A filter that the user registered (A39). Such filters are never terminal.
struct CustomFilterParsers {
  CustomFilterParser parse;
  std::string override_type;  ///< Empty: the filter has no overrides.
  CustomFilterParser parse_override;
};

/// The key is the full name of the configuration's type: the part of the type URL after the slash.
/// The type URL is that of the Any, or that of a TypedStruct in the Any.
using CustomFilters = std::map<std::string, CustomFilterParsers, std::less<>>;

/// The names of the policies in the registry of lb_policy.cpp.
NameSet lb_policy_names();

struct ParseOptions {
  /// The names (as in LbConfig) of the LB policies that the runtime has.
  NameSet lb_policies = lb_policy_names();
  /// LB policies registered by the user; null: none. operator== compares pointers, not maps.
  std::shared_ptr<const CustomPolicyParsers> custom_lb_policies;
  /// The names of the HTTP filters that the runtime has.
  NameSet http_filters = {"fault", "router", "stateful_session"};
  /// HTTP filters registered by the user; null: none. Compared as custom_lb_policies are.
  std::shared_ptr<const CustomFilters> custom_http_filters;
  /// The instances of the plugin file_watcher in the bootstrap's certificate_providers (A29).
  NameSet certificate_providers;
  /// The runtime can verify connections with the system's root certificates (A82). If it cannot, a
  /// cluster that needs them is refused: it must not be reached in plaintext.
  bool system_roots = false;
  Limits limits;
  /// The budget for the regular expressions of the response; null: each expression has its own
  /// budget. Set by the parser.
  RegexBudget* regexes = nullptr;
  /// Set to true when the runtime ends. Parsing then stops as soon as it can, without a usable
  /// result. The flag never becomes false again. Null: parsing is never abandoned.
  std::shared_ptr<const std::atomic<bool>> abandoned;

  /// The LB policy of an aggregate is read, and replaces the policies of its leaves (A75-8). This
  /// compatibility option is temporary.
  bool keep_aggregate_lb_policy = false;
  /// Reads the filter stateful_session, override_host_status, and DRAINING endpoints (A55-40).
  bool session_affinity = true;
  /// Reads Endpoint.additional_addresses (A61).
  bool dualstack_endpoints = true;
  /// Reads the metadata envoy.lb hash_key of an endpoint (A76).
  bool endpoint_hash_key = true;
  /// Reads the health_checks of a cluster.
  bool health_checks = true;
  /// The server that sends the resources: a cluster's load is reported there (A27).
  ServerId server = 0;
  /// A cluster without lrs_report_endpoint_metrics reports no values of its endpoints (A85). False:
  /// it reports all named metrics, under their own names (A64).
  bool endpoint_metrics_are_chosen = false;
  /// Validates the addresses of proxies in metadata (A86).
  bool http_connect = false;
  /// Reads auto_host_rewrite. Only trusted servers may set it (A81; ServerOptions::trusted).
  bool authority_rewrite = false;
  /// All calls have gRPC's paths ("/service/method"). A route that cannot match such a path is left
  /// out, so that no configuration waits for its clusters. False for data planes with other paths.
  bool grpc_paths_only = true;

  friend bool operator==(const ParseOptions&, const ParseOptions&) = default;
};

inline bool is_abandoned(const ParseOptions& options) {
  return options.abandoned != nullptr && options.abandoned->load(std::memory_order_relaxed);
}

/// Returns `options` with the settings of the environment. `get` behaves as std::getenv.
/// `trusted_server`: ServerOptions::trusted of the server. Authorities are never rewritten if it is
/// false.
ParseOptions parse_options_from(const std::function<const char*(const char*)>& get,
                                bool trusted_server = false,
                                ParseOptions options = {});

}  // namespace signalbox::xds
