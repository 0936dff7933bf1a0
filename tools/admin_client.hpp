// SPDX-License-Identifier: Apache-2.0
//
// admin_client — requests admin pages from a running process (Runtime::serve_admin).
//
//   `signalbox dump`, `explain`, `top` ─▶ [admin_get] ─┬▶ unix socket or loopback
//   `signalbox ready` ──────────────────▶ [admin_ask] ─┘             └▶ the runtime's pages

#pragma once

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "channel/admin/admin_address.hpp"

namespace signalbox::tools {

struct AdminAnswer {
  int code = 0;  ///< The HTTP status code.
  std::string body;
};

/// The answer for a page, whatever its HTTP code is. The errors are those of admin_get(), except
/// those that an HTTP code causes.
absl::StatusOr<AdminAnswer> admin_ask(
    const channel::AdminAddress& address,
    absl::string_view page,
    std::chrono::milliseconds patience = std::chrono::seconds(30));

/// The body of a page. NOT_FOUND: nothing listens at the address, and the message says what to do.
/// PERMISSION_DENIED: this user may not connect to the socket. INVALID_ARGUMENT: the path is no
/// socket, or the server does not understand the question. Every other failure is UNAVAILABLE, with
/// the server's message if the server sent one. Blocks for at most `patience`.
absl::StatusOr<std::string> admin_get(
    const channel::AdminAddress& address,
    absl::string_view page,
    std::chrono::milliseconds patience = std::chrono::seconds(30));

/// A value of a query: every character but letters, digits, `-`, `.`, `_` and `~` is
/// percent-encoded.
std::string query_value(absl::string_view text);

}  // namespace signalbox::tools
