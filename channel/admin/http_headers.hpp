// SPDX-License-Identifier: Apache-2.0
//
// http_headers — reads a request's headers for HttpDoor, before the HTTP library reads them.
//
//   bytes of a socket ─▶ [end_of_headers] ─▶ complete headers ─▶ [flaw_of_headers] ─▶ 400
//                                                            └─▶ [path_of_request] ─▶ a lane
//
// Pure, and fuzzed (tests/fuzz/fuzz_admin.cpp): the bytes come from any client that can connect.

#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::channel {

/// The end of a request's headers, after the empty line; nullopt: the headers are incomplete.
std::optional<std::size_t> end_of_headers(absl::string_view bytes);

/// The path of a request with these headers, as the client sent it (not decoded), without the
/// query. Empty: the first line has no path.
absl::string_view path_of_request(absl::string_view headers);

/// Why a request with these complete headers is refused; nullopt: it is not refused.
std::optional<std::string> flaw_of_headers(absl::string_view headers);

}  // namespace signalbox::channel
