// SPDX-License-Identifier: Apache-2.0
//
// LDS: a serialised envoy.config.listener.v3.Listener becomes a Listener.
//
//   bytes ─▶ [parse_listener] ─▶ Listener ─▶ dependency manager
//
// Clients use API listeners. A listener on a socket is meant for servers. It is valid, and its
// server-side fields are not validated, but calls through it fail (A36).
//
// Source: gRFC A27 (LDS), A31 (max_stream_duration), A36, A39 (filters), A41 (fields that must not
// be set).

#pragma once

#include "absl/strings/string_view.h"

#include "messages/xds_events.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::xds {

/// Parses and checks a resource. The result's name is empty if the bytes have no readable name.
ReceivedResource parse_listener(absl::string_view bytes, const ParseOptions& options = {});

}  // namespace signalbox::xds
