// SPDX-License-Identifier: Apache-2.0
//
// fault — delays and aborts calls on purpose (gRFC A33).
//
//   FaultFilter ─▶ [make_fault_filter] ─▶ CallFilter in the chains of routes
//
//   delay  drawn ─┐                        ┌▶ delay: the call waits, then goes on
//                 ├▶ max_active_faults ────┼▶ abort: the call ends, after the delay if there is one
//   abort  drawn ─┘  full: no fault at all └▶ neither: the call goes on
//
// Headers of a call can only lower the configured percentage. A header value that is no whole
// number, negative or out of range is ignored. If a header has several values, the first valid one
// is used.
//
// Invariants
//   F1  Delay and abort are drawn independently of each other.
//   F2  A call with a delay counts once in each fault filter against max_active_faults, until the
//       delay is over or the call has ended. An abort without a delay is over at once, but does not
//       happen when max_active_faults is reached.

#pragma once

#include "lb/request_limit.hpp"
#include "messages/call_filter.hpp"
#include "messages/counting/drop_counts.hpp"
#include "messages/http_filter.hpp"

namespace signalbox::lb {

/// The counters of faults.
struct FaultOptions {
  /// Counts calls with an active fault. Null: each filter counts only its own calls.
  RequestLimitPtr active = nullptr;
  FaultCountPtr injected = nullptr;  ///< Injected faults, for operators. Null: not counted.
};

/// The count for FaultOptions::active that all runtimes of the process share. A33 limits active
/// faults "for the entire process".
const RequestLimitPtr& active_faults_of_process();

/// Makes the filter; null: its configuration can never cause a fault.
CallFilterPtr make_fault_filter(const FaultFilter& config, const FaultOptions& options);

}  // namespace signalbox::lb
