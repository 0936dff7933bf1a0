// SPDX-License-Identifier: Apache-2.0
//
// LDS: a serialised envoy.config.listener.v3.Listener becomes a Listener.
//
//   bytes ─▶ [parse_listener] ─▶ Listener ─▶ dependency manager
//
// A client's listener is an API listener; one that listens on a socket is an error (A36).
//
// Source: gRFC A27 (LDS), A31 (max_stream_duration), A36, A39 (filters).

#pragma once

#include "absl/strings/string_view.h"

#include "messages/xds_events.hpp"

namespace signalbox::xds {

/// The name is empty where the bytes could not be decoded.
ReceivedResource parse_listener(absl::string_view bytes);

}  // namespace signalbox::xds
