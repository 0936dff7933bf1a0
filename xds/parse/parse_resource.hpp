// SPDX-License-Identifier: Apache-2.0
//
// parse_resource — turns a serialised resource into a value, or into errors to be NACKed.
//
//   Any of a response ───────▶ [parse_resource] ─▶ ReceivedResource ─▶ ResponseParser
//   Any of a resource file ──▶ [parse_resource] ─▶ ReceivedResource
//
// All valid resources of a response are used, even if the response is NACKed because of other
// resources (A46).
//
// Source: gRFC A27, A46; the xDS transport protocol (Resource wrapper, error_detail).

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "messages/resource.hpp"
#include "messages/xds_events.hpp"
#include "xds/limits.hpp"
#include "xds/parse/known_resources.hpp"
#include "xds/parse/parse_options.hpp"
#include "xds/parse/regex_budget.hpp"

namespace signalbox::xds {

/// An Any that is not decoded: views into its bytes.
struct AnyView {
  absl::string_view type_url;
  absl::string_view value;
};

/// Reads the two fields of an Any; nullopt if the bytes are no Any.
std::optional<AnyView> read_any(absl::string_view bytes);

/// The memory and the regular expressions that the resources of one response may use together.
struct ResponseBudget {
  explicit ResponseBudget(const Limits& limits, RegexBudget::Patterns known = {})
      : memory_left(limits.max_decoded_memory), regexes(limits, std::move(known)) {}

  std::size_t memory_left;
  RegexBudget regexes;
};

/// `type_url` and `bytes`: the fields of the Any that holds the resource, either directly or
/// wrapped in an envoy.service.discovery.v3.Resource. `known`: the resources of the last response,
/// which need not be parsed again; null: none. `budget`: the budget of the response; null: the
/// resource has a budget of its own. The name is empty if it could not be read; the resource is an
/// error then. CANCELLED: the parsing was abandoned, and the validity of the resource is unknown.
ReceivedResource parse_resource(ResourceType type,
                                absl::string_view type_url,
                                absl::string_view bytes,
                                const ParseOptions& options = {},
                                const KnownResources* known = nullptr,
                                ResponseBudget* budget = nullptr);

/// The name of a resource that is not decoded: its own, or if it has none, that of the Resource
/// that wraps it. Empty: neither has a readable name.
std::string read_name(ResourceType type, const AnyView& any, const Limits& limits);

/// Refuses a resource that is beyond a limit. Only the wrappers and the resource's name are read
/// from the bytes.
ReceivedResource refuse_unread(ResourceType type,
                               const AnyView& any,
                               const Limits& limits,
                               absl::string_view limit,
                               absl::string_view what);

}  // namespace signalbox::xds
