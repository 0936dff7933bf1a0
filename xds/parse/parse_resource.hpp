// SPDX-License-Identifier: Apache-2.0
//
// The entry points of xds/parse: turn serialised responses and resources into values, or into
// errors to be NACKed.
//
//   DiscoveryResponse bytes ─▶ [decode_response] ─▶ ResourcesReceived ─▶ ads_session ─▶ ACK or NACK
//   Any of a resource file ──▶ [parse_resource] ──▶ ReceivedResource
//
// An invalid resource does not affect other resources: all valid resources of a response are used,
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

/// An Any that is not decoded: views into its bytes.
struct AnyView {
  absl::string_view type_url;
  absl::string_view value;
};

/// nullopt if the bytes are no Any.
std::optional<AnyView> read_any(absl::string_view bytes);

/// The memory and the regular expressions that the resources of one response may use together.
struct ResponseBudget {
  explicit ResponseBudget(const Limits& limits, RegexBudget::Patterns known = {})
      : memory_left(limits.max_decoded_memory), regexes(limits, std::move(known)) {}

  std::size_t memory_left;
  RegexBudget regexes;
};

/// `type_url` and `bytes`: the fields of the Any that holds the resource, either directly or
/// wrapped in an envoy.service.discovery.v3.Resource. `budget`: the budget of the response; null:
/// the resource has a budget of its own. The name is empty if it could not be read; the resource is
/// an error then. CANCELLED: the parsing was abandoned, and the validity of the resource is
/// unknown.
ReceivedResource parse_resource(ResourceType type,
                                absl::string_view type_url,
                                absl::string_view bytes,
                                const ParseOptions& options = {},
                                const KnownResources* known = nullptr,
                                ResponseBudget* budget = nullptr);

/// Refuses a resource that is beyond a limit. Only the resource's name is read from the bytes.
ReceivedResource refuse_unread(ResourceType type,
                               const AnyView& any,
                               const Limits& limits,
                               absl::string_view limit,
                               absl::string_view what);

/// Parses a whole response; ResponseParser parses it part by part.
/// `known`: its resources are not parsed again. Afterwards it has the resources of this response.
/// Errors, for which no ACK or NACK is possible: too many bytes (RESOURCE_EXHAUSTED), no
/// DiscoveryResponse (INVALID_ARGUMENT), an unsupported type (UNIMPLEMENTED), or the parsing was
/// abandoned (CANCELLED). Each name occurs once in the result. A name that occurs twice in the
/// response is an error.
absl::StatusOr<DecodedResponse> decode_response(absl::string_view bytes,
                                                const ParseOptions& options = {},
                                                KnownResources* known = nullptr);

}  // namespace signalbox::xds
