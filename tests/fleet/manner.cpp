// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/manner.hpp"

#include "xds/client/ads_session.hpp"

namespace signalbox::fleet {

absl::string_view to_string(Manner manner) {
  switch (manner) {
    case Manner::kSignalbox:
      return "signalbox";
    case Manner::kGrpcCore:
      return "grpc-core";
    case Manner::kGrpcGo:
      return "grpc-go";
    case Manner::kNoJitter:
      return "no-jitter";
  }
  return "";
}

std::optional<GrpcRules> grpc_rules(Manner manner) {
  switch (manner) {
    case Manner::kGrpcCore:
      return GrpcRules{
          .waits_for_ready = true, .waits_after_answered = true, .waits_from_start = true};
    case Manner::kGrpcGo:
      return GrpcRules{.first_wait_is_exact = true};
    case Manner::kSignalbox:
    case Manner::kNoJitter:
      break;
  }
  return std::nullopt;
}

xds::StreamPaceOptions stream_pace(Manner manner) {
  xds::StreamPaceOptions pace;
  if (manner == Manner::kNoJitter) pace.backoff.jitter = 0;
  if (grpc_rules(manner)) {
    pace.backoff = {.initial = Duration::zero(), .max = Duration::zero()};
    pace.min_interval = Duration::zero();
    pace.lasting = Duration::zero();
  }
  return pace;
}

BackoffOptions nack_backoff(Manner manner) {
  BackoffOptions backoff = xds::AdsSessionOptions{}.nack_backoff;
  if (manner == Manner::kNoJitter) backoff.jitter = 0;
  if (grpc_rules(manner)) backoff = {.initial = Duration::zero(), .max = Duration::zero()};
  return backoff;
}

}  // namespace signalbox::fleet
