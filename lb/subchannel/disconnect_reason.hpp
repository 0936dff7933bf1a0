// SPDX-License-Identifier: Apache-2.0
//
// disconnect_reason — gRPC's word for the reason why a connection was lost (gRFC A94).
//
//   connector: error text ─▶ ConnectionClosed ─▶ subchannel_core ─▶ [disconnect_reason] ─▶ metrics

#pragma once

#include "absl/strings/string_view.h"

namespace signalbox::lb {

/// The subchannel was stopped while its connection was up.
inline constexpr char kSubchannelShutdown[] = "subchannel shutdown";
/// The error says nothing about the reason, or there is none: the server closed the connection.
inline constexpr char kUnknownReason[] = "unknown";

/// The word for an error text of gRPC or of the operating system: "GOAWAY " with the name of
/// HTTP/2's error code, "connection reset", "connection timed out", "connection aborted", "socket
/// error" or kUnknownReason. Returns a constant. A text that is such a word stands for itself.
const char* disconnect_reason(absl::string_view error);

}  // namespace signalbox::lb
