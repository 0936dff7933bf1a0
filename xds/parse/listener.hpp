// SPDX-License-Identifier: Apache-2.0
//
// LDS: a serialised envoy.config.listener.v3.Listener becomes a Listener.
//
//   bytes ─▶ [parse_listener] ─▶ Listener ─▶ dependency manager
//
// A client's listener is an API listener. One that listens on a socket is a server's: it is valid,
// and what servers make of it is not looked at, but calls fail with it (A36).
//
// Source: gRFC A27 (LDS), A31 (max_stream_duration), A36, A39 (filters), A41 (fields that must not
// be set).

#pragma once

#include "absl/strings/string_view.h"

#include "messages/xds_events.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::xds {

/// The name is empty where it could not be read.
ReceivedResource parse_listener(absl::string_view bytes, const ParseOptions& options = {});

}  // namespace signalbox::xds
