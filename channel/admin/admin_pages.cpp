// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/admin_pages.hpp"

#include <array>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "channel/admin/admin_address.hpp"
#include "xds/dump_json.hpp"

namespace signalbox::channel {
namespace {

constexpr const char* kIndex =
    "/config_dump  the resources of the xDS client; ?type=LDS|RDS|CDS|EDS, ?name=NAME\n"
    "/explain      where a call would go, and why; ?target=TARGET&method=/SERVICE/METHOD, and "
    "header=NAME:VALUE, cookie=NAME=VALUE, seed=NUMBER\n"
    "/metrics      the metrics, as Prometheus reads them\n";

AdminResponse refuse(int status, absl::string_view why) {
  return {.status = status, .body = absl::StrCat(why, "\n")};
}

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
  return {.content_type = "application/json", .body = xds::to_json_text(*dump)};
}

AdminResponse explain(const AdminRequest& request, const AdminSources& sources) {
  const auto question = parse_explain_query(request.query);
  if (!question.ok()) return refuse(400, question.status().message());
  auto answer = sources.explain(*question);
  if (!answer.ok())
    return refuse(absl::IsInvalidArgument(answer.status()) ? 400 : 503, answer.status().message());
  return {.content_type = "application/json", .body = *std::move(answer)};
}

}  // namespace

AdminResponse answer(const AdminRequest& request, const AdminSources& sources) {
  if (request.has_origin) return refuse(403, "not for web pages: the request has an Origin");
  if (request.over_network && !is_loopback_host(request.host)) {
    return refuse(403, absl::StrCat("Host: expected a loopback address, got '", request.host, "'"));
  }
  if (request.method != "GET") {
    return refuse(405, absl::StrCat("read-only: expected GET, got ", request.method));
  }
  if (request.path == "/config_dump") return config_dump(request, sources);
  if (request.path == "/explain") return explain(request, sources);
  if (!request.query.empty()) return refuse(400, "this page takes no query");
  if (request.path == "/") return {.body = kIndex};
  if (request.path == "/metrics") {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = sources.metrics()};
  }
  return refuse(404, absl::StrCat("there is no '", request.path, "'; there are:\n", kIndex));
}

}  // namespace signalbox::channel
