// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/priorities_page.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "channel/admin/html.hpp"
#include "channel/admin/status_json.hpp"
#include "channel/admin/status_pages.hpp"

namespace signalbox::channel {
namespace {

// The shortest time that the page's time axis covers, unless the runtime is younger. On a shorter
// axis, every segment would look long.
constexpr auto kShortest = std::chrono::seconds(10);

using RowKey = std::tuple<std::string, ClusterName, ClusterName>;  // Target, aggregate, cluster.

WallTime begin_of(const RuntimeStatus& status) {
  if (status.changes.empty()) return std::max(status.started, status.made - kShortest);
  const auto shown = status.made - status.changes.front().at;
  const auto begin = status.changes.front().at - shown / 10;
  return std::max(status.started, std::min<WallTime>(begin, status.made - kShortest));
}

// --- the picture ------------------------------------------------------------

// The segment's CSS class, to which the style sheet gives a colour. All priorities from 3 on have
// the same colour.
std::string colour(const TimelineSegment& segment) {
  if (segment.is_before_first) return "track";
  return segment.priority ? absl::StrCat("p", std::min<std::size_t>(*segment.priority, 3)) : "none";
}

std::string label(const TimelineSegment& segment) {
  if (segment.is_before_first) return "not used yet";
  if (!segment.priority) return "none";
  return absl::StrCat(*segment.priority, segment.name.empty() ? "" : " " + segment.name);
}

class Picture {
 public:
  Picture(WallTime begin, WallTime end)
      : begin_(begin), whole_(std::max<WallTime::duration>(end - begin, WallTime::duration(1))) {}

  std::string row(const Timeline& timeline) const {
    std::string html = absl::StrCat("<div><strong>",
                                    escape(place_of(timeline.cluster, timeline.aggregate)),
                                    "</strong> <span class=\"quiet\">",
                                    escape(timeline.target),
                                    "</span></div>\n<svg height=\"26\" role=\"img\">\n<title>",
                                    escape(spoken(timeline)),
                                    "</title>\n");
    for (const TimelineSegment& segment : timeline.segments) {
      // Each segment is a nested <svg> element, which cuts off a label that does not fit.
      absl::StrAppend(&html,
                      segment.is_before_first ? "<svg x=\"" : "<svg class=\"on\" x=\"",
                      place(segment.begin),
                      "\" width=\"",
                      percent(segment.end - segment.begin),
                      "\" height=\"24\"><title>",
                      escape(label(segment)),
                      ", from ",
                      rfc3339(segment.begin),
                      ", for ",
                      in_words(std::chrono::duration_cast<Duration>(segment.end - segment.begin)),
                      "</title><rect class=\"");
      absl::StrAppend(&html,
                      colour(segment),
                      "\" width=\"100%\" height=\"24\"/><text x=\"6\" y=\"16\">",
                      escape(label(segment)),
                      "</text></svg>\n");
    }
    // Each change has a mark 3 pixels wide, because a short segment may be too narrow to be seen.
    for (std::size_t i = 1; i < timeline.segments.size(); ++i) {
      absl::StrAppend(&html,
                      "<svg x=\"",
                      place(timeline.segments[i].begin),
                      "\" width=\"3\" height=\"26\"><rect class=\"",
                      colour(timeline.segments[i]),
                      "\" width=\"3\" height=\"26\"/></svg>\n");
    }
    return html + "</svg>\n";
  }

  std::string axis() const {
    const auto ago = [&](int percent) {
      return in_words(std::chrono::duration_cast<Duration>(whole_ * (100 - percent) / 100)) +
             " ago";
    };
    return absl::StrCat(
        "<svg height=\"24\" role=\"img\">\n<title>the time axis</title>\n"
        "<line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"1\" y2=\"1\"/>\n"
        "<text class=\"tick\" x=\"0\" y=\"17\">",
        ago(0),
        "</text>\n<text class=\"tick\" x=\"50%\" y=\"17\" text-anchor=\"middle\">",
        ago(50),
        "</text>\n<text class=\"tick\" x=\"100%\" y=\"17\" "
        "text-anchor=\"end\">now</text>\n</svg>\n");
  }

 private:
  static std::string spoken(const Timeline& timeline) {
    std::string text = "calls of " + place_of(timeline.cluster, timeline.aggregate) + " went to: ";
    for (std::size_t i = 0; i < timeline.segments.size(); ++i)
      absl::StrAppend(&text, i == 0 ? "" : ", then ", label(timeline.segments[i]));
    return text;
  }

  std::string percent(WallTime::duration part) const {
    const double share = static_cast<double>(part.count()) / static_cast<double>(whole_.count());
    return absl::StrFormat("%.3f%%", std::clamp(share, 0.0, 1.0) * 100);
  }

  std::string place(WallTime time) const { return percent(time - begin_); }

  const WallTime begin_;
  const WallTime::duration whole_;
};

std::string key() {
  std::string html = "<ul class=\"key\">\n";
  for (const auto& [colour, text] : {std::pair("p0", "priority 0"),
                                     std::pair("p1", "priority 1"),
                                     std::pair("p2", "priority 2"),
                                     std::pair("p3", "priority 3 and more"),
                                     std::pair("none", "no priority"),
                                     std::pair("track", "not used yet")}) {
    absl::StrAppend(&html,
                    "<li><svg><rect class=\"",
                    colour,
                    "\" width=\"100%\" height=\"100%\"/></svg>",
                    text,
                    "</li>\n");
  }
  return html + "</ul>\n";
}

// --- the texts --------------------------------------------------------------

std::string open_windows(const RuntimeStatus& status) {
  std::string html;
  for (const TargetStatus& target : status.targets) {
    for (const ClusterStatus& cluster : target.clusters) {
      for (std::size_t at = 0; at < cluster.priorities.size(); ++at) {
        const auto& ends = cluster.priorities[at].window_ends;
        if (!ends) continue;
        absl::StrAppend(&html,
                        "<li>",
                        escape(place_of(cluster.name, cluster.aggregate)),
                        ": priority ",
                        at,
                        " connects; the next priority is tried in ",
                        in_words(std::chrono::duration_cast<Duration>(*ends - status.made)),
                        "</li>\n");
      }
    }
  }
  return html.empty() ? "<p>None.</p>\n" : absl::StrCat("<ul>\n", html, "</ul>\n");
}

std::string change_row(const PriorityChange& change, WallTime now) {
  std::string html = absl::StrCat("<tr><th scope=\"row\" class=\"number\">",
                                  change.number,
                                  "</th><td data-label=\"at\"><span class=\"whole\">",
                                  rfc3339(change.at),
                                  "</span> (",
                                  ago(change.at, now),
                                  " ago)</td><td data-label=\"cluster\">",
                                  escape(place_of(change.cluster, change.aggregate)),
                                  " <span class=\"quiet\">",
                                  escape(change.target),
                                  "</span></td><td data-label=\"change\">",
                                  change_in_words(change),
                                  "</td><td data-label=\"failover window\">");
  if (change.window_left)
    absl::StrAppend(&html, "open for ", in_words(*change.window_left), " more");
  return html + "</td></tr>\n";
}

std::string change_table(const RuntimeStatus& status) {
  if (status.changes.empty()) return "<p>None.</p>\n";
  std::string html =
      "<table><thead><tr><th class=\"number\">no.</th><th>at</th><th>cluster</th><th>change</th>"
      "<th>failover window</th></tr></thead>\n<tbody>\n";
  for (auto change = status.changes.rbegin(); change != status.changes.rend(); ++change)
    html += change_row(*change, status.made);
  return html + "</tbody></table>\n";
}

}  // namespace

std::vector<Timeline> timelines(const RuntimeStatus& status) {
  const WallTime begin = begin_of(status);
  std::map<RowKey, std::vector<const PriorityChange*>> changes;
  for (const PriorityChange& change : status.changes)
    changes[{change.target, change.aggregate, change.cluster}].push_back(&change);
  std::map<RowKey, const ClusterStatus*> clusters;
  for (const TargetStatus& target : status.targets) {
    for (const ClusterStatus& cluster : target.clusters) {
      const RowKey key{target.name, cluster.aggregate, cluster.name};
      if (!cluster.active && !changes.contains(key)) continue;
      clusters[key] = &cluster;
      changes.try_emplace(key);
    }
  }
  std::vector<Timeline> rows;
  for (const auto& [key, moves] : changes) {
    Timeline& row = rows.emplace_back();
    std::tie(row.target, row.aggregate, row.cluster) = key;
    TimelineSegment open{.begin = begin};
    if (!moves.empty()) {
      open.priority = moves.front()->from;
      open.name = moves.front()->from_name;
      open.is_before_first = moves.front()->reason == PriorityChangeReason::kFirst;
    } else if (const ClusterStatus& cluster = *clusters.at(key);
               *cluster.active < cluster.priorities.size()) {
      open.priority = cluster.active;
      open.name = cluster.priorities[*cluster.active].name;
    }
    for (const PriorityChange* move : moves) {
      open.end = std::max(open.begin, move->at);
      row.segments.push_back(open);
      open = {.begin = open.end, .priority = move->to, .name = move->to_name};
    }
    open.end = std::max(open.begin, status.made);
    row.segments.push_back(open);
  }
  return rows;
}

std::string priorities_page(const RuntimeStatus& status) {
  const auto rows = timelines(status);
  const Picture picture(begin_of(status), status.made);
  std::string body =
      "<p class=\"quiet\">Which priority carried the calls. The last 64 changes of all clusters "
      "are "
      "kept; <a href=\"/status\">JSON</a> has them too.</p>\n";
  if (rows.empty()) {
    body += "<p>No cluster has carried calls.</p>\n";
  } else {
    body += key();
    for (const Timeline& row : rows)
      body += picture.row(row);
    body += picture.axis();
  }
  absl::StrAppend(&body,
                  "<h2>Open failover windows</h2>\n",
                  open_windows(status),
                  "<h2>Changes, newest first</h2>\n",
                  change_table(status));
  return page("Priorities", "/priorities", status, body);
}

}  // namespace signalbox::channel
