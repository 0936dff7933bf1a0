// SPDX-License-Identifier: Apache-2.0
#include "signalbox/plan.hpp"

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "actors/io/watched_file.hpp"
#include "channel/environment_parts.hpp"
#include "channel/plan_world.hpp"
#include "xds/bootstrap.hpp"
#include "xds/resource_file.hpp"
#include "xds/type_url.hpp"

namespace signalbox {
namespace {

absl::StatusOr<xds::Bootstrap> read_bootstrap(const std::string& path) {
  if (path.empty()) return xds::Bootstrap();
  const auto text = actors::read_file(path);
  if (!text.ok()) return text.status();
  return xds::parse_bootstrap(*text, path);
}

xds::ParseOptions parse_options(const PlanRequest& request, const xds::Bootstrap& bootstrap) {
  auto options = xds::parse_options_from([](const char* name) { return std::getenv(name); });
  xds::CustomPolicyParsers custom;
  for (const std::string& name : request.lb_policies)
    custom.emplace(name, nullptr);
  options.custom_lb_policies = std::make_shared<const xds::CustomPolicyParsers>(std::move(custom));
  for (const auto& [name, files] : bootstrap.certificate_providers)
    options.certificate_providers.insert(name);
  return options;
}

}  // namespace

absl::StatusOr<Plan> plan_text(absl::string_view text,
                               const std::string& file_name,
                               const PlanRequest& request) {
  const auto bootstrap = read_bootstrap(request.bootstrap_path);
  if (!bootstrap.ok()) return bootstrap.status();
  const auto resources = xds::parse_resources_text(text, xds::format_of(file_name), file_name);
  if (!resources.ok()) return resources.status();
  const xds::ParseOptions options = parse_options(request, *bootstrap);
  channel::PlanWorld world;
  for (const auto& resource : *resources) {
    const auto type = xds::resource_type_of(resource.type_url);
    // Listeners and routes are parsed only when the request has a target. They may name custom
    // filters, which are unknown here.
    const bool is_of_target = type == ResourceType::kListener || type == ResourceType::kRouteConfig;
    if (is_of_target && request.target.empty()) continue;
    if (auto status = world.add(*type, resource.bytes, options); !status.ok())
      return absl::InvalidArgumentError(absl::StrCat(file_name, ": ", status.message()));
  }
  PlanRequest located = request;
  if (located.caller.zone.empty() && bootstrap->node.locality)
    located.caller = channel::locality_of(bootstrap->node);
  return world.plan(located, *bootstrap);
}

absl::StatusOr<Plan> plan_file(const std::string& path, const PlanRequest& request) {
  const auto text = actors::read_file(path);
  if (!text.ok()) return text.status();
  return plan_text(*text, path, request);
}

}  // namespace signalbox
