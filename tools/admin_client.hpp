// SPDX-License-Identifier: Apache-2.0
//
// admin_client — asks a running process that serves its admin pages (Runtime::serve_admin).
//
//   `signalbox dump`, `signalbox explain` ─▶ [admin_get] ─▶ unix socket or loopback
//                                                                  └▶ the runtime's pages

#pragma once

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "channel/admin/admin_address.hpp"

namespace signalbox::tools {

/// The body of a page. NOT_FOUND: nobody is there, and what to do about it. PERMISSION_DENIED: the
/// socket is somebody else's. INVALID_ARGUMENT: the server does not understand what it is asked.
/// Otherwise the page cannot be had, in the server's words where it has
/// some. Blocks, at most for `patience` in all.
absl::StatusOr<std::string> admin_get(
    const channel::AdminAddress& address,
    absl::string_view page,
    std::chrono::milliseconds patience = std::chrono::seconds(30));

/// A value of a query: what is no letter, digit, `-`, `.`, `_` or `~` is percent-encoded.
std::string query_value(absl::string_view text);

}  // namespace signalbox::tools
