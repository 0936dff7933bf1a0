// SPDX-License-Identifier: Apache-2.0
#include "channel/recorded_options.hpp"

#include <chrono>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "channel/check_options.hpp"
#include "channel/policy_options.hpp"
#include "lb/pick/stream_lanes.hpp"
#include "messages/build_facts.hpp"
#include "xds/record/recorded_bootstrap.hpp"

namespace signalbox::channel {
namespace {

using Value = std::uint64_t;

/// An option as a number: nanoseconds, a count, an enumerator, 0 or 1.
struct Setting {
  std::string name;
  std::function<Value(const RuntimeOptions&)> get;
  std::function<void(RuntimeOptions&, Value)> set;
  Value most = std::numeric_limits<Value>::max();
};

Setting duration(const char* name, std::chrono::nanoseconds RuntimeOptions::* member) {
  return {
      name,
      [member](const RuntimeOptions& from) { return static_cast<Value>((from.*member).count()); },
      [member](RuntimeOptions& to, Value value) {
        to.*member = std::chrono::nanoseconds(static_cast<std::int64_t>(value));
      },
      static_cast<Value>(std::numeric_limits<std::int64_t>::max())};
}

template <typename Number>
Setting number(const char* name, Number RuntimeOptions::* member, Value most) {
  return {name,
          [member](const RuntimeOptions& from) { return static_cast<Value>(from.*member); },
          [member](RuntimeOptions& to, Value value) { to.*member = static_cast<Number>(value); },
          most};
}

std::vector<Setting> all_settings() {
  constexpr Value kMost32 = std::numeric_limits<std::uint32_t>::max();
  using Options = RuntimeOptions;
  std::vector<Setting> all = {
      duration("resource_timeout", &Options::resource_timeout),
      duration("failover_timeout", &Options::failover_timeout),
      duration("initial_backoff", &Options::initial_backoff),
      duration("max_backoff", &Options::max_backoff),
      duration("lost_backoff", &Options::lost_backoff),
      duration("connection_attempt_delay", &Options::connection_attempt_delay),
      number("standby_priorities", &Options::standby_priorities, kMost32),
      number("max_connections_per_endpoint",
             &Options::max_connections_per_endpoint,
             lb::StreamLanes::kMost),
      number("ring_size_cap", &Options::ring_size_cap, std::numeric_limits<Value>::max()),
      number("missing_cluster_fails_aggregate", &Options::missing_cluster_fails_aggregate, 1),
      number(
          "aggregate_mode", &Options::aggregate_mode, static_cast<Value>(AggregateMode::kTiered)),
      number("panic_threshold", &Options::panic_threshold, 100),
      number("unreachable_is_unhealthy", &Options::unreachable_is_unhealthy, 1),
      number("active_health_checks", &Options::active_health_checks, 1),
      // The file itself is not recorded.
      {"session_cookies.sealed",
       [](const Options& from) -> Value { return from.session_cookies.key_file.has_value(); },
       [](Options& to, Value value) {
         if (value != 0) to.session_cookies.key_file = "";
       },
       1},
      number("transport", &Options::transport, static_cast<Value>(EndpointTransport::kAssumed)),
      {"seed",
       [](const Options& from) { return from.seed.value_or(0); },
       [](Options& to, Value value) { to.seed = value; }},
  };
  for (const xds::NamedLimit& limit : xds::kNamedLimits) {
    all.push_back({absl::StrCat("limits.", limit.name),
                   [&limit](const Options& from) -> Value { return from.limits.*limit.member; },
                   [&limit](Options& to, Value value) { to.limits.*limit.member = value; }});
  }
  return all;
}

}  // namespace

RecordingHeader header_of(const RuntimeOptions& options,
                          const xds::Bootstrap& bootstrap,
                          std::uint64_t seed,
                          const GetVariable& get) {
  RecordingHeader header;
  header.version = std::string(build_version());
  header.run = next_seed();
  header.bootstrap = xds::recorded_bootstrap(bootstrap);
  for (const Setting& setting : all_settings())
    header.settings[setting.name] = absl::StrCat(setting.get(options));
  header.settings["seed"] = absl::StrCat(seed);
  const GetVariable noted = [&](const char* name) {
    const char* const value = get(name);
    if (value != nullptr) header.environment[name] = value;
    return value;
  };
  policy_options(options, noted);
  xds::parse_options_from(noted);
  xds::parse_options_from(noted, /*trusted_server=*/true);
  for (const CustomLbPolicy& policy : options.lb_policies)
    header.extensions.push_back(policy.name);
  for (const CustomHttpFilter& filter : options.http_filters)
    header.extensions.push_back(filter.type);
  return header;
}

absl::StatusOr<RuntimeOptions> options_of(const RecordingHeader& header,
                                          std::vector<std::string>& unknown) {
  RuntimeOptions options;
  std::map<std::string, std::string> left = header.settings;
  for (const Setting& setting : all_settings()) {
    const auto node = left.extract(setting.name);
    if (node.empty()) continue;
    Value value = 0;
    if (!absl::SimpleAtoi(node.mapped(), &value) || value > setting.most) {
      return absl::DataLossError(absl::StrCat("the recording's setting ",
                                              setting.name,
                                              " has the value '",
                                              node.mapped(),
                                              "', expected 0 to ",
                                              setting.most));
    }
    setting.set(options, value);
  }
  for (const auto& [name, value] : left)
    unknown.push_back(name);
  if (const absl::Status valid = check_options(options); !valid.ok())
    return absl::DataLossError(absl::StrCat("the recording's settings: ", valid.message()));
  return bounded(std::move(options));
}

GetVariable variables_of(const RecordingHeader& header) {
  return [&header](const char* name) -> const char* {
    const auto found = header.environment.find(name);
    return found == header.environment.end() ? nullptr : found->second.c_str();
  };
}

}  // namespace signalbox::channel
