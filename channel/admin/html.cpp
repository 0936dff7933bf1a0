// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/html.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

#include "channel/admin/status_json.hpp"

namespace signalbox::channel {
namespace {

constexpr absl::string_view kStyle = R"(
:root { color-scheme: light dark; --page: #fff; --text: #1c2024; --quiet: #59636d; --line: #d7dce1;
  --card: #f6f8fa; --link: #0b5cad; --good: #1a7f37; --fair: #8a5a00; --bad: #b3261e;
  --good-fill: #1a7f37; --fair-fill: #9a6700; --far-fill: #bc4c00; --deep-fill: #8250df;
  --bad-fill: #d1242f; --on-fill: #fff; --track: #e9edf0; }
@media (prefers-color-scheme: dark) { :root { --page: #14181c; --text: #e6e9ec; --quiet: #9ba6b0;
  --line: #333b43; --card: #1b2127; --link: #6cb6ff; --good: #57c26d; --fair: #e0b04a;
  --bad: #ff8078; --good-fill: #238636; --fair-fill: #9e6a03; --far-fill: #a8480a;
  --deep-fill: #7a4fd0; --bad-fill: #b62324; --track: #262d34; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 84rem; padding: 0 1.25rem 3rem; background: var(--page);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
a { color: var(--link); }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem 1rem;
  padding: 1rem 0 .75rem; border-bottom: 1px solid var(--line); }
header strong { font-size: 1.1rem; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; }
nav a[aria-current] { color: var(--text); text-decoration: none; font-weight: 650; }
h1 { font-size: 1.4rem; margin: 1.25rem 0 .5rem; }
h2 { font-size: 1.1rem; margin: 1.75rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .3rem; }
p, ul { margin: .25rem 0 .75rem; } ul { padding-left: 1.2rem; }
.quiet { color: var(--quiet); } .reason { color: var(--quiet); font-size: .9rem; }
.badge { display: inline-block; padding: 0 .45rem; border: 1px solid currentColor;
  border-radius: 1rem; font-size: .8rem; font-weight: 600; white-space: nowrap; }
.good { color: var(--good); } .fair { color: var(--fair); } .bad { color: var(--bad); }
.leaf { padding-left: 1rem; border-left: 3px solid var(--line); }
table { border-collapse: collapse; width: 100%; margin: .25rem 0 .75rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid var(--line); }
thead th { font-weight: 600; color: var(--quiet); font-size: .85rem; }
thead th, .word { overflow-wrap: break-word; } th.mono { min-width: 12rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, .mono { font-family: ui-monospace, monospace; font-size: .9em; }
svg { display: block; width: 100%; margin: .15rem 0 .6rem; }
svg text { font: 12px system-ui, sans-serif; fill: var(--text); }
svg .on text { fill: var(--on-fill); } svg .axis { stroke: var(--line); }
.whole { white-space: nowrap; }
svg .tick { fill: var(--quiet); }
.track { fill: var(--track); } .p0 { fill: var(--good-fill); } .p1 { fill: var(--fair-fill); }
.p2 { fill: var(--far-fill); } .p3 { fill: var(--deep-fill); } .none { fill: var(--bad-fill); }
.key { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; list-style: none; }
.key svg { display: inline-block; width: .9rem; height: .9rem; margin: 0 .4rem 0 0;
  vertical-align: -2px; }
@media (max-width: 44rem) {
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody, tr, td, th { display: block; }
  tr { margin: .5rem 0; padding: .4rem .75rem; background: var(--card); border-radius: 6px; }
  th, td { border: 0; padding: .1rem 0; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--quiet);
    font-size: .85rem; }
  td:empty { display: none; } .number { text-align: left; white-space: normal; }
}
)";

struct Link {
  const char* path;
  const char* text;
};

constexpr std::array kLinks{Link{"/", "Overview"},
                            Link{"/clusters", "Clusters"},
                            Link{"/priorities", "Priorities"},
                            Link{"/certs", "Certificates"},
                            Link{"/stats", "Stats"},
                            Link{"/help", "All pages"}};

}  // namespace

std::string page(absl::string_view title,
                 absl::string_view path,
                 const RuntimeStatus& status,
                 absl::string_view body) {
  std::string links;
  for (const Link& link : kLinks) {
    absl::StrAppend(&links,
                    "<a href=\"",
                    link.path,
                    link.path == path ? "\" aria-current=\"page\">" : "\">",
                    link.text,
                    "</a>\n");
  }
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      escape(title),
      " – signalbox</title>\n<link rel=\"stylesheet\" href=\"/style.css\">\n</head>\n<body>\n"
      "<header><strong>signalbox</strong> ",
      status.ready ? badge("good", "ready") : badge("bad", "not ready"),
      "\n<nav>\n",
      links,
      "</nav></header>\n<main>\n<h1>",
      escape(title),
      "</h1>\n",
      body,
      "</main>\n<p class=\"quiet\">Made ",
      rfc3339(status.made),
      " by ",
      status.node_id.empty() ? "a node without an id" : escape("node " + status.node_id),
      ". <a href=\"",
      escape(path),
      "\">Load again</a></p>\n</body>\n</html>\n");
}

absl::string_view style_sheet() {
  return kStyle;
}

std::string in_words(Duration duration) {
  using std::chrono::duration_cast;
  const auto milliseconds =
      std::max<std::int64_t>(0, duration_cast<std::chrono::milliseconds>(duration).count());
  if (milliseconds < 1000) return absl::StrCat(milliseconds, " ms");
  const std::int64_t seconds = milliseconds / 1000;
  if (seconds < 60) return absl::StrCat(seconds, " s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, " min");
  const std::int64_t hours = seconds / 3600;
  if (hours < 48) return absl::StrCat(hours, " h");
  return absl::StrCat(hours / 24, " d");
}

std::string ago(WallTime then, WallTime now) {
  const std::string exact = rfc3339(then);
  return absl::StrCat("<time datetime=\"",
                      exact,
                      "\" title=\"",
                      exact,
                      "\">",
                      in_words(std::chrono::duration_cast<Duration>(now - then)),
                      "</time>");
}

std::string badge(absl::string_view kind, absl::string_view text) {
  return absl::StrCat("<span class=\"badge ", kind, "\">", escape(text), "</span>");
}

}  // namespace signalbox::channel
