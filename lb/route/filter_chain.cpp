// SPDX-License-Identifier: Apache-2.0
#include "lb/route/filter_chain.hpp"

#include <algorithm>
#include <string>
#include <typeinfo>
#include <variant>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

// Takes the place of a filter that has a wrong configuration: ends every call with `why`.
class Broken final : public CallFilter {
 public:
  explicit Broken(absl::Status why) : why_(std::move(why)) {}

  void apply(FilterCall& call) const override { call.end(why_); }

 private:
  const absl::Status why_;
};

std::string kind_of(const HttpFilterConfig& config) {
  return std::visit(
      Overloaded{[](const RouterFilter&) { return std::string("router"); },
                 [](const StatefulSessionFilter&) { return std::string("stateful_session"); },
                 [](const FaultFilter&) { return std::string("fault"); },
                 [](const CustomFilter& custom) { return custom.type; }},
      config);
}

CallFilterPtr make_filter(const HttpFilterConfig& config, const FaultOptions& options) {
  return std::visit(
      Overloaded{[](const RouterFilter&) { return CallFilterPtr(); },
                 [](const StatefulSessionFilter& session) -> CallFilterPtr {
                   return make_session_filter(session);
                 },
                 [&](const FaultFilter& fault) { return make_fault_filter(fault, options); },
                 [](const CustomFilter& custom) { return custom.filter; }},
      config);
}

// The filter as a StatefulSession; null: it is of another type.
const StatefulSession* session_in(const CallFilter& filter) {
  if (typeid(filter) != typeid(StatefulSession)) return nullptr;
  return static_cast<const StatefulSession*>(&filter);
}

// The filter's configuration from the most specific level that has one; null: the filter is
// disabled.
const HttpFilterConfig* config_of(const HttpFilter& filter,
                                  const std::array<const FilterOverrides*, 3>& overrides) {
  for (const FilterOverrides* level : overrides) {
    const auto found = level->find(filter.name);
    if (found != level->end()) return found->second ? &*found->second : nullptr;
  }
  return filter.disabled ? nullptr : &filter.config;
}

bool is_router(const HttpFilter& filter) {
  return std::holds_alternative<RouterFilter>(filter.config);
}

// A hash by which equal configurations are found. Unequal ones may have the same hash, but seldom
// do.
std::size_t coarse_hash(const HttpFilterConfig* config) {
  if (config == nullptr) return 0;
  if (const auto* custom = std::get_if<CustomFilter>(config))
    return absl::HashOf(custom->type, custom->raw.text);
  if (const auto* fault = std::get_if<FaultFilter>(config)) {
    const auto delay = fault->delay.value_or(FaultFilter::Delay{});
    const auto abort = fault->abort.value_or(FaultFilter::Abort{});
    return absl::HashOf(delay.fixed.value_or(Duration::zero()).count(),
                        delay.share.numerator,
                        abort.status.value_or(absl::StatusCode::kOk),
                        abort.share.numerator,
                        fault->max_active_faults.value_or(0));
  }
  if (const auto* session = std::get_if<StatefulSessionFilter>(config)) {
    const SessionCookie cookie = session->cookie.value_or(SessionCookie{});
    return absl::HashOf(cookie.name, cookie.path, session->strict);
  }
  return config->index() + 1;
}

bool same(const HttpFilterConfig* left, const HttpFilterConfig* right) {
  if (left == right) return true;
  return left != nullptr && right != nullptr && *left == *right;
}

}  // namespace

FilterChains::FilterChains(std::span<const HttpFilter> filters, FaultOptions options)
    : filters_(filters.begin(), std::ranges::find_if(filters, is_router)),
      options_(std::move(options)) {}

FilterChainPtr FilterChains::with(const std::array<const FilterOverrides*, 3>& overrides) {
  Configs configs;
  std::size_t hash = 0;
  for (const HttpFilter& filter : filters_) {
    configs.push_back(config_of(filter, overrides));
    hash = absl::HashOf(hash, coarse_hash(configs.back()));
  }
  const auto [first, last] = made_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const auto& [theirs, chain] = known->second;
    if (std::ranges::equal(theirs, configs, same)) return chain;
  }
  FilterChainPtr chain = compile(configs);
  made_.emplace(hash, std::pair{std::move(configs), chain});
  return chain;
}

FilterChainPtr FilterChains::compile(const Configs& configs) {
  auto chain = std::make_shared<FilterChain>();
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (configs[i] == nullptr) continue;
    const std::string own = kind_of(filters_[i].config);
    const std::string configured = kind_of(*configs[i]);
    CallFilterPtr filter;
    if (own == configured) {
      filter = make_filter(*configs[i], options_);
    } else {
      filter = std::make_shared<const Broken>(
          absl::UnavailableError(absl::StrCat("HTTP filter \"",
                                              filters_[i].name,
                                              "\" is of type ",
                                              own,
                                              ", and overridden by a configuration of ",
                                              configured)));
    }
    if (filter == nullptr) continue;
    if (const auto* session = session_in(*filter)) cookies_.emplace(session->cookie().name());
    chain->filters.push_back(std::move(filter));
  }
  if (chain->filters.empty()) return nullptr;
  if (chain->filters.size() == 1) chain->only_session = session_in(*chain->filters.front());
  return chain;
}

}  // namespace signalbox::lb
