// SPDX-License-Identifier: Apache-2.0
//
// The gate of xds/parse: serialised responses and resources become values, or errors to be NACKed.
//
//   DiscoveryResponse bytes ─▶ [decode_response] ─▶ ResourcesReceived ─▶ ads_session ─▶ ACK or NACK
//   Any of a resource file ──▶ [parse_resource] ──▶ ReceivedResource
//
// What is wrong with one resource never spoils another: every valid one of a response is used,
// even if the response is NACKed (A46).
//
// Source: gRFC A27, A46; the xDS transport protocol (Resource wrapper, error_detail).

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "messages/resource.hpp"
#include "messages/xds_events.hpp"
#include "xds/decoded_response.hpp"
#include "xds/parse/known_resources.hpp"
#include "xds/parse/parse_options.hpp"
#include "xds/parse/regex_budget.hpp"

namespace signalbox::xds {

/// An Any, not decoded: views into its bytes.
struct AnyView {
  absl::string_view type_url;
  absl::string_view value;
};

/// Nothing where the bytes are no Any.
std::optional<AnyView> read_any(absl::string_view bytes);

/// What the resources of one response may cost together.
struct ResponseBudget {
  explicit ResponseBudget(const Limits& limits, RegexBudget::Patterns known = {})
      : memory_left(limits.max_decoded_memory), regexes(limits, std::move(known)) {}

  std::size_t memory_left;
  RegexBudget regexes;
};

/// `type_url` and `bytes` are those of the Any that holds the resource, itself or wrapped in an
/// envoy.service.discovery.v3.Resource. The name is empty where none could be read; then the
/// resource is an error. `budget`: of the response; null: the resource has one of its own.
/// CANCELLED: the parsing was abandoned, and what the resource is is not known.
ReceivedResource parse_resource(ResourceType type,
                                absl::string_view type_url,
                                absl::string_view bytes,
                                const ParseOptions& options = {},
                                const KnownResources* known = nullptr,
                                ResponseBudget* budget = nullptr);

/// The resource refused for what is beyond a limit; nothing of it is read but the name.
ReceivedResource refuse_unread(ResourceType type,
                               const AnyView& any,
                               const Limits& limits,
                               absl::string_view limit,
                               absl::string_view what);

/// All of a response; ResponseParser does it part by part.
/// `known`: what is in it is not parsed again, and then it knows this response's resources.
/// An error where there is nothing to answer to: the bytes are too many (RESOURCE_EXHAUSTED), or no
/// DiscoveryResponse (INVALID_ARGUMENT), or its type is none of the four (UNIMPLEMENTED); CANCELLED
/// where the parsing was abandoned. Each name occurs once in the result; one that the response had
/// twice is an error.
absl::StatusOr<DecodedResponse> decode_response(absl::string_view bytes,
                                                const ParseOptions& options = {},
                                                KnownResources* known = nullptr);

}  // namespace signalbox::xds
