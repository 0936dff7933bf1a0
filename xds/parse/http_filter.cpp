// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/http_filter.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

#include "signalbox/envoy/config/route/v3/route_components.pb.h"
#include "signalbox/envoy/extensions/filters/http/router/v3/router.pb.h"
#include "xds/parse/extension.hpp"
#include "xds/parse/fault.hpp"
#include "xds/parse/stateful_session.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::config::route::v3::FilterConfig;
using envoy::extensions::filters::http::router::v3::Router;
using FilterProto = envoy::extensions::filters::network::http_connection_manager::v3::HttpFilter;

std::optional<HttpFilterConfig> parse_router(const Extension& extension, const Field& field) {
  Router proto;
  if (!decode(extension, proto, field)) return std::nullopt;
  return RouterFilter{};
}

// The registry (A39): a row for each built-in filter.
struct KnownFilter {
  using Parse = std::optional<HttpFilterConfig> (*)(const Extension& extension, const Field& field);

  absl::string_view type;
  absl::string_view name;  ///< The name in ParseOptions::http_filters.
  bool terminal;
  Parse parse;
  absl::string_view override_type;  ///< Empty: the filter has no overrides.
  Parse parse_override;
};

constexpr KnownFilter kKnownFilters[] = {
    {"envoy.extensions.filters.http.router.v3.Router", "router", true, parse_router, "", nullptr},
    {"envoy.extensions.filters.http.stateful_session.v3.StatefulSession",
     "stateful_session",
     false,
     parse_stateful_session,
     "envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute",
     parse_stateful_session_override},
    {"envoy.extensions.filters.http.fault.v3.HTTPFault",
     "fault",
     false,
     parse_fault,
     "envoy.extensions.filters.http.fault.v3.HTTPFault",
     parse_fault},
};

// Overrides of filters that gRPC has for servers alone (A41). A route configuration may be for
// clients and servers, so these overrides are no error, and a client ignores them (A39).
constexpr absl::string_view kOverridesForServers[] = {
    "envoy.extensions.filters.http.rbac.v3.RBACPerRoute",
};

bool is_for_servers(absl::string_view override_type) {
  return absl::c_linear_search(kOverridesForServers, override_type);
}

bool runtime_has(const KnownFilter& known, const ParseOptions& options) {
  // A55-41: without ParseOptions::session_affinity the filter counts as unknown.
  if (known.name == "stateful_session" && !options.session_affinity) return false;
  return options.http_filters.contains(known.name);
}

const KnownFilter* find_filter(absl::string_view type,
                               absl::string_view KnownFilter::* type_of,
                               const ParseOptions& options) {
  for (const KnownFilter& known : kKnownFilters) {
    if (known.*type_of == type && runtime_has(known, options)) return &known;
  }
  return nullptr;
}

// Returns the user's filter with this type of configuration, or with this type of override; null:
// there is none.
const CustomFilters::value_type* find_custom(absl::string_view type,
                                             bool as_override,
                                             const ParseOptions& options) {
  if (options.custom_http_filters == nullptr) return nullptr;
  for (const auto& known : *options.custom_http_filters) {
    const auto& [name, parsers] = known;
    if ((as_override ? parsers.override_type : name) == type) return &known;
  }
  return nullptr;
}

std::optional<HttpFilterConfig> parse_custom(const std::string& type,
                                             const CustomFilterParser& parse,
                                             const Extension& extension,
                                             const Field& field) {
  CustomFilter custom;
  custom.type = type;
  custom.raw.is_json = extension.structure.has_value();
  custom.raw.text =
      custom.raw.is_json ? json_text(*extension.structure) : std::string(extension.bytes);
  if (parse) {
    auto filter = parse(custom.raw);
    if (!filter.ok()) {
      add_refused(extension, filter.status(), field);
      return std::nullopt;
    }
    custom.filter = *std::move(filter);
  }
  return custom;
}

// Adds the error that no filter has this type. `remedy`: the advice at the end of the error text.
void add_unknown(absl::string_view type, absl::string_view remedy, const Field& field) {
  field.add(absl::StrCat("must be a known filter or is_optional, found ", in_quotes(type), remedy));
}

// Returns the filter of one entry of the chain; nullopt if the entry is left out or invalid.
std::optional<HttpFilter> parse_filter(const FilterProto& proto, const Field& field) {
  const Field config = field.at("typed_config");
  if (!proto.has_typed_config()) {
    if (!proto.is_optional()) {
      config.add(proto.has_config_discovery() ? "must be set, found config_discovery"
                                              : "must be set, found none");
    }
    return std::nullopt;
  }
  const auto extension = read_extension(proto.typed_config(), config);
  if (!extension.has_value()) return std::nullopt;
  const Field value = config.at("value");
  std::optional<HttpFilterConfig> parsed;
  if (const KnownFilter* known =
          find_filter(extension->type, &KnownFilter::type, field.options())) {
    parsed = known->parse(*extension, value);
  } else if (const auto* custom = find_custom(extension->type, false, field.options())) {
    parsed = parse_custom(custom->first, custom->second.parse, *extension, value);
  } else if (!proto.is_optional()) {
    const std::string remedy = absl::StrCat(
        ": take filter ", in_quotes(proto.name()), " out of http_filters, or set its is_optional");
    add_unknown(extension->type, remedy, config);
  }
  if (!parsed.has_value()) return std::nullopt;
  return HttpFilter{proto.name(), extension->type, *std::move(parsed), proto.disabled()};
}

// The last filter, and no other, must be terminal.
void require_terminal_last(const std::vector<HttpFilter>& filters, const Field& field) {
  for (const HttpFilter& filter : filters) {
    const bool last = &filter == &filters.back();
    const KnownFilter* known = find_filter(filter.type, &KnownFilter::type, field.options());
    const bool terminal = known != nullptr && known->terminal;
    if (terminal && !last) {
      field.add(absl::StrCat("terminal filter ", in_quotes(filter.name), " must be the last"));
    }
    if (last && !terminal) {
      field.add(absl::StrCat("the last filter must be terminal, found ",
                             in_quotes(filter.name),
                             " of type ",
                             filter.type));
    }
  }
}

// The configuration of an override, without the FilterConfig messages around it.
struct UnwrappedFilter {
  ::google::protobuf::Any config;
  bool has_config = true;
  bool is_optional = false;
  bool disabled = false;
};

// Removes the FilterConfig messages around an override; nullopt: an error was added.
std::optional<UnwrappedFilter> unwrap(const ::google::protobuf::Any& any, const Field& field) {
  const std::size_t most = field.options().limits.max_any_nesting;
  UnwrappedFilter unwrapped;
  unwrapped.config = any;
  for (std::size_t depth = 0; unwrapped.config.type_url() == type_url_of<FilterConfig>(); ++depth) {
    if (depth == most) {
      field.add_over_limit("max_any_nesting",
                           absl::StrCat("must not nest more than ", most, " FilterConfigs"));
      return std::nullopt;
    }
    FilterConfig wrapper;
    if (!decode(unwrapped.config.value(), wrapper, field.at("value"))) return std::nullopt;
    unwrapped.is_optional = unwrapped.is_optional || wrapper.is_optional();
    unwrapped.disabled = unwrapped.disabled || wrapper.disabled();
    unwrapped.has_config = wrapper.has_config();
    unwrapped.config = std::move(*wrapper.mutable_config());
  }
  return unwrapped;
}

void add_override(const std::string& name,
                  const ::google::protobuf::Any& any,
                  FilterOverrides& overrides,
                  const Field& field) {
  const auto unwrapped = unwrap(any, field);
  if (!unwrapped.has_value()) return;
  // An override that is nullopt disables the filter, which then needs no configuration.
  if (unwrapped->disabled) overrides.emplace(name, std::nullopt);
  if (!unwrapped->has_config) {
    if (!unwrapped->disabled) field.at("config").add("must be set, found none");
    return;
  }
  const auto extension = read_extension(unwrapped->config, field);
  if (!extension.has_value()) return;
  const ParseOptions& options = field.options();
  if (const KnownFilter* known =
          find_filter(extension->type, &KnownFilter::override_type, options)) {
    auto config = known->parse_override(*extension, field.at("value"));
    if (config.has_value()) overrides.emplace(name, *std::move(config));
  } else if (const auto* custom = find_custom(extension->type, true, options)) {
    auto config =
        parse_custom(custom->first, custom->second.parse_override, *extension, field.at("value"));
    if (config.has_value()) overrides.emplace(name, *std::move(config));
  } else if (find_filter(extension->type, &KnownFilter::type, options) != nullptr ||
             find_custom(extension->type, false, options) != nullptr) {
    field.add(absl::StrCat("must be what overrides a filter, found ", extension->type));
  } else if (!unwrapped->is_optional && !is_for_servers(extension->type)) {
    const std::string remedy = absl::StrCat(
        ": take ",
        in_quotes(name),
        " out of typed_per_filter_config, or wrap it in a FilterConfig with is_optional");
    add_unknown(extension->type, remedy, field);
  }
}

}  // namespace

std::vector<HttpFilter> parse_http_filters(
    const ::google::protobuf::RepeatedPtrField<FilterProto>& protos, const Field& parent) {
  std::vector<HttpFilter> filters;
  std::set<absl::string_view> names;
  const std::size_t errors_before = parent.errors_so_far();
  for (int i = 0; i < protos.size(); ++i) {
    const FilterProto& proto = protos[i];
    const Field field = parent.at("http_filters", static_cast<std::size_t>(i));
    const Field name = field.at("name");
    require_name(proto.name(), name);
    if (!names.insert(proto.name()).second) {
      name.add(absl::StrCat("must be unique, found ", in_quotes(proto.name()), " again"));
    }
    if (auto filter = parse_filter(proto, field)) filters.push_back(*std::move(filter));
  }
  const Field all = parent.at("http_filters");
  if (filters.empty() && parent.errors_so_far() == errors_before) {
    all.add(absl::StrCat("must have at least one known filter, found ", protos.size(), " entries"));
  }
  require_terminal_last(filters, all);
  return filters;
}

FilterOverrides parse_filter_overrides(
    const ::google::protobuf::Map<std::string, ::google::protobuf::Any>& overrides,
    const Field& parent) {
  FilterOverrides parsed;
  // protobuf's map order may differ between two parses of equal bytes. Sorting keeps errors equal.
  std::map<absl::string_view, const ::google::protobuf::Any*> in_order;
  for (const auto& [name, config] : overrides)
    in_order.emplace(name, &config);
  for (const auto& [key, config] : in_order) {
    const std::string name(key);
    const Field field = parent.at_key("typed_per_filter_config", name);
    if (name.empty()) field.add("the key must name a filter, found \"\"");
    require_name_length(name, field);
    add_override(name, *config, parsed, field);
  }
  return parsed;
}

}  // namespace signalbox::xds
