// SPDX-License-Identifier: Apache-2.0
//
// CallFilter — one HTTP filter of a route, as calls pass it: signalbox's own, and the user's.
//
//   router: route ─▶ CallFilter::apply(FilterCall) of each, in order ─▶ delay ─▶ end, or pick
//
// A filter says what is to become of the call, and does nothing itself: it neither waits nor sends.
// All filters of the chain are asked at once, when the call has its route, and once per call: not
// again when it is picked again. Then what they said is carried out: first the delays, which add
// up; then the end, if one of them ended the call.
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

/// A call on its way through the filters. Borrowed for the duration of apply().
class FilterCall {
 public:
  virtual ~FilterCall() = default;

  /// "/package.Service/Method".
  virtual absl::string_view path() const = 0;

  /// What is sent with the call: the application's, and what earlier filters have added.
  virtual const HeaderSource& headers() const = 0;

  /// An evenly spread number below `bound` (> 0), the call's own; another one for each salt, and
  /// for each filter of the chain.
  virtual std::uint64_t draw_below(Salt salt, std::uint64_t bound) const = 0;

  /// Where the call goes as things stand.
  virtual const ClusterName& cluster() const = 0;

  /// Whether the route names more than one.
  virtual bool has_choice() const = 0;

  /// Another cluster of those that the route names. False, and nothing is changed, for any other.
  virtual bool send_to(absl::string_view cluster) = 0;

  /// The call waits so long before anything of it is sent; less than 0 is 0. `hold` is kept until
  /// it has waited, or has ended: null, or something whose end is of interest.
  virtual void delay(Duration duration, std::shared_ptr<const void> hold = nullptr) = 0;

  /// The call ends with this status, whatever its code, after it has waited; later filters are not
  /// asked. OK: as if the server had answered with nothing else.
  virtual void end(absl::Status status) = 0;

  /// The call is of a session from now on (A55): what it wishes for is written there. Once only:
  /// null when an earlier filter has begun one.
  virtual Session* begin_session() = 0;

  /// Sends a header more. False, and nothing is added, unless gRPC takes it: a name of lower-case
  /// letters, digits, '-', '_' and '.' that does not begin with "grpc-", and a value of printable
  /// ASCII, or of any bytes where the name ends with "-bin".
  virtual bool add_header(std::string name, std::string value) = 0;
};

/// Immutable; asked by any thread, concurrently, inside the snapshot's read section: it must not
/// block. Signalbox's own take no lock, and allocate nothing for a call that they let pass.
class CallFilter {
 public:
  virtual ~CallFilter() = default;

  virtual void apply(FilterCall& call) const = 0;

  /// Says the same of a call that is only explained: it counts nothing, and takes nobody's place.
  /// What it says of the call is told by whoever asks it; here it may tell why.
  virtual void explain(FilterCall& call, PickTrace& /*trace*/) const { apply(call); }
};

using CallFilterPtr = std::shared_ptr<const CallFilter>;

}  // namespace signalbox
