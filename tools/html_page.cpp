// SPDX-License-Identifier: Apache-2.0
#include "tools/html_page.hpp"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace signalbox::tools {
namespace {

constexpr absl::string_view kStyle = R"(
:root { color-scheme: light dark; --page: #fff; --text: #1c2024; --quiet: #5b646d; --line: #d7dce1;
  --track: #e9edf0; --now: #9aa5af; --shade: rgba(0, 0, 0, .28); }
@media (prefers-color-scheme: dark) { :root { --page: #14181c; --text: #e6e9ec; --quiet: #9ba6b0;
  --line: #333b43; --track: #262d34; --now: #6c7884; --shade: rgba(0, 0, 0, .75); } }
* { box-sizing: border-box; }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1.25rem; background: var(--page);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p, ul { margin: .25rem 0 .75rem; } ul { padding-left: 1.2rem; }
.quiet { color: var(--quiet); }
.key { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; list-style: none; }
.key i { display: inline-block; width: .9rem; height: .9rem; border-radius: 3px;
  margin-right: .4rem; vertical-align: -2px; }
.c0 { background: #0072b2; color: #fff; } .c1 { background: #e69f00; color: #000; }
.c2 { background: #009e73; color: #000; } .c3 { background: #cc79a7; color: #000; }
.c4 { background: #56b4e9; color: #000; } .c5 { background: #8a6bbf; color: #fff; }
.c6 { background: #b5a642; color: #000; } .c7 { background: #d55e00; color: #000; }
.c8 { background: #3f51b5; color: #fff; } .c9 { background: #f0e442; color: #000; }
.c10 { background: #8c2f6b; color: #fff; } .c11 { background: #8ccf5a; color: #000; }
.scroll { overflow-x: auto; background:
  linear-gradient(to right, var(--page) 40%, transparent) left / 3rem 100% no-repeat local,
  linear-gradient(to left, var(--page) 40%, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to right, var(--shade), transparent) left / .8rem 100% no-repeat scroll,
  linear-gradient(to left, var(--shade), transparent) right / .8rem 100% no-repeat scroll; }
.hint { display: none; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .2rem .6rem; white-space: nowrap; }
thead th { font-weight: 600; } thead tr:last-child th { border-bottom: 1px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
tbody th { font-weight: 400; }
@media (max-width: 60rem) { .hint { display: block; } }
)
)";

}  // namespace

std::string escape_html(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string html_head(absl::string_view title, absl::string_view style, absl::string_view more) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n",
      more,
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      title,
      "</title>\n<style>",
      kStyle,
      style,
      "</style></head>\n");
}

std::string html_scroll(absl::string_view table) {
  return absl::StrCat(
      "<p class=\"hint quiet\">The table scrolls sideways →</p>\n<div class=\"scroll\">",
      table,
      "</div>\n");
}

}  // namespace signalbox::tools
