// SPDX-License-Identifier: Apache-2.0
//
// html_page — what the HTML files of the command share: the head, the style, and escaping.
//
//   title, style of the page ─▶ [html_head] ─▶ plan_html, load/report_html
//
// A page is one file, light or dark as the reader's system is. The colours c0 to c4, c7 and c9 are
// from Okabe and Ito's palette, which is made for colour-blind readers. These readers may confuse
// others of the twelve, such as c5 with c0, or c11 with c6.

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::tools {

inline constexpr std::size_t kPageColours = 12;  ///< The number of CSS classes c0 … c11.

/// Escapes text for HTML content and double-quoted attributes.
std::string escape_html(absl::string_view text);

/// Everything up to `</head>`. `title`: the caller has escaped it. `style`: the page's own CSS,
/// after the common CSS. `more`: further elements, such as a Content-Security-Policy.
std::string html_head(absl::string_view title,
                      absl::string_view style,
                      absl::string_view more = "");

/// A table in a box that scrolls sideways where the page is narrow.
std::string html_scroll(absl::string_view table);

}  // namespace signalbox::tools
