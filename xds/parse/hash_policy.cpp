// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/hash_policy.hpp"

#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "xds/parse/regex_budget.hpp"
#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using PolicyProto = envoy::config::route::v3::RouteAction::HashPolicy;
using envoy::type::matcher::v3::RegexMatchAndSubstitute;

HeaderHash::Rewrite parse_rewrite(const RegexMatchAndSubstitute& proto, const Field& field) {
  const Field pattern = field.at("pattern");
  if (proto.pattern().regex().empty()) {
    pattern.at("regex").add("must not be empty, found \"\"");
    return {};
  }
  RegexBudget alone(field.options().limits);
  RegexBudget& budget = budget_of(field, alone);
  const std::size_t errors_before = field.errors_so_far();
  HeaderHash::Rewrite rewrite{parse_regex(proto.pattern(), pattern, budget).text,
                              proto.substitution()};
  if (field.errors_so_far() != errors_before) return rewrite;
  const std::string error = budget.judge_substitution(rewrite.pattern, rewrite.substitution);
  if (!error.empty()) {
    field.at("substitution")
        .add(absl::StrCat(
            "must fit the pattern, found ", in_quotes(rewrite.substitution), ": ", error));
  }
  return rewrite;
}

HeaderHash parse_header(const PolicyProto::Header& proto, const Field& field) {
  require_name(proto.header_name(), field.at("header_name"));
  HeaderHash hash{absl::AsciiStrToLower(proto.header_name()), {}};
  if (proto.has_regex_rewrite())
    hash.rewrite = parse_rewrite(proto.regex_rewrite(), field.at("regex_rewrite"));
  return hash;
}

std::optional<HashPolicy> parse_policy(const PolicyProto& proto, const Field& field) {
  switch (proto.policy_specifier_case()) {
    case PolicyProto::kHeader:
      return HashPolicy{parse_header(proto.header(), field.at("header")), proto.terminal()};
    case PolicyProto::kFilterState:
      if (proto.filter_state().key() != "io.grpc.channel_id") return std::nullopt;
      return HashPolicy{ChannelHash{}, proto.terminal()};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<HashPolicy> parse_hash_policies(const envoy::config::route::v3::RouteAction& proto,
                                            const Field& field) {
  std::vector<HashPolicy> policies;
  for (int i = 0; i < proto.hash_policy_size() && !field.is_enough(); ++i) {
    auto policy =
        parse_policy(proto.hash_policy(i), field.at("hash_policy", static_cast<std::size_t>(i)));
    if (policy.has_value()) policies.push_back(*std::move(policy));
  }
  return policies;
}

}  // namespace signalbox::xds
