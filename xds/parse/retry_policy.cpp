// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/retry_policy.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using RetryProto = envoy::config::route::v3::RetryPolicy;

constexpr Duration kShortestInterval = std::chrono::milliseconds(1);
constexpr int kIntervalGrowth = 10;  // Default of max_interval / base_interval.

constexpr absl::string_view kPreviousHosts = "envoy.retry_host_predicates.previous_hosts";
constexpr absl::string_view kPreviousHostsType =
    "/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate";

constexpr std::pair<absl::string_view, absl::StatusCode> kConditions[] = {
    {"cancelled", absl::StatusCode::kCancelled},
    {"deadline-exceeded", absl::StatusCode::kDeadlineExceeded},
    {"internal", absl::StatusCode::kInternal},
    {"resource-exhausted", absl::StatusCode::kResourceExhausted},
    {"unavailable", absl::StatusCode::kUnavailable},
};

std::vector<absl::StatusCode> parse_conditions(absl::string_view retry_on) {
  std::set<absl::StatusCode> codes;
  for (absl::string_view condition : absl::StrSplit(retry_on, ',')) {
    condition = absl::StripAsciiWhitespace(condition);
    for (const auto& [name, code] : kConditions) {
      if (condition == name) codes.insert(code);
    }
  }
  return {codes.begin(), codes.end()};
}

void parse_back_off(const RetryProto::RetryBackOff& proto,
                    RetryPolicy& policy,
                    const Field& field) {
  const Field base = field.at("base_interval");
  const Field most = field.at("max_interval");
  const std::size_t errors_before = field.errors_so_far();
  if (!proto.has_base_interval()) return base.add("must be set, found none");
  policy.base_interval = parse_duration(proto.base_interval(), base);
  if (proto.has_max_interval()) policy.max_interval = parse_duration(proto.max_interval(), most);
  if (field.errors_so_far() != errors_before) return;
  if (policy.base_interval == Duration::zero()) return base.add("must be longer than 0, found 0");
  if (!proto.has_max_interval()) {
    policy.max_interval = kIntervalGrowth * std::clamp<Duration>(policy.base_interval,
                                                                 kShortestInterval,
                                                                 Duration::max() / kIntervalGrowth);
  }
  if (policy.max_interval < policy.base_interval) {
    most.add(absl::StrCat("must not be shorter than base_interval, found ",
                          policy.max_interval.count(),
                          " ns and ",
                          policy.base_interval.count(),
                          " ns"));
  }
  policy.base_interval = std::max(policy.base_interval, kShortestInterval);
  policy.max_interval = std::max(policy.max_interval, kShortestInterval);
}

// Istio sends the name and the type, older control planes the name alone. Other predicates are
// ignored; gRPC ignores all predicates (A44).
bool has_previous_hosts(const RetryProto& proto) {
  return std::ranges::any_of(proto.retry_host_predicate(), [](const auto& predicate) {
    if (!predicate.has_typed_config()) return predicate.name() == kPreviousHosts;
    return absl::EndsWith(predicate.typed_config().type_url(), kPreviousHostsType);
  });
}

}  // namespace

bool is_retry_condition(absl::string_view condition) {
  return std::ranges::any_of(kConditions,
                             [&](const auto& known) { return known.first == condition; });
}

std::optional<RetryPolicy> parse_retry_policy(const RetryProto& proto, const Field& field) {
  RetryPolicy policy;
  policy.retry_on = parse_conditions(proto.retry_on());
  if (proto.has_num_retries()) {
    const std::uint32_t retries = proto.num_retries().value();
    if (retries == 0) field.at("num_retries").add("must be at least 1, found 0");
    policy.max_attempts = std::min(retries, kMostRetries) + 1;
  }
  policy.previous_hosts = has_previous_hosts(proto);
  if (proto.has_retry_back_off())
    parse_back_off(proto.retry_back_off(), policy, field.at("retry_back_off"));
  if (policy.retry_on.empty()) return std::nullopt;
  return policy;
}

}  // namespace signalbox::xds
