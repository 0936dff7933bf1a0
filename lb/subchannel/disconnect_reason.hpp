// SPDX-License-Identifier: Apache-2.0
//
// disconnect_reason — the reason why a connection was lost, as gRPC names it in metrics (gRFC A94).
//
//   connector: error text ─▶ ConnectionClosed ─▶ subchannel_core ─▶ [disconnect_reason] ─▶ metrics

#pragma once

#include "absl/strings/string_view.h"

namespace signalbox::lb {

/// The reason when the subchannel was stopped while it was connected.
inline constexpr char kSubchannelShutdown[] = "subchannel shutdown";
/// The reason when the error text gives none, or when there is no error: the server closed the
/// connection.
inline constexpr char kUnknownReason[] = "unknown";
/// The reason when the system has reported an error, and it is not known which.
inline constexpr char kSocketError[] = "socket error";

/// Finds the reason in an error text of gRPC or of the operating system: "GOAWAY " with the name of
/// HTTP/2's error code ("UNKNOWN" for other codes), "connection reset", "connection timed out",
/// "connection aborted", "socket error" or kUnknownReason. Returns a constant. A text that is one
/// of these reasons already yields itself.
const char* disconnect_reason(absl::string_view error);

}  // namespace signalbox::lb
