// SPDX-License-Identifier: Apache-2.0
//
// html — the parts that all admin pages share: the frame, the style, times in words.
//
//   renderer ─ body ─▶ [page] ─▶ a whole document, which links /style.css and runs no script
//
// Every text that comes from a configuration, a peer or a request passes escape(). The server sends
// pages with HttpServer::kContentSecurityPolicy: even if a text were not escaped, a browser would
// run no script and load nothing from elsewhere. Pages are light or dark as the browser prefers,
// and fit screens from 320 pixels on.

#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "channel/admin/escape.hpp"
#include "messages/ids.hpp"
#include "signalbox/runtime_status.hpp"

namespace signalbox::channel {

/// Makes an HTML document. `title` and `path` (of the page) are escaped here; `body` must be HTML.
std::string page(absl::string_view title,
                 absl::string_view path,
                 const RuntimeStatus& status,
                 absl::string_view body);

/// The style of all pages: GET /style.css.
absl::string_view style_sheet();

/// A duration in one unit: "850 ms", "12 s", "3 min", "5 h", "2 d". Negative durations count as 0.
std::string in_words(Duration duration);

/// "<time …>3 min</time>": how long ago `then` was, with the exact time as its title.
std::string ago(WallTime then, WallTime now);

/// "<span class="badge …">READY</span>". `kind` is the CSS class that decides the colour: good,
/// fair, bad or quiet.
std::string badge(absl::string_view kind, absl::string_view text);

}  // namespace signalbox::channel
