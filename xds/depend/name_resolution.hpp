// SPDX-License-Identifier: Apache-2.0
//
// NameResolution — the endpoints of one LOGICAL_DNS name, as long as a cluster needs it.
//
//   dependency manager ─▶ [NameResolution] ─▶ ResolveName ─▶ dns actor ─▶ NameResolved ─▶ …
//
//            answered                     asked again, early
//   Looking ──────────▶ Resting ────────────────────────────▶ Waiting
//     ▲ ▲    failed        │ asked again, after min_interval     │
//     │ │ └──────▶ Waiting │                                     │ elapsed
//     │ └──────────────────┘                                     │
//     └──────────────────────────────────────────────────────────┘
//
// Looking: a look-up is running. Resting: the last look-up succeeded, and no other is due. Waiting:
// for the timer of the next look-up. "Early" means before min_interval is over. A failed look-up
// keeps the previous answer. A request for re-resolution never shortens a wait: in Waiting it
// changes nothing (as in gRPC's own DNS resolver).
//
// Source: gRFC A37 (A37-20, A37-23), A61, A74 (re-resolution).

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>

#include "messages/xds_events.hpp"
#include "xds/client/backoff.hpp"

namespace signalbox::xds {

struct ResolutionOptions {
  BackoffOptions backoff;
  /// The least time between a successful look-up and the next look-up.
  Duration min_interval = std::chrono::seconds(30);
};

class NameResolution {
 public:
  /// `serial` is unique among all NameResolutions of one owner: it is part of their timers' names.
  NameResolution(DnsName name,
                 const ResolutionOptions& options,
                 std::uint64_t seed,
                 std::uint64_t serial);

  void start(DependencyEffects& effects);
  void stop(DependencyEffects& effects);
  void resolved(const NameResolved& event, Instant now, DependencyEffects& effects);
  void ask_again(Instant now, DependencyEffects& effects);
  void timer_fired(const TimerId& timer, DependencyEffects& effects);

  /// Whether a look-up has ended, with an answer or an error.
  bool answered() const { return answered_; }

  /// The last successful answer; null: there was none.
  const EndpointsPtr& endpoints() const { return endpoints_; }

  /// The error of the last look-up that has ended; empty: it succeeded, or none has ended.
  const std::string& error() const { return error_; }

 private:
  struct Looking {};

  struct Resting {
    Instant since;
  };

  struct Waiting {
    TimerId timer;
  };

  void look_up(DependencyEffects& effects);
  void wait(Duration delay, DependencyEffects& effects);
  void fail(absl::string_view reason, DependencyEffects& effects);

  DnsName name_;
  ResolutionOptions options_;
  Backoff backoff_;
  std::string timer_name_;
  std::uint64_t timers_ = 0;
  std::variant<Looking, Resting, Waiting> state_;
  bool answered_ = false;
  EndpointsPtr endpoints_;
  std::string error_;
};

}  // namespace signalbox::xds
