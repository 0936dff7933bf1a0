// SPDX-License-Identifier: Apache-2.0
//
// Manner — how a client waits before it connects again, and before it repeats a NACK.
//
//   manner        after an answered stream   after a failed one     repeated NACK
//   signalbox     at once (StreamPace)       1 s × 1.6 ≤ 120 s      1 s × 1.6 ≤ 10 s
//   grpc-core     1 s                        1 s × 1.6 ≤ 120 s      at once
//   grpc-go       at once                    1 s × 1.6 ≤ 120 s      at once
//   no-jitter     as signalbox, and no wait is changed at random
//
// All other waits have a jitter of 20 %, except the first wait of grpc-go, which is exactly 1 s. In
// all manners a connection that is not made within 20 s counts as failed.
//
// A client of signalbox makes a connection for each stream, so the stream's back-off is the only
// one. A client of gRPC keeps a channel, which has a back-off of its own with the same numbers:
//
//   grpc-core   The stream waits for the channel (wait_for_ready). The channel's waits begin with
//               an attempt, and the channel tries again by itself.
//   grpc-go     The stream fails at once while the channel fails, so both back-offs grow. The
//               channel's waits begin with the end of an attempt.
//
// Source: connection-backoff.md of grpc/grpc; gRFC A57; the xDS clients of grpc/grpc (RetryableCall
// of xds_client.cc, backoff.cc) and of grpc-go (ads_stream.go, backoff.go, clientconn.go). Older
// releases of grpc/grpc do not change the first wait at random either. Not modelled: name
// resolution, idle channels, and keepalive.

#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

#include "messages/back_off.hpp"
#include "xds/client/stream_pace.hpp"

namespace signalbox::fleet {

enum class Manner : std::uint8_t { kSignalbox, kGrpcCore, kGrpcGo, kNoJitter };

inline constexpr std::array kManners = {
    Manner::kSignalbox, Manner::kGrpcCore, Manner::kGrpcGo, Manner::kNoJitter};

/// The name in the table above.
absl::string_view to_string(Manner manner);

/// How gRPC's streams and channels wait, where its two clients differ.
struct GrpcRules {
  bool waits_for_ready = false;
  bool waits_after_answered = false;
  bool first_wait_is_exact = false;
  bool waits_from_start = false;  ///< The channel's waits begin with an attempt.
};

/// nullopt: the client is signalbox's.
std::optional<GrpcRules> grpc_rules(Manner manner);

/// The options of the client's AdsSession. A session in gRPC's manner has no waits of its own,
/// because the link has them.
xds::StreamPaceOptions stream_pace(Manner manner);
BackoffOptions nack_backoff(Manner manner);

}  // namespace signalbox::fleet
