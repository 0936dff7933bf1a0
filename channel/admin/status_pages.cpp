// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/status_pages.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "channel/admin/html.hpp"
#include "channel/admin/status_json.hpp"

namespace signalbox::channel {
namespace {

constexpr std::size_t kMostProblems = 20;
constexpr std::size_t kChangesOnHome = 5;

// --- words and colours ------------------------------------------------------

std::string state_badge(ConnectivityState state) {
  switch (state) {
    case ConnectivityState::kReady:
      return badge("good", "READY");
    case ConnectivityState::kConnecting:
      return badge("fair", "CONNECTING");
    case ConnectivityState::kTransientFailure:
      return badge("bad", "TRANSIENT_FAILURE");
    case ConnectivityState::kIdle:
      break;
  }
  return badge("quiet", "IDLE");
}

std::string state_badge(const std::optional<EndpointState>& state) {
  if (!state) return badge("quiet", "not connected");
  const absl::string_view word = to_word(state);
  switch (*state) {
    case EndpointState::kReady:
      return badge("good", word);
    case EndpointState::kConnecting:
    case EndpointState::kDraining:
      return badge("fair", word);
    case EndpointState::kTransientFailure:
    case EndpointState::kEjected:
    case EndpointState::kUnhealthy:
      return badge("bad", word);
    case EndpointState::kIdle:
      break;
  }
  return badge("quiet", word);
}

std::string reason(const absl::Status& status) {
  if (status.ok()) return "";
  return absl::StrCat(" <span class=\"reason\">", escape(status.message()), "</span>");
}

std::string locality_text(const LocalityName& name) {
  std::string text;
  for (const std::string* part : {&name.region, &name.zone, &name.sub_zone}) {
    if (!part->empty()) absl::StrAppend(&text, text.empty() ? "" : "/", *part);
  }
  return text.empty() ? "–" : text;
}

// "1 endpoint", "3 endpoints".
std::string count(std::size_t number, absl::string_view noun) {
  return absl::StrCat(number, " ", noun, number == 1 ? "" : "s");
}

// --- sums -------------------------------------------------------------------

struct Sums {
  std::size_t addresses = 0;
  std::size_t ready = 0;
  std::size_t unusable = 0;  ///< Failed, ejected or unhealthy.
  std::int64_t calls = 0;
  const AddressStatus* example = nullptr;  ///< The first unusable address; null: there is none.
};

bool is_unusable(const AddressStatus& address) {
  return address.state == EndpointState::kTransientFailure ||
         address.state == EndpointState::kEjected || address.state == EndpointState::kUnhealthy;
}

void add(Sums& sums, const PriorityStatus& priority) {
  for (const LocalityStatus& locality : priority.localities) {
    for (const EndpointStatus& endpoint : locality.endpoints) {
      for (const AddressStatus& address : endpoint.addresses) {
        ++sums.addresses;
        if (address.state == EndpointState::kReady) ++sums.ready;
        sums.calls += address.calls_in_flight;
        if (!is_unusable(address)) continue;
        ++sums.unusable;
        if (sums.example == nullptr) sums.example = &address;
      }
    }
  }
}

Sums sums_of(const ClusterStatus& cluster) {
  Sums sums;
  for (const PriorityStatus& priority : cluster.priorities)
    add(sums, priority);
  return sums;
}

std::string active_text(const ClusterStatus& cluster) {
  if (cluster.kind == ClusterKind::kFailed) return badge("bad", "failed");
  if (cluster.kind == ClusterKind::kAggregate && cluster.mode == AggregateMode::kTiered)
    return badge("quiet", "tiered");
  if (!cluster.active) {
    const bool has_loads = std::ranges::any_of(
        cluster.priorities, [](const PriorityStatus& one) { return one.load_percent.has_value(); });
    if (has_loads) return badge("quiet", "by load");
    const bool was_tried = std::ranges::any_of(cluster.priorities, &PriorityStatus::started);
    return was_tried ? badge("bad", "none") : badge("quiet", "not needed");
  }
  const bool is_aggregate = cluster.kind == ClusterKind::kAggregate;
  const std::string name =
      is_aggregate ? absl::StrCat(" ", cluster.priorities[*cluster.active].name) : "";
  return badge(*cluster.active == 0 ? "good" : "fair",
               absl::StrCat("priority ", *cluster.active, name));
}

// --- what is wrong ----------------------------------------------------------

class Problems {
 public:
  void add(absl::string_view kind, const std::string& html) {
    if (++number_ <= kMostProblems)
      absl::StrAppend(&list_, "<li><span class=\"", kind, "\">", html, "</span></li>\n");
  }

  std::string html() const {
    if (number_ == 0) return "<p class=\"good\">Nothing: every target can send calls.</p>\n";
    const std::string more = number_ > kMostProblems
                                 ? absl::StrCat("<li>and ", number_ - kMostProblems, " more</li>\n")
                                 : "";
    return absl::StrCat("<ul>\n", list_, more, "</ul>\n");
  }

 private:
  std::size_t number_ = 0;
  std::string list_;
};

void add_cluster(Problems& problems, const TargetStatus& target, const ClusterStatus& cluster) {
  const std::string name =
      absl::StrCat("<strong>", escape(place_of(cluster.name, cluster.aggregate)), "</strong>");
  const std::string of = absl::StrCat(" of ", escape(target.name));
  if (!cluster.failure.ok()) problems.add("bad", absl::StrCat(name, of, reason(cluster.failure)));
  if (cluster.active && *cluster.active > 0) {
    const PriorityStatus& first = cluster.priorities.front();
    problems.add("fair",
                 absl::StrCat(name,
                              of,
                              " is on priority ",
                              *cluster.active,
                              "; priority 0 is ",
                              to_string(first.state),
                              reason(first.reason)));
  }
  const Sums sums = sums_of(cluster);
  if (sums.unusable == 0) return;
  problems.add(sums.ready == 0 ? "bad" : "fair",
               absl::StrCat(name,
                            of,
                            ": ",
                            sums.unusable,
                            " of ",
                            count(sums.addresses, "endpoint"),
                            " cannot be used, such as <code>",
                            escape(sums.example->address.str()),
                            "</code>",
                            reason(sums.example->reason)));
}

std::string problems_of(const RuntimeStatus& status) {
  Problems problems;
  for (const TargetStatus& target : status.targets) {
    if (!target.ready) {
      const bool waits = target.failure.ok() && target.generation == 0;
      problems.add("bad",
                   absl::StrCat("<strong>",
                                escape(target.name),
                                "</strong> cannot send calls: ",
                                waits ? "it has no configuration yet" : to_string(target.state),
                                reason(target.failure)));
    }
    for (const ClusterStatus& cluster : target.clusters)
      add_cluster(problems, target, cluster);
  }
  return problems.html();
}

// --- / ----------------------------------------------------------------------

std::string cluster_row(const ClusterStatus& cluster) {
  const bool is_aggregate = cluster.kind == ClusterKind::kAggregate;
  const Sums sums = sums_of(cluster);
  return absl::StrCat("<tr><th scope=\"row\">",
                      escape(place_of(cluster.name, cluster.aggregate)),
                      "</th><td data-label=\"kind\">",
                      to_word(cluster.kind),
                      "</td><td data-label=\"calls go to\">",
                      active_text(cluster),
                      "</td><td class=\"number\" data-label=\"ready\">",
                      is_aggregate ? "" : absl::StrCat(sums.ready, " of ", sums.addresses),
                      "</td><td class=\"number\" data-label=\"calls in flight\">",
                      is_aggregate ? "" : absl::StrCat(sums.calls),
                      "</td></tr>\n");
}

std::string target_section(const TargetStatus& target, WallTime now) {
  std::string html = absl::StrCat(
      "<h2>", escape(target.name), " ", state_badge(target.state), "</h2>\n<p class=\"quiet\">");
  if (target.since) absl::StrAppend(&html, "For ", ago(*target.since, now), ". ");
  if (target.configured) {
    absl::StrAppend(&html,
                    "Configuration ",
                    target.generation,
                    ", given to the policies ",
                    ago(*target.configured, now),
                    " ago.");
  }
  absl::StrAppend(&html, "</p>\n");
  if (!target.failure.ok())
    absl::StrAppend(&html, "<p class=\"bad\">", escape(target.failure.message()), "</p>\n");
  if (target.clusters.empty()) return html + "<p>No clusters.</p>\n";
  absl::StrAppend(&html,
                  "<table><thead><tr><th>cluster</th><th>kind</th><th>calls go to</th>"
                  "<th class=\"number\">ready</th><th class=\"number\">calls in flight</th>"
                  "</tr></thead>\n<tbody>\n");
  for (const ClusterStatus& cluster : target.clusters)
    html += cluster_row(cluster);
  return html + "</tbody></table>\n";
}

std::string last_changes(const RuntimeStatus& status) {
  if (status.changes.empty()) return "<p>None.</p>\n";
  std::string html = "<ul>\n";
  const std::size_t shown = std::min(kChangesOnHome, status.changes.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const PriorityChange& change = status.changes[status.changes.size() - 1 - i];
    absl::StrAppend(&html,
                    "<li>",
                    ago(change.at, status.made),
                    " ago, ",
                    escape(place_of(change.cluster, change.aggregate)),
                    ": ",
                    change_in_words(change),
                    "</li>\n");
  }
  return html + "</ul>\n<p><a href=\"/priorities\">All changes</a></p>\n";
}

// --- /clusters --------------------------------------------------------------

class ClustersPage {
 public:
  explicit ClustersPage(const RuntimeStatus& status) : now_(status.made) {
    for (const TargetStatus& target : status.targets) {
      absl::StrAppend(&html_, "<h2>", escape(target.name), "</h2>\n");
      if (target.clusters.empty()) html_ += "<p>No clusters.</p>\n";
      for (const ClusterStatus& cluster : target.clusters)
        add(cluster);
    }
    if (status.targets.empty()) html_ += "<p>No target is in use.</p>\n";
    if (left_out_ > 0) {
      absl::StrAppend(&html_,
                      "<p><strong>",
                      left_out_,
                      "</strong> more endpoints are not on this page; <a "
                      "href=\"/clusters?format=json\">JSON</a> has all of them.</p>\n");
    }
  }

  const std::string& html() const { return html_; }

 private:
  void add(const ClusterStatus& cluster) {
    absl::StrAppend(
        &html_,
        "<section",
        cluster.aggregate.empty() ? ">" : " class=\"leaf\">",
        "\n<h3>",
        escape(place_of(cluster.name, cluster.aggregate)),
        " ",
        active_text(cluster),
        "</h3>\n<p class=\"quiet\">",
        to_word(cluster.kind),
        cluster.service_name.empty() ? "" : absl::StrCat(" ", escape(cluster.service_name)),
        cluster.max_requests == 0
            ? ""
            : absl::StrCat(", at most ", cluster.max_requests, " calls at a time"),
        "</p>\n");
    if (!cluster.failure.ok())
      absl::StrAppend(&html_, "<p class=\"bad\">", escape(cluster.failure.message()), "</p>\n");
    if (cluster.kind == ClusterKind::kAggregate) {
      add_leaves(cluster);
    } else {
      for (std::size_t at = 0; at < cluster.priorities.size(); ++at)
        add(cluster.priorities[at], at);
    }
    html_ += "</section>\n";
  }

  void add_leaves(const ClusterStatus& aggregate) {
    html_ += "<ul>\n";
    for (std::size_t at = 0; at < aggregate.leaves.size(); ++at) {
      absl::StrAppend(&html_, "<li>priority ", at, ": ", escape(aggregate.leaves[at].str()), " ");
      if (at < aggregate.priorities.size()) html_ += state_of(aggregate.priorities[at]);
      html_ += "</li>\n";
    }
    html_ += "</ul>\n";
  }

  std::string state_of(const PriorityStatus& priority) const {
    if (!priority.started) return badge("quiet", "not needed");
    std::string html = state_badge(priority.state);
    if (priority.since) absl::StrAppend(&html, " for ", ago(*priority.since, now_));
    if (priority.window_ends) {
      absl::StrAppend(&html,
                      "; the next priority is tried in ",
                      in_words(std::chrono::duration_cast<Duration>(*priority.window_ends - now_)));
    }
    return html + reason(priority.reason);
  }

  void add(const PriorityStatus& priority, std::size_t at) {
    absl::StrAppend(&html_, "<p>priority ", at, " ", state_of(priority));
    if (priority.load_percent)
      absl::StrAppend(&html_, " gets ", *priority.load_percent, " % of the calls");
    html_ += "</p>\n";
    if (priority.localities.empty()) {
      html_ += "<p class=\"quiet\">No endpoints.</p>\n";
      return;
    }
    html_ +=
        "<table><thead><tr><th>address</th><th>state</th><th>for</th><th>locality</th>"
        "<th>EDS health</th><th class=\"number\">weight</th><th class=\"number\">calls</th>"
        "<th class=\"number\">ejections</th></tr></thead>\n<tbody>\n";
    for (const LocalityStatus& locality : priority.localities) {
      for (const EndpointStatus& endpoint : locality.endpoints) {
        for (const AddressStatus& address : endpoint.addresses)
          add(locality, endpoint, address);
      }
    }
    html_ += "</tbody></table>\n";
  }

  void add(const LocalityStatus& locality,
           const EndpointStatus& endpoint,
           const AddressStatus& address) {
    if (shown_ == kMostEndpoints) {
      ++left_out_;
      return;
    }
    ++shown_;
    absl::StrAppend(&html_,
                    "<tr><th scope=\"row\" class=\"mono\">",
                    escape(address.address.str()),
                    endpoint.hostname.empty() ? "" : absl::StrCat(" ", escape(endpoint.hostname)),
                    "</th><td data-label=\"state\">",
                    state_badge(address.state),
                    reason(address.reason),
                    "</td><td class=\"word\" data-label=\"for\">",
                    address.since ? ago(*address.since, now_) : "",
                    "</td><td data-label=\"locality\">",
                    escape(locality_text(locality.name)));
    absl::StrAppend(&html_,
                    "</td><td class=\"word\" data-label=\"EDS health\">",
                    to_string(endpoint.eds_health),
                    "</td><td class=\"number\" data-label=\"weight\">",
                    endpoint.weight,
                    "</td><td class=\"number\" data-label=\"calls\">",
                    address.calls_in_flight,
                    "</td><td class=\"number\" data-label=\"ejections\">",
                    address.ejections,
                    "</td></tr>\n");
  }

  const WallTime now_;
  std::string html_;
  std::size_t shown_ = 0;
  std::size_t left_out_ = 0;
};

std::string priority_text(const std::optional<std::size_t>& place, const std::string& name) {
  if (!place) return "none";
  return escape(absl::StrCat(*place, name.empty() ? "" : absl::StrCat(" (", name, ")")));
}

}  // namespace

std::string place_of(const ClusterName& cluster, const ClusterName& aggregate) {
  return aggregate.empty() ? cluster.str() : absl::StrCat(aggregate.str(), "/", cluster.str());
}

std::string change_in_words(const PriorityChange& change) {
  std::string html = absl::StrCat("priority ",
                                  priority_text(change.from, change.from_name),
                                  " → ",
                                  priority_text(change.to, change.to_name),
                                  ", ",
                                  to_string(change.reason));
  if (change.without > Duration::zero())
    absl::StrAppend(&html, " after ", in_words(change.without), " without one");
  if (!change.details.empty())
    absl::StrAppend(&html, " <span class=\"reason\">", escape(change.details), "</span>");
  return html;
}

std::string home_page(const RuntimeStatus& status) {
  std::string body = absl::StrCat("<p class=\"quiet\">Version ",
                                  escape(status.version),
                                  ", up for ",
                                  ago(status.started, status.made),
                                  ".</p>\n<h2>What is wrong</h2>\n",
                                  problems_of(status));
  for (const TargetStatus& target : status.targets)
    body += target_section(target, status.made);
  if (status.targets.empty()) body += "<h2>Targets</h2>\n<p>No target is in use.</p>\n";
  absl::StrAppend(&body, "<h2>Last changes of priority</h2>\n", last_changes(status));
  return page("Overview", "/", status, body);
}

std::string clusters_page(const RuntimeStatus& status) {
  return page(
      "Clusters",
      "/clusters",
      status,
      absl::StrCat("<p class=\"quiet\"><a href=\"/clusters?format=json\">As JSON</a>, in the "
                   "shape of envoy.admin.v3.Clusters.</p>\n",
                   ClustersPage(status).html()));
}

}  // namespace signalbox::channel
