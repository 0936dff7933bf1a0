// SPDX-License-Identifier: Apache-2.0
//
// Functions that build the values for tests of HTTP filters: configurations with filters, faults,
// and filters that run a function of the test.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "messages/http_filter.hpp"
#include "messages/listener.hpp"
#include "messages/xds_config.hpp"
#include "tests/support/route_fixture.hpp"

namespace signalbox::testing {

/// A filter that runs the test's function.
class ScriptedFilter final : public CallFilter {
 public:
  explicit ScriptedFilter(std::function<void(FilterCall&)> script) : script_(std::move(script)) {}

  void apply(FilterCall& call) const override { script_(call); }

 private:
  std::function<void(FilterCall&)> script_;
};

/// The configuration of a custom filter; `text` tells configurations apart.
inline HttpFilterConfig scripted(std::string text, std::function<void(FilterCall&)> script) {
  return CustomFilter{"com.example.Scripted",
                      {true, std::move(text)},
                      std::make_shared<const ScriptedFilter>(std::move(script))};
}

/// A custom filter that ends the call with ABORTED and this text.
inline HttpFilterConfig ending(const std::string& text) {
  return scripted(text, [text](FilterCall& call) { call.end(absl::AbortedError(text)); });
}

inline HttpFilter filter(std::string name, HttpFilterConfig config, bool disabled = false) {
  return {std::move(name), "com.example.Any", std::move(config), disabled};
}

/// A share in percent.
inline FaultShare percent(std::uint32_t numerator) {
  return {numerator, 100};
}

inline FaultFilter delaying(std::optional<Duration> fixed, FaultShare share = percent(100)) {
  FaultFilter fault;
  fault.delay = FaultFilter::Delay{fixed, share};
  return fault;
}

inline FaultFilter aborting(std::optional<absl::StatusCode> status,
                            FaultShare share = percent(100)) {
  FaultFilter fault;
  fault.abort = FaultFilter::Abort{status, share};
  return fault;
}

inline FaultFilter both(const FaultFilter& delay, const FaultFilter& abort) {
  FaultFilter fault = delay;
  fault.abort = abort.abort;
  return fault;
}

/// Returns `config` with these filters in its listener, followed by the router filter.
inline XdsConfig with_filters(XdsConfig config, std::vector<HttpFilter> filters) {
  auto listener = std::make_shared<Listener>(*config.listener);
  listener->filters = std::move(filters);
  listener->filters.push_back(filter("router", RouterFilter{}));
  config.listener = std::move(listener);
  return config;
}

}  // namespace signalbox::testing
