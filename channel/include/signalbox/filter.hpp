// SPDX-License-Identifier: Apache-2.0
//
// Custom HTTP filters — what calls pass before they are picked, in code of your own (gRFC A39).
//
//   RuntimeOptions::http_filters ─▶ Runtime::start
//   a listener's http_filters: Any "…/com.example.Tenant" or TypedStruct of that type
//      ─▶ parse(configuration) ─▶ CallFilter, or NACK
//   typed_per_filter_config ─▶ parse_override ─▶ another CallFilter for that virtual host, route or
//                              weighted cluster; it replaces the chain's, the two are not merged
//   a call with its route ─▶ CallFilter::apply(FilterCall), once: end it, delay it, add headers,
//                            send it to another cluster of its route
//
// messages/call_filter.hpp says what a filter may order; filters stand in the order of the
// listener, and each sees what those before it did. docs/custom_filter.md has a whole one.
//
// Threads. parse may be called by several threads at once. A CallFilter is immutable, and asked by
// any thread at any time, concurrently, on the thread that makes the call (of a call that had to
// wait for a configuration, on one of the runtime's), without a lock: it must not block, and what
// it counts is an atomic's business. It is destroyed on a thread of the runtime.
//
// Cost. One virtual call for each call and filter. FilterCall allocates only when a filter orders
// something. A route without filters costs nothing.
//
// What is done with an order. Drop-in channel: all of it. Pick API: a delayed Pick is kQueue with
// Pick::delay(), and Router::wait waits for it; an ended one is kDrop with the filter's status; the
// headers are Pick::take_headers(), yours to send. LB policies see the headers of filters, routes
// and hash policies do not: these come first.
//
// Explanations (Router::explain) ask CallFilter::explain, which is apply() unless you write one: a
// filter that counts, or takes places, should. What it orders is told by itself.
//
// Errors. What parse returns as an error refuses the resource: the NACK names the field and has the
// error's message, the last good version stays in use. A parse that throws, or makes nothing, is
// the same. A filter that throws ends that call with INTERNAL, and is counted
// (signalbox_custom_filter_failures_total). An override by the configuration of another filter
// fails the calls that it concerns.
//
// Lifetime. What is registered is copied, and kept until the runtime is destroyed; a CallFilter as
// long as a configuration names it. When ~Runtime returns, none is left.
//
// Version. As of custom policies: see policy.hpp.

#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

#include "messages/call_filter.hpp"
#include "messages/http_filter.hpp"

namespace signalbox {

/// What is registered: RuntimeOptions::http_filters. It is never the terminal filter.
struct CustomHttpFilter {
  /// Reads `config`: the JSON of a TypedStruct's value ("{}" where there is none), or the bytes of
  /// the message in an Any; RawFilterConfig::is_json says which. Not null. It depends on nothing
  /// but that: equal texts are taken for equal configurations. An error says what must be and what
  /// was found: "tenant: must be set, found none". At most 1000 bytes of it are sent.
  using Parse = std::function<absl::StatusOr<CallFilterPtr>(const RawFilterConfig& config)>;

  /// The full name of its configuration's type: "com.example.Tenant" of
  /// "type.googleapis.com/com.example.Tenant". Printable ASCII without spaces, slashes or quotes;
  /// none of the API's own ("envoy.", "xds.", "udpa.", "google.protobuf.").
  std::string type;

  Parse parse;  ///< Must be set.

  /// Reads an override. Empty: there are none, and one is refused.
  Parse parse_override = nullptr;

  /// The type of an override; empty: the same as `type`.
  std::string override_type = {};
};

}  // namespace signalbox
