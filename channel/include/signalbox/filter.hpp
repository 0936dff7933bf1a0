// SPDX-License-Identifier: Apache-2.0
//
// Custom HTTP filters — the program's own code, which a call passes before its pick (gRFC A39).
//
//   RuntimeOptions::http_filters ─▶ Runtime::start
//   a listener's http_filters: Any "…/com.example.Tenant" or TypedStruct of that type
//      ─▶ parse(configuration) ─▶ CallFilter, or NACK
//   typed_per_filter_config ─▶ parse_override ─▶ another CallFilter for that virtual host, route or
//                              weighted cluster; it replaces the CallFilter of the listener's chain
//                              of filters, and nothing of that filter's configuration remains
//   a call with its route ─▶ CallFilter::apply(FilterCall), once: end the call, delay it, add
//                            headers, or send it to another cluster of its route
//
// A filter gives orders (end the call, delay it, add headers, change its cluster), and signalbox
// carries them out: messages/call_filter.hpp has all orders. Filters run in the order of the
// listener. Each filter sees the headers and the cluster that the filters before it have ordered.
// docs/custom_filter.md has a complete example.
//
// Threads. Several threads may call parse at the same time. A CallFilter is immutable: any thread
// may call it at any time, concurrently and without a lock. It runs on the thread that makes or
// picks the call, or on a thread of the runtime or of gRPC when the call had to wait. It must not
// block; its counters must be atomic. Any thread may destroy it, such as one that calls
// Runtime::plan(), which parses the filters again for its plan.
//
// Cost. Each filter costs a call two virtual function calls, beside those that it makes itself.
// FilterCall allocates only when a filter gives an order. A route without filters costs nothing.
//
// How orders are carried out. The drop-in channel carries out all orders. In the Pick API, the Pick
// of a delayed call has the outcome kQueue. Its Pick::delay() is not 0, and Router::wait waits
// until the delay is over. The Pick of a call that a filter ended has the outcome kDrop and the
// filter's status. The program sends the headers of Pick::take_headers() with the call. Routes and
// hash policies run before the filters, and do not see the headers that filters add; LB policies
// see them.
//
// Explanations (Router::explain) call CallFilter::explain, which calls apply() by default. An
// explanation must change nothing. So override explain() when the apply() of the filter counts
// calls, or admits them up to a limit. The router adds the filter's orders to the explanation.
//
// Errors. An error from parse refuses the resource: the NACK has the field's name and the error's
// message, and the last good version stays in use, unless the server has the feature
// fail_on_data_errors. An exception from parse, or a null filter, counts as an error. A filter that
// throws ends that call with INTERNAL, and the call is counted
// (signalbox_custom_filter_failures_total). An override names its filter, and may by mistake hold
// the configuration of another filter's type. The calls of that virtual host, route or weighted
// cluster then fail UNAVAILABLE.
//
// Lifetime. The runtime copies the registrations and keeps the copies until it is destroyed. A
// CallFilter lives as long as a configuration names it, and none is left when ~Runtime returns.
//
// Version. The rules for custom policies hold: see policy.hpp.

#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

#include "messages/call_filter.hpp"
#include "messages/http_filter.hpp"

namespace signalbox {

/// One custom HTTP filter, to be registered in RuntimeOptions::http_filters. A custom filter is
/// never the terminal filter of a listener.
struct CustomHttpFilter {
  /// Reads `config`: the JSON of a TypedStruct's value ("{}" without a value), or the bytes of the
  /// message in an Any; RawFilterConfig::is_json says which. Returns a filter that is not null. The
  /// result may depend on `config` alone, because signalbox takes equal texts for equal
  /// configurations. An error says what is required and what was found: "tenant: must be set, found
  /// none". At most 1000 bytes of the error are sent to the control plane.
  using Parse = std::function<absl::StatusOr<CallFilterPtr>(const RawFilterConfig& config)>;

  /// The full name of the configuration's type: "com.example.Tenant" for
  /// "type.googleapis.com/com.example.Tenant". Printable ASCII without spaces, '/', '\' and '"'.
  /// The API's own prefixes are refused ("envoy.", "xds.", "udpa.", "google.protobuf.").
  std::string type;

  Parse parse;  ///< Must be set.

  /// Reads an override, from the typed_per_filter_config of a virtual host, route or weighted
  /// cluster. Unset: overrides of this filter are refused.
  Parse parse_override = nullptr;

  /// The full name of the type of an override's configuration; empty: the same as `type`.
  std::string override_type = {};
};

}  // namespace signalbox
