// SPDX-License-Identifier: Apache-2.0
#include "tools/plan_html.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "tools/html_page.hpp"

namespace signalbox::tools {
namespace {

constexpr std::size_t kEndpointsOnPage = 200;

// Parts of 5 % or more also show their percentages, because colours alone do not tell the shares.
constexpr absl::string_view kStyle = R"(
.answer { display: grid; grid-template-columns: 11rem 1fr; align-items: center; gap: .75rem;
  margin: .3rem 0; }
.answer.gap { margin-top: .9rem; }
.stack { display: flex; height: 2rem; border-radius: 4px; overflow: hidden;
  background: var(--track); }
.stack span { display: flex; align-items: center; justify-content: center; min-width: 1px;
  overflow: hidden; white-space: nowrap; font-size: .85rem; }
.stack span + span { border-left: 1px solid var(--page); }
.stack .zone { box-shadow: inset 0 0 0 100px rgba(255, 255, 255, .12); }
.now { background: var(--now); }
.failing { color: #fff;
  background: repeating-linear-gradient(45deg, #b3261e, #b3261e 7px, #8c1d18 7px, #8c1d18 14px); }
tr.d0 th { font-weight: 650; } tr.d0 > * { border-top: 1px solid var(--line); }
tr.d1 th { padding-left: 1.8rem; } tr.d2 th { padding-left: 3.2rem; }
tr.d3 th { padding-left: 4.6rem; font-family: ui-monospace, monospace; font-size: .85rem; }
td.bar { min-width: 9rem; width: 18%; }
.bar div { height: .5rem; border-radius: 2px; }
.bar div.now { height: .25rem; margin-bottom: 1px; }
tr.d3 td, tr.d3 th { padding-top: 0; padding-bottom: 0; }
@media (max-width: 40rem) { .answer { grid-template-columns: 1fr; gap: .1rem; }
  .stack em { display: none; } }
.stack em { font-style: normal; white-space: pre; }
)";

std::string css_percent(CallShare share) {
  return absl::StrFormat("%.4f%%", static_cast<double>(share) * 100 / kAllCalls);
}

// --- the bars: one for each mode and each of now and then -----------------------

// The label in a part of a bar. On narrow screens, a part of less than 40 % has no room for it, so
// the style hides <em> there.
std::string label_of(absl::string_view label, CallShare share) {
  if (label.empty()) return "";
  const std::string text = escape_html(label);
  return share * 5 < kAllCalls * 2 ? absl::StrCat("<em>", text, "</em>") : text;
}

// One part of a bar. It shows its percentage from 5 % on, and `label` before that from 20 % on.
std::string part_of_stack(absl::string_view classes,
                          const std::string& name,
                          CallShare share,
                          absl::string_view label = "") {
  if (share == 0) return "";
  const std::string text = absl::StrCat(percent_text(share), " %");
  return absl::StrCat("<span class=\"",
                      classes,
                      "\" style=\"width:",
                      css_percent(share),
                      "\" title=\"",
                      escape_html(absl::StrCat(name, ": ", text)),
                      "\">",
                      share >= kAllCalls / 5 ? label_of(label, share) : "",
                      share >= kAllCalls / 20 ? text : "",
                      "</span>");
}

std::string colour(std::size_t leaf) {
  return absl::StrCat("c", leaf % kPageColours);
}

// True if the locality has endpoints, and all are assumed to be down.
bool is_dead(const PlannedLocality& locality) {
  return !locality.endpoints.empty() &&
         std::ranges::all_of(locality.endpoints,
                             [](const PlannedEndpoint& endpoint) { return endpoint.down; });
}

bool a_zone_dies(const Plan& plan) {
  for (const PlannedLeaf& leaf : plan.leaves) {
    for (const PlannedPriority& priority : leaf.priorities) {
      if (std::ranges::any_of(priority.localities, is_dead)) return true;
    }
  }
  return false;
}

// The leaf's part of a bar, divided by locality, so that readers see which calls a dead locality
// loses. A locality that has calls has one segment over all priorities. The segments of every
// second locality are lighter.
std::string zones_of_stack(const PlannedLeaf& leaf, std::size_t index, lb::PlanAnswer answer) {
  std::vector<std::pair<std::string, CallShare>> zones;
  for (const PlannedPriority& priority : leaf.priorities) {
    for (const PlannedLocality& locality : priority.localities) {
      const std::string name = locality_text(locality.name);
      auto zone = std::ranges::find(zones, name, [](const auto& known) { return known.first; });
      if (zone == zones.end()) zone = zones.insert(zone, {name, 0});
      zone->second += lb::share_in(locality.shares, answer);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    text += part_of_stack(absl::StrCat(colour(index), i % 2 == 1 ? " zone" : ""),
                          absl::StrCat(leaf.name.str(), ", ", zones[i].first),
                          zones[i].second,
                          absl::StrCat(zones[i].first, " "));
  }
  return text;
}

std::string answer_bar(const Plan& plan,
                       lb::PlanAnswer answer,
                       const std::string& label,
                       bool is_apart) {
  std::string parts;
  const bool by_zone = a_zone_dies(plan);
  for (std::size_t i = 0; i < plan.leaves.size(); ++i) {
    const PlannedLeaf& leaf = plan.leaves[i];
    parts += by_zone ? zones_of_stack(leaf, i, answer)
                     : part_of_stack(colour(i), leaf.name.str(), lb::share_in(leaf.shares, answer));
  }
  parts += part_of_stack("failing", "calls fail", lb::share_in(plan.failing, answer));
  return absl::StrCat("<div class=\"answer",
                      is_apart ? " gap" : "",
                      "\"><div>",
                      label,
                      "</div><div class=\"stack\">",
                      parts,
                      "</div></div>\n");
}

std::string answer_bars(const Plan& plan, const PlanView& view) {
  std::string text;
  for (const AggregateMode mode : view.modes) {
    const std::string name =
        absl::StrCat(mode_name(mode), mode == plan.mode ? " (as it runs)" : "");
    text += answer_bar(
        plan,
        {mode, false},
        absl::StrCat(name, view.has_then() ? "<br><span class=\"quiet\">now</span>" : ""),
        !text.empty());
    if (view.has_then())
      text += answer_bar(plan, {mode, true}, "<span class=\"quiet\">then</span>", false);
  }
  text += "<ul class=\"key\">";
  for (std::size_t i = 0; i < plan.leaves.size(); ++i) {
    absl::StrAppend(&text,
                    "<li><i class=\"",
                    colour(i),
                    "\"></i>",
                    escape_html(plan.leaves[i].name.str()),
                    "</li>");
  }
  if (plan.failing != PlannedShares{}) text += "<li><i class=\"failing\"></i>calls fail</li>";
  if (view.has_then()) text += "<li><i class=\"now\"></i>in the table: the share now</li>";
  return text + "</ul>\n";
}

// --- the tree --------------------------------------------------------------

std::string number_cell(CallShare share) {
  return absl::StrCat("<td class=\"number\">", escape_html(percent_text(share)), "</td>");
}

std::string bar_of(absl::string_view classes, CallShare share) {
  return share == 0
             ? ""
             : absl::StrCat(
                   "<div class=\"", classes, "\" style=\"width:", css_percent(share), "\"></div>");
}

// The bar of `then` has the colour of the row's cluster, or that of failing calls. The bar of `now`
// is grey.
std::string cells(const PlanRow& row, const PlanView& view) {
  const PlannedShares& shares = row.shares;
  const std::string then_class = row.leaf.has_value() ? colour(*row.leaf) : "failing";
  std::string text;
  for (const AggregateMode mode : view.modes) {
    const CallShare now = lb::share_in(shares, {mode, false});
    const CallShare then = lb::share_in(shares, {mode, true});
    text += number_cell(now);
    if (view.has_then()) text += number_cell(then);
    absl::StrAppend(&text,
                    "<td class=\"bar\">",
                    view.has_then() ? bar_of("now", now) : "",
                    bar_of(then_class, then),
                    "</td>");
  }
  return text;
}

std::string tree(const Plan& plan, const PlanView& view) {
  const int columns = view.has_then() ? 3 : 2;
  const std::string number = "<th class=\"number\">";
  std::string modes = "<tr><th></th>";
  std::string times = "<tr><th></th>";
  for (const AggregateMode mode : view.modes) {
    absl::StrAppend(&modes, "<th colspan=\"", columns, "\">", mode_name(mode), "</th>");
    times += view.has_then() ? number + "now</th>" + number + "then</th><th></th>"
                             : number + "now</th><th></th>";
  }
  std::string text = absl::StrCat(
      "<table><thead>", modes, "<th></th></tr>\n", times, "<th></th></tr></thead>\n<tbody>\n");
  for (const PlanRow& row : plan_rows(plan, kEndpointsOnPage)) {
    absl::StrAppend(
        &text, "<tr class=\"d", row.depth, "\"><th scope=\"row\">", escape_html(row.name), "</th>");
    const auto empty = absl::StrCat("<td colspan=\"", columns * view.modes.size(), "\"></td>");
    absl::StrAppend(&text,
                    row.has_shares ? cells(row, view) : empty,
                    "<td class=\"quiet\">",
                    escape_html(row.detail),
                    "</td></tr>\n");
  }
  return html_scroll(text + "</tbody></table>");
}

std::string sentences(const Plan& plan, const PlanView& view) {
  std::string text = "<ul>";
  const auto add = [&](const std::string& line) {
    absl::StrAppend(&text, "<li>", escape_html(line), "</li>");
  };
  for (const std::string& line : plan_summary(plan, view))
    add(line);
  for (const PlannedLeaf& leaf : plan.leaves) {
    if (!leaf.note.empty()) add(absl::StrCat(leaf.name.str(), ": ", leaf.note, "."));
  }
  for (const std::string& note : plan.notes)
    add(absl::StrCat("Note: ", note, "."));
  return text + "</ul>\n";
}

}  // namespace

std::string plan_html(const Plan& plan, const PlanView& view) {
  const std::string name = escape_html(plan.cluster.str());
  const std::string assumed =
      view.has_then() ? absl::StrCat("Now, and then: if ", assumption_text(view.assumptions), ".")
                      : "As the resources have it; nothing is assumed.";
  return absl::StrCat(
      html_head(absl::StrCat(name, ": where its calls go"), kStyle),
      "<body>\n<h1>Where the calls to ",
      name,
      " go</h1>\n<p>",
      escape_html(assumed),
      "</p>\n",
      answer_bars(plan, view),
      sentences(plan, view),
      "<h2>By cluster, priority, locality and endpoint, in percent of all calls</h2>\n",
      tree(plan, view),
      "<p class=\"quiet\">Made by signalbox plan.</p>\n</body></html>\n");
}

}  // namespace signalbox::tools
