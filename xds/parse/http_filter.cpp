// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/http_filter.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"

#include "signalbox/envoy/config/route/v3/route_components.pb.h"
#include "signalbox/envoy/extensions/filters/http/router/v3/router.pb.h"
#include "xds/limits.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::config::route::v3::FilterConfig;
using envoy::extensions::filters::http::router::v3::Router;
using FilterProto = envoy::extensions::filters::network::http_connection_manager::v3::HttpFilter;

template <typename Message>
bool is_valid(absl::string_view bytes, const Field& field) {
  Message message;
  return decode(bytes, message, field);
}

// The registry (A39): a row for each filter that we have.
struct KnownFilter {
  absl::string_view type;
  bool terminal;
  bool has_overrides;
  /// Whether bytes are a configuration of this filter; adds an error where not.
  bool (*is_valid)(absl::string_view bytes, const Field& field);
};

constexpr KnownFilter kKnownFilters[] = {
    {"envoy.extensions.filters.http.router.v3.Router", true, false, is_valid<Router>},
};

const KnownFilter* find_filter(absl::string_view type) {
  const auto* found = std::find_if(std::begin(kKnownFilters),
                                   std::end(kKnownFilters),
                                   [&](const KnownFilter& known) { return known.type == type; });
  return found == std::end(kKnownFilters) ? nullptr : found;
}

// The filter that one entry configures; nullopt where it is left out or wrong.
std::optional<HttpFilter> parse_filter(const FilterProto& proto, const Field& field) {
  const Field config = field.at("typed_config");
  if (!proto.has_typed_config()) {
    if (!proto.is_optional()) {
      config.add(proto.has_config_discovery() ? "must be set, found config_discovery"
                                              : "must be set, found none");
    }
    return std::nullopt;
  }
  const std::optional<std::string> type = config_type(proto.typed_config(), config);
  if (!type.has_value()) return std::nullopt;
  const KnownFilter* known = find_filter(*type);
  if (known == nullptr) {
    if (!proto.is_optional()) {
      config.add(absl::StrCat("must be a known filter or is_optional, found ", quoted(*type)));
    }
    return std::nullopt;
  }
  const bool plain = api_name(proto.typed_config().type_url()) == *type;
  if (plain && !known->is_valid(proto.typed_config().value(), config.at("value"))) {
    return std::nullopt;
  }
  return HttpFilter{proto.name(), *type};
}

// The last filter answers the call; no other does.
void require_terminal_last(const std::vector<HttpFilter>& filters, const Field& field) {
  for (const HttpFilter& filter : filters) {
    const bool last = &filter == &filters.back();
    const bool terminal = find_filter(filter.type)->terminal;
    if (terminal && !last) {
      field.add(absl::StrCat("terminal filter ", quoted(filter.name), " must be the last"));
    }
    if (last && !terminal) {
      field.add(absl::StrCat("the last filter must be terminal, found ",
                             quoted(filter.name),
                             " of type ",
                             filter.type));
    }
  }
}

// What a FilterConfig wraps, taken out of it; nullopt where an error was added, or where the
// wrapper only disables the filter.
std::optional<::google::protobuf::Any> unwrap(::google::protobuf::Any config,
                                              const Field& field,
                                              bool& is_optional) {
  for (std::size_t depth = 0; config.type_url() == type_url_of<FilterConfig>(); ++depth) {
    FilterConfig wrapper;
    if (depth == kMaxAnyNesting) {
      field.add(absl::StrCat("must not nest more than ", kMaxAnyNesting, " FilterConfigs"));
      return std::nullopt;
    }
    if (!decode(config.value(), wrapper, field.at("value"))) return std::nullopt;
    is_optional = is_optional || wrapper.is_optional();
    if (!wrapper.has_config()) {
      if (!wrapper.disabled()) field.at("config").add("must be set, found none");
      return std::nullopt;
    }
    config = wrapper.config();
  }
  return config;
}

void validate_override(const ::google::protobuf::Any& any, const Field& field) {
  bool is_optional = false;
  const auto config = unwrap(any, field, is_optional);
  if (!config.has_value()) return;
  const std::optional<std::string> type = config_type(*config, field);
  if (!type.has_value()) return;
  const KnownFilter* known = find_filter(*type);
  if (known == nullptr && !is_optional) {
    field.add(absl::StrCat("must be a known filter or is_optional, found ", quoted(*type)));
  }
  if (known != nullptr && !known->has_overrides) {
    field.add(absl::StrCat("must be a filter that can be overridden, found ", *type));
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
      name.add(absl::StrCat("must be unique, found ", quoted(proto.name()), " again"));
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

void validate_filter_overrides(
    const ::google::protobuf::Map<std::string, ::google::protobuf::Any>& overrides,
    const Field& parent) {
  for (const auto& [name, config] : overrides) {
    const Field field = parent.at_key("typed_per_filter_config", name);
    if (name.empty()) field.add("the key must name a filter, found \"\"");
    validate_override(config, field);
  }
}

}  // namespace signalbox::xds
