// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/name_resolution.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "xds/depend/leaf_endpoints.hpp"

namespace signalbox::xds {

NameResolution::NameResolution(DnsName name,
                               const ResolutionOptions& options,
                               std::uint64_t seed,
                               std::uint64_t serial)
    : name_(std::move(name)),
      options_(options),
      backoff_(options.backoff, seed),
      timer_name_(absl::StrCat("resolve/", serial, "/", name_.str())) {}

void NameResolution::start(DependencyEffects& effects) {
  look_up(effects);
}

void NameResolution::stop(DependencyEffects& effects) {
  if (const auto* waiting = std::get_if<Waiting>(&state_))
    effects.emplace_back(CancelTimer{waiting->timer});
}

void NameResolution::resolved(const NameResolved& event, Instant now, DependencyEffects& effects) {
  stop(effects);
  answered_ = true;
  if (!event.addresses.ok()) {
    fail(event.addresses.status().message(), effects);
  } else if (event.addresses->empty()) {
    fail("the name has no addresses", effects);
  } else {
    endpoints_ = endpoints_from_dns(name_, *event.addresses, endpoints_);
    error_.clear();
    backoff_.reset();
    state_ = Resting{now};
  }
}

void NameResolution::ask_again(Instant now, DependencyEffects& effects) {
  const auto* resting = std::get_if<Resting>(&state_);
  if (resting == nullptr) return;
  const Duration early = resting->since + options_.min_interval - now;
  if (early > Duration::zero())
    wait(early, effects);
  else
    look_up(effects);
}

void NameResolution::timer_fired(const TimerId& timer, DependencyEffects& effects) {
  const auto* waiting = std::get_if<Waiting>(&state_);
  if (waiting != nullptr && waiting->timer == timer) look_up(effects);
}

void NameResolution::look_up(DependencyEffects& effects) {
  state_ = Looking{};
  effects.emplace_back(ResolveName{name_});
}

void NameResolution::wait(Duration delay, DependencyEffects& effects) {
  const TimerId timer{timer_name_, ++timers_};
  state_ = Waiting{timer};
  effects.emplace_back(StartTimer{timer, delay});
}

void NameResolution::fail(absl::string_view reason, DependencyEffects& effects) {
  error_ = absl::StrCat("DNS resolution of ", name_.str(), " failed: ", reason);
  wait(backoff_.next(), effects);
}

}  // namespace signalbox::xds
