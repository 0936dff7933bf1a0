// SPDX-License-Identifier: Apache-2.0
//
// call_reach — how far a failed call came: whether a server can have processed it.
//
//   gRPC's call ─▶ lost_connection: CallFacts ─▶ [judge_reach] ─▶ retried_call: made again, or not
//
// If a server refuses a call by GOAWAY or by RST_STREAM, gRPC makes the call's status and writes a
// fixed text into it. A server could write the same text into a status of its own, as proxies do
// when they pass errors on. So the text alone does not prove that no server has processed the call.
//
// The number of trailer entries tells the two kinds of statuses apart: a status that gRPC makes has
// one entry, a server's status has two or more. One exception: if a GOAWAY says that the server has
// not processed the call, gRPC's transport adds a second entry. In that case the connection leaves
// READY. The second entry is lost if one of the call's sends was in progress, because gRPC cancels
// a call when a send fails. A call that was in progress when its connection broke off after a
// GOAWAY has the same text as a refused call, and may have been processed.

#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace signalbox::actors {

/// How far a failed call came on its way to a server.
enum class Reach {
  kNowhere,  ///< No server can have received any of the call.
  kRefused,  ///< A server received part of the call, and says that it processed nothing.
  kServer,   ///< A server may have processed the call.
};

/// The facts about a call that failed with UNAVAILABLE.
struct CallFacts {
  absl::string_view error;          ///< ClientContext::debug_error_string() of the call.
  std::size_t trailer_entries = 0;  ///< GrpcAccess::trailer_entries().
  bool has_headers = false;         ///< Response headers have begun to arrive.
  bool has_no_transport = false;    ///< has_no_transport() of lost_connection.hpp.
  bool was_taken = false;           ///< A transport may have had the call before the call ended.
};

/// Judges how far the call came. `leaves_ready` returns whether the call's connection leaves READY,
/// as a connection does after a real GOAWAY. `leaves_ready` may wait for up to a second, so it is
/// called only for an error with the text of a GOAWAY or of a closed transport.
Reach judge_reach(const CallFacts& facts, absl::FunctionRef<bool()> leaves_ready);

}  // namespace signalbox::actors
