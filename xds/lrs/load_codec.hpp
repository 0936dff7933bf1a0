// SPDX-License-Identifier: Apache-2.0
//
// load_codec — the messages of LoadReportingService.StreamLoadStats.
//
//   lrs_session ─▶ node, LoadReading ─▶ [load_codec] ─▶ LoadStatsRequest ─▶ server
//               ◀── LoadOrder ◀──────── [load_codec] ◀─ LoadStatsResponse ◀─┘
//
// Source: gRFC A27, A64, A85; Envoy's LRS.

#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "messages/ids.hpp"
#include "messages/load_reporting.hpp"

namespace signalbox::xds {

/// What a server asks for: the load of which clusters, and how often.
struct LoadOrder {
  LoadSelection selection;
  /// The time between two reports, from kShortestInterval to kLongestInterval.
  Duration interval{};

  friend bool operator==(const LoadOrder&, const LoadOrder&) = default;
};

struct DecodedLoadOrder {
  LoadOrder order;
  /// Remarks: parts of the response that are not obeyed, with what is done instead; and that the
  /// response asks for no load.
  std::vector<std::string> notes = {};
};

/// As in gRPC, a server cannot ask for reports more often than this.
inline constexpr Duration kShortestInterval = std::chrono::seconds(1);
inline constexpr Duration kLongestInterval = std::chrono::hours(1);
/// The most cluster names that a response may have.
inline constexpr std::size_t kMostLoadClusters = 100'000;

/// The first request of a stream. `node`: a serialised Node.
std::string encode_first_load_request(absl::string_view node);

/// A load report: any later request of a stream. `clusters`: the load of one interval.
std::string encode_load_request(const std::vector<ClusterLoad>& clusters);

/// Decodes a response of the server. The error says why the response is unusable.
absl::StatusOr<DecodedLoadOrder> decode_load_response(absl::string_view bytes);

}  // namespace signalbox::xds
