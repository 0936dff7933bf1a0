// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/parse_resource.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include <google/protobuf/any.pb.h>

#include "messages/invariant.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/limits.hpp"
#include "xds/parse/cluster.hpp"
#include "xds/parse/endpoints.hpp"
#include "xds/parse/listener.hpp"
#include "xds/parse/route_config.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"
#include "xds/utf8.hpp"
#include "xds/wire.hpp"

namespace signalbox::xds {
namespace {

using ResourceWrapper = envoy::service::discovery::v3::Resource;

ReceivedResource failed(ResourceType type, std::string name, absl::string_view what) {
  static const ParseOptions options;
  ValidationErrors errors(options);
  errors.top().add(what);
  return errors.refuse(to_string(type), std::move(name));
}

ReceivedResource over_limit(ResourceType type,
                            std::string name,
                            absl::string_view limit,
                            absl::string_view what) {
  static const ParseOptions options;
  ValidationErrors errors(options);
  errors.top().add_over_limit(limit, what);
  return errors.refuse(to_string(type), std::move(name));
}

ReceivedResource parse_unwrapped(ResourceType type,
                                 absl::string_view bytes,
                                 const ParseOptions& options,
                                 const KnownResources* known) {
  switch (type) {
    case ResourceType::kListener:
      return parse_listener(bytes, options);
    case ResourceType::kRouteConfig:
      return parse_route_config(bytes, options);
    case ResourceType::kCluster:
      return parse_cluster(bytes, options);
    case ResourceType::kEndpoints:
      return parse_endpoints(bytes, options, known);
  }
  SIGNALBOX_INVARIANT(false, "a resource is of one of four types");
  return {};
}

// A resource without the envoy.service.discovery.v3.Resource messages that wrap it.
struct Unwrapped {
  AnyView any;
  std::string wrapper_name;
  bool is_broken = false;  ///< `any` is a malformed wrapper.
  bool is_too_deep = false;
};

// Removes one wrapper; false if it is malformed. Of its values, only name, version and resource are
// checked.
bool unwrap_once(Unwrapped& so_far) {
  AnyView inner;
  WireReader reader(so_far.any.value);
  while (const auto value = reader.next()) {
    if (!value->content || value->in_group) continue;
    if (value->field == ResourceWrapper::kNameFieldNumber) {
      if (!is_utf8(*value->content)) return false;
      if (!value->content->empty()) so_far.wrapper_name = std::string(*value->content);
    } else if (value->field == ResourceWrapper::kVersionFieldNumber) {
      if (!is_utf8(*value->content)) return false;
    } else if (value->field == ResourceWrapper::kResourceFieldNumber) {
      const auto any = read_any(*value->content);
      if (!any) return false;
      // As in protobuf, if the field occurs repeatedly, later values replace earlier ones.
      if (!any->type_url.empty()) inner.type_url = any->type_url;
      if (!any->value.empty()) inner.value = any->value;
    }
  }
  if (!reader.is_whole()) return false;
  so_far.any = inner;
  return true;
}

Unwrapped unwrap(const AnyView& any, const Limits& limits) {
  static const std::string wrapper_url = type_url_of<ResourceWrapper>();
  Unwrapped result{any, "", false, false};
  for (std::size_t depth = 0; result.any.type_url == wrapper_url; ++depth) {
    result.is_too_deep = depth == limits.max_any_nesting;
    if (result.is_too_deep) break;
    result.is_broken = !unwrap_once(result);
    if (result.is_broken) break;
  }
  return result;
}

// The name is field 1 in every resource type. The bytes after the name are not read.
std::string name_in(absl::string_view bytes) {
  WireReader reader(bytes);
  while (const auto value = reader.next()) {
    const bool is_name = value->field == 1 && value->content && !value->in_group;
    if (is_name) return is_utf8(*value->content) ? std::string(*value->content) : "";
  }
  return "";
}

const ::google::protobuf::Descriptor& descriptor_of(ResourceType type) {
  static const std::array descriptors = {find_message(type_url_of(ResourceType::kListener)),
                                         find_message(type_url_of(ResourceType::kRouteConfig)),
                                         find_message(type_url_of(ResourceType::kCluster)),
                                         find_message(type_url_of(ResourceType::kEndpoints))};
  return *descriptors.at(static_cast<std::size_t>(type));
}

// Takes the estimated memory of the resource from the budget; false if the budget is too small.
bool take_weight(ResourceType type, absl::string_view bytes, ResponseBudget& budget) {
  const std::size_t weight = weigh(bytes, descriptor_of(type), budget.memory_left);
  if (weight > budget.memory_left) return false;
  budget.memory_left -= weight;
  return true;
}

}  // namespace

std::optional<AnyView> read_any(absl::string_view bytes) {
  using ::google::protobuf::Any;
  AnyView any;
  WireReader reader(bytes);
  while (const auto value = reader.next()) {
    if (!value->content || value->in_group) continue;
    if (value->field == Any::kTypeUrlFieldNumber) {
      if (!is_utf8(*value->content)) return std::nullopt;
      any.type_url = *value->content;
    } else if (value->field == Any::kValueFieldNumber) {
      any.value = *value->content;
    }
  }
  return reader.is_whole() ? std::optional(any) : std::nullopt;
}

std::string read_name(ResourceType type, const AnyView& any, const Limits& limits) {
  const Unwrapped inner = unwrap(any, limits);
  std::string name;
  if (inner.any.type_url == type_url_of(type)) name = name_in(inner.any.value);
  return name.empty() ? inner.wrapper_name : name;
}

ReceivedResource refuse_unread(ResourceType type,
                               const AnyView& any,
                               const Limits& limits,
                               absl::string_view limit,
                               absl::string_view what) {
  return over_limit(type, read_name(type, any, limits), limit, what);
}

ReceivedResource parse_resource(ResourceType type,
                                absl::string_view type_url,
                                absl::string_view bytes,
                                const ParseOptions& options,
                                const KnownResources* known,
                                ResponseBudget* budget) {
  const Limits& limits = options.limits;
  const AnyView whole{type_url, bytes};
  const Unwrapped inner = unwrap(whole, limits);
  const std::string& wrapper_name = inner.wrapper_name;
  if (inner.is_too_deep) {
    return over_limit(
        type,
        wrapper_name,
        "max_any_nesting",
        absl::StrCat("must not be wrapped more than ", limits.max_any_nesting, " times"));
  }
  type_url = inner.any.type_url;
  bytes = inner.any.value;
  if (inner.is_broken)
    return undecodable(to_string(type), "a Resource", bytes, ResourceWrapper(), wrapper_name);
  if (type_url != type_url_of(type)) {
    return failed(
        type,
        wrapper_name,
        absl::StrCat("type_url: must be ", type_url_of(type), ", found ", in_quotes(type_url)));
  }
  std::optional<ResponseBudget> own;
  if (budget == nullptr) budget = &own.emplace(limits);
  if (!take_weight(type, bytes, *budget)) {
    return refuse_unread(type,
                         whole,
                         limits,
                         "max_decoded_memory",
                         absl::StrCat("the resources of a response must not take more than ",
                                      limits.max_decoded_memory,
                                      " bytes when decoded, found more"));
  }
  const ReceivedResource* before = known == nullptr ? nullptr : known->find(type, bytes);
  if (before != nullptr && budget->regexes.add_parsed(*before->resource)) return *before;
  std::optional<ParseOptions> with_budget;
  if (options.regexes == nullptr) with_budget.emplace(options).regexes = &budget->regexes;
  ReceivedResource resource =
      parse_unwrapped(type, bytes, with_budget ? *with_budget : options, known);
  if (is_abandoned(options)) {  // The resource may be read only in part.
    resource = {std::move(resource.name), absl::CancelledError("the parsing was abandoned")};
  } else if (resource.resource.ok()) {
    resource.bytes = std::make_shared<const std::string>(bytes);
  } else if (resource.name.empty() && !wrapper_name.empty()) {
    resource.name = wrapper_name;
    resource.resource = absl::InvalidArgumentError(absl::StrCat(
        "Resource ", in_quotes(wrapper_name), ": ", resource.resource.status().message()));
  }
  return resource;
}

}  // namespace signalbox::xds
