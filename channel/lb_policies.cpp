// SPDX-License-Identifier: Apache-2.0
#include "channel/lb_policies.hpp"

#include <exception>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "channel/extension_name.hpp"

namespace signalbox::channel {
namespace {

// Returns "FIELD: must be …, found …"; empty: the policy is valid.
std::string what_is_wrong(const CustomLbPolicy& policy, bool is_known) {
  if (const std::string wrong = what_is_wrong_with_lb_policy_name(policy.name); !wrong.empty())
    return absl::StrCat("name: ", wrong);
  if (is_known) return absl::StrCat("name: must be unique, found \"", policy.name, "\"");
  if (!policy.parse) return absl::StrCat("parse: must be set, found none (", policy.name, ")");
  if (!policy.make) return absl::StrCat("make: must be set, found none (", policy.name, ")");
  return "";
}

xds::CustomPolicyParser parser_of(const CustomLbPolicy& policy) {
  return [parse = policy.parse](const std::string& json) -> absl::StatusOr<CustomPolicyConfigPtr> {
    try {
      auto parsed = parse(json);
      if (parsed.ok() && *parsed == nullptr)
        return absl::InternalError("its parser returned no configuration");
      return parsed;
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("its parser threw: ", error.what()));
    } catch (...) {
      return absl::InternalError("its parser threw");
    }
  };
}

}  // namespace

absl::StatusOr<RegisteredLbPolicies> register_lb_policies(
    const std::vector<CustomLbPolicy>& policies, metrics::Instruments& instruments) {
  auto parsers = std::make_shared<xds::CustomPolicyParsers>();
  auto registered = std::make_shared<lb::CustomPolicies>();
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const CustomLbPolicy& policy = policies[i];
    const std::string wrong = what_is_wrong(policy, registered->contains(policy.name));
    if (!wrong.empty())
      return absl::InvalidArgumentError(absl::StrCat("lb_policies[", i, "].", wrong));
    parsers->emplace(policy.name, parser_of(policy));
    auto make = [make = policy.make](const CustomConfig& config, lb::PolicyContext context) {
      return make(config.parsed, std::move(context));
    };
    registered->emplace(policy.name,
                        lb::CustomPolicy{std::move(make), instruments.pick_failures(policy.name)});
  }
  return RegisteredLbPolicies{std::move(parsers), std::move(registered)};
}

}  // namespace signalbox::channel
