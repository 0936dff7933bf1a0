// SPDX-License-Identifier: Apache-2.0
//
// CallFilter — one HTTP filter of a route: signalbox's own, or one that the program registered.
//
//   router: route ─▶ CallFilter::apply(FilterCall) of each, in order ─▶ delay ─▶ end, or pick
//
// A filter gives orders for the call and does nothing itself: it neither waits nor sends. The
// router runs the filters of the chain in order, once per call, as soon as the call has its route.
// It runs no filter after one that ended the call. A call that is picked again is not filtered
// again. The orders are carried out afterwards: first the delays, which add up, then the end, if a
// filter ended the call.
//
// Source: gRFC A39 (filters), A33 (fault), A60 (a filter may change the cluster).

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox {

/// A call on its way through the filters. A filter may use the FilterCall only during apply() or
/// explain().
class FilterCall {
 public:
  virtual ~FilterCall() = default;

  /// "/package.Service/Method".
  virtual absl::string_view path() const = 0;

  /// The headers that are sent with the call: the application's, and those of earlier filters.
  virtual const HeaderSource& headers() const = 0;

  /// An evenly spread number below `bound` (> 0). It belongs to the call, and differs for each salt
  /// and for each filter of the chain.
  virtual std::uint64_t draw_below(Salt salt, std::uint64_t bound) const = 0;

  /// The cluster that the call goes to so far.
  virtual const ClusterName& cluster() const = 0;

  /// Whether more than one entry of the route's clusters can get calls. An entry of weight 0 can
  /// get calls only if the listener has a stateful_session filter.
  virtual bool has_choice() const = 0;

  /// Sends the call to another cluster of the route. Returns false, and changes nothing, when no
  /// entry that can get calls names `cluster`.
  virtual bool send_to(absl::string_view cluster) = 0;

  /// Lets the call wait before any part of it is sent. A negative `duration` counts as 0. `hold`
  /// (may be null) is destroyed when the call has waited or has ended, so its destructor can react
  /// to that moment.
  virtual void delay(Duration duration, std::shared_ptr<const void> hold = nullptr) = 0;

  /// Ends the call with this status, of any code, after the call's delays. Later filters do not
  /// run. With OK the call ends as if the server had answered with the status and no message.
  virtual void end(absl::Status status) = 0;

  /// Makes the call part of a session (A55). Returns the object of lb/session/session that the
  /// filter fills. Returns null when an earlier filter has begun a session.
  virtual SessionHint* begin_session() = 0;

  /// Adds a header to the call. Returns false, and adds nothing, when the name begins with "grpc-",
  /// which is reserved for gRPC, or when gRPC would not take the header (header_rules.hpp). gRPC
  /// takes names of lower-case letters, digits, '-', '_' and '.'. It takes values of printable
  /// ASCII, or any bytes when the name ends with "-bin".
  virtual bool add_header(std::string name, std::string value) = 0;
};

/// Immutable. Any thread calls it, concurrently and inside the snapshot's read section, so it must
/// not block. Signalbox's own filters take no lock, and allocate nothing for a call to which they
/// do nothing.
class CallFilter {
 public:
  virtual ~CallFilter() = default;

  virtual void apply(FilterCall& call) const = 0;

  /// Gives the same orders as apply(), for a call that is only explained. It counts no call, and
  /// does not count against a limit of the filter (such as max_active_faults). The default is
  /// apply(), for filters without counters and limits. The caller reports the orders to `trace`;
  /// the filter may report the reasons to `trace`.
  virtual void explain(FilterCall& call, PickTrace& /*trace*/) const { apply(call); }
};

using CallFilterPtr = std::shared_ptr<const CallFilter>;

}  // namespace signalbox
