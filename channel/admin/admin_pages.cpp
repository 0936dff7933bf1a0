// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/admin_pages.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "channel/admin/admin_address.hpp"
#include "channel/admin/html.hpp"
#include "channel/admin/priorities_page.hpp"
#include "channel/admin/stats_page.hpp"
#include "channel/admin/status_json.hpp"
#include "channel/admin/status_pages.hpp"
#include "xds/dump_json.hpp"

namespace signalbox::channel {
namespace {

constexpr char kHtml[] = "text/html; charset=utf-8";
constexpr char kJson[] = "application/json";
constexpr char kPrometheus[] = "text/plain; version=0.0.4; charset=utf-8";

AdminResponse refuse(int status, absl::string_view why) {
  return {.status = status, .body = absl::StrCat(why, "\n")};
}

// The value of the query parameter `name`, the only parameter that the page accepts; empty: the
// query has no parameter, or the parameter's value is empty. The error says what is wrong with the
// query.
absl::StatusOr<std::string> only_parameter(const AdminRequest& request, absl::string_view name) {
  std::string value;
  bool is_set = false;
  for (const auto& [key, text] : request.query) {
    if (key != name || is_set)
      return absl::InvalidArgumentError(absl::StrCat("'", key, "': expected at most one ", name));
    value = text;
    is_set = true;
  }
  return value;
}

// Whether the page is wanted as JSON.
absl::StatusOr<bool> wants_json(const AdminRequest& request) {
  const auto format = only_parameter(request, "format");
  if (!format.ok()) return format.status();
  if (*format == "json") return true;
  if (format->empty() || *format == "html") return false;
  return absl::InvalidArgumentError(
      absl::StrCat("format: expected html or json, got '", *format, "'"));
}

// --- pages ------------------------------------------------------------------

std::optional<ResourceType> type_named(absl::string_view name) {
  constexpr std::array kTypes{ResourceType::kListener,
                              ResourceType::kRouteConfig,
                              ResourceType::kCluster,
                              ResourceType::kEndpoints};
  for (const ResourceType type : kTypes) {
    if (absl::EqualsIgnoreCase(name, to_string(type))) return type;
  }
  return std::nullopt;
}

AdminResponse config_dump(const AdminRequest& request, const AdminSources& sources) {
  std::optional<ResourceType> type;
  std::optional<std::string> name;
  for (const auto& [key, value] : request.query) {
    if (key == "type" && !type) {
      type = type_named(value);
      if (!type) {
        return refuse(400, absl::StrCat("type: expected LDS, RDS, CDS or EDS, got '", value, "'"));
      }
    } else if (key == "name" && !name) {
      name = value;
    } else {
      return refuse(400, absl::StrCat("'", key, "': expected one type and one name"));
    }
  }
  auto dump = sources.dump();
  if (!dump.ok()) return refuse(503, dump.status().message());
  std::erase_if(dump->resources, [&](const ResourceState& state) {
    return (type && state.key.type != *type) || (name && state.key.name != *name);
  });
  return {.content_type = kJson, .body = xds::to_json_text(*dump)};
}

AdminResponse explain(const AdminRequest& request, const AdminSources& sources) {
  const auto question = parse_explain_query(request.query);
  if (!question.ok()) return refuse(400, question.status().message());
  auto answer = sources.explain(*question);
  if (!answer.ok())
    return refuse(absl::IsInvalidArgument(answer.status()) ? 400 : 503, answer.status().message());
  return {.content_type = kJson, .body = *std::move(answer)};
}

AdminResponse home(const AdminRequest& /*request*/, const AdminSources& sources) {
  return {.content_type = kHtml, .body = home_page(sources.status())};
}

AdminResponse clusters(const AdminRequest& request, const AdminSources& sources) {
  const auto json = wants_json(request);
  if (!json.ok()) return refuse(400, json.status().message());
  if (*json) return {.content_type = kJson, .body = clusters_json(sources.status())};
  return {.content_type = kHtml, .body = clusters_page(sources.status())};
}

AdminResponse priorities(const AdminRequest& /*request*/, const AdminSources& sources) {
  return {.content_type = kHtml, .body = priorities_page(sources.status())};
}

AdminResponse certs(const AdminRequest& request, const AdminSources& sources) {
  const auto json = wants_json(request);
  if (!json.ok()) return refuse(400, json.status().message());
  const RuntimeStatus status = sources.status();
  const auto uses = sources.certificates();
  if (*json) return {.content_type = kJson, .body = certs_json(uses, status.made)};
  return {.content_type = kHtml, .body = certs_page(uses, status)};
}

AdminResponse ready(const AdminRequest& request, const AdminSources& sources) {
  const auto target = only_parameter(request, "target");
  if (!target.ok()) return refuse(400, target.status().message());
  const auto is_ready = sources.ready(*target);
  if (!is_ready)
    return refuse(404, absl::StrCat("target: '", *target, "' is not in use here; see /status"));
  if (*is_ready) return {.body = "LIVE\n"};
  return refuse(503,
                target->empty() ? "not ready: a target cannot send calls; see /status"
                                : "not ready: the target cannot send calls; see /status");
}

AdminResponse status(const AdminRequest& /*request*/, const AdminSources& sources) {
  return {.content_type = kJson, .body = status_json(sources.status())};
}

AdminResponse server_info(const AdminRequest& /*request*/, const AdminSources& sources) {
  return {.content_type = kJson, .body = server_info_json(sources.status())};
}

AdminResponse stats(const AdminRequest& request, const AdminSources& sources) {
  const auto filter = only_parameter(request, "filter");
  if (!filter.ok()) return refuse(400, filter.status().message());
  auto text = stats_text(sources.metrics(), *filter);
  if (!text.ok()) return refuse(400, text.status().message());
  return {.body = *std::move(text)};
}

AdminResponse metrics(const AdminRequest& /*request*/, const AdminSources& sources) {
  return {.content_type = kPrometheus, .body = sources.metrics()};
}

AdminResponse style(const AdminRequest& /*request*/, const AdminSources& /*sources*/) {
  return {.content_type = "text/css; charset=utf-8", .body = std::string(style_sheet())};
}

AdminResponse help(const AdminRequest& request, const AdminSources& sources);

// --- the table --------------------------------------------------------------

struct Page {
  const char* path;
  const char* help;  ///< The page's text in /help; empty: /help does not list the page.
  bool takes_query;
  AdminResponse (*show)(const AdminRequest&, const AdminSources&);
};

constexpr Page kPages[] = {
    {"/", "what is wrong, every target and cluster (HTML)", false, home},
    {"/clusters", "every endpoint (HTML); ?format=json", true, clusters},
    {"/priorities", "which priority carried calls, and when (HTML)", false, priorities},
    {"/certs", "certificate files (HTML); ?format=json", true, certs},
    {"/ready", "200 LIVE when calls can be sent, else 503; ?target=TARGET", true, ready},
    {"/status", "the whole status (JSON)", false, status},
    {"/server_info", "version, state and uptime (JSON)", false, server_info},
    {"/config_dump",
     "the resources of the xDS client (JSON); ?type=LDS|RDS|CDS|EDS, ?name=NAME",
     true,
     config_dump},
    {"/explain",
     "where a call would go, and why (JSON); ?target=TARGET&method=/SERVICE/METHOD, and "
     "header=NAME:VALUE, cookie=NAME=VALUE, seed=NUMBER",
     true,
     explain},
    {"/stats", "the metrics, a line each; ?filter=REGEX", true, stats},
    {"/stats/prometheus", "the metrics, as Prometheus reads them", false, metrics},
    {"/metrics", "the same", false, metrics},
    {"/help", "this list", false, help},
    {"/style.css", "", false, style},
};

std::string index() {
  std::string text;
  for (const Page& page : kPages) {
    if (*page.help == '\0') continue;
    std::string path = page.path;
    path.resize(std::max<std::size_t>(path.size(), 18), ' ');
    absl::StrAppend(&text, path, " ", page.help, "\n");
  }
  return text;
}

AdminResponse help(const AdminRequest& /*request*/, const AdminSources& /*sources*/) {
  return {.body = index()};
}

}  // namespace

bool is_foreign(bool has_origin, absl::string_view fetch_site) {
  return has_origin || (!fetch_site.empty() && fetch_site != "none" && fetch_site != "same-origin");
}

AdminResponse answer(const AdminRequest& request, const AdminSources& sources) {
  if (request.is_foreign)
    return refuse(
        403,
        "not for web pages of other sites: the request has an Origin or a foreign Sec-Fetch-Site");
  if (request.over_network && !is_loopback_host(request.host)) {
    return refuse(403, absl::StrCat("Host: expected a loopback address, got '", request.host, "'"));
  }
  if (request.method != "GET") {
    return refuse(405, absl::StrCat("read-only: expected GET, got ", request.method));
  }
  const auto* const page =
      std::ranges::find_if(kPages, [&](const Page& one) { return request.path == one.path; });
  if (page == std::end(kPages))
    return refuse(404, absl::StrCat("there is no '", request.path, "'; there are:\n", index()));
  if (!page->takes_query && !request.query.empty()) return refuse(400, "this page takes no query");
  return page->show(request, sources);
}

}  // namespace signalbox::channel
