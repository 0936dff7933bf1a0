// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/resource_rules.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include "messages/overloaded.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/seed_messages.hpp"
#include "tests/support/decode_response.hpp"
#include "tests/support/parse_options.hpp"
#include "xds/client/resource_cache.hpp"
#include "xds/parse/parse_resource.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/type_url.hpp"
#include "xds/utf8.hpp"

namespace signalbox::fuzz {
namespace {

using envoy::service::discovery::v3::DiscoveryResponse;
using xds::DecodedResponse;
using xds::parse_resource;
using xds::ParseOptions;

// Without this object protobuf writes a log message for each string that is not UTF-8.
const ::google::protobuf::LogSilencer silence;

const ParseOptions& everything() {
  static const ParseOptions options = xds::all_parse_options();
  return options;
}

const ParseOptions& few_of_all() {
  static const ParseOptions options = [] {
    ParseOptions small = xds::all_parse_options();
    small.limits.max_clusters = 2;
    small.limits.max_endpoints = 2;
    small.limits.max_routes = 2;
    small.limits.max_name_length = 40;
    small.limits.max_regex_length = 8;
    small.limits.max_any_nesting = 2;
    small.limits.max_lb_policy_nesting = 2;
    return small;
  }();
  return options;
}

std::string describe(const ReceivedResource& received) {
  return absl::StrCat("\"", received.name, "\" ", received.resource.status().ToString());
}

// --- one result -------------------------------------------------------------

void check_error(ResourceType type, const ReceivedResource& received) {
  const absl::Status& status = received.resource.status();
  const std::string text(status.message());
  SIGNALBOX_FUZZ_EXPECT(absl::IsInvalidArgument(status), "R2: the code", describe(received));
  SIGNALBOX_FUZZ_EXPECT(absl::StrContains(text, absl::StrCat(to_string(type), " resource ")),
                        "R2: names the type",
                        text);
  SIGNALBOX_FUZZ_EXPECT(
      received.name.empty() || absl::StrContains(text, xds::in_quotes(received.name)),
      "R2: names the resource",
      describe(received));
  SIGNALBOX_FUZZ_EXPECT(
      text.size() <= kMaxErrorLength, "R2: the length of an error", std::to_string(text.size()));
  SIGNALBOX_FUZZ_EXPECT(xds::is_utf8(text), "R2: an error is UTF-8", text);
}

void check_result(ResourceType type, const ReceivedResource& received) {
  const bool valid = received.resource.ok();
  SIGNALBOX_FUZZ_EXPECT(valid != received.rejection.has_value(), "R1", describe(received));
  if (!valid) return check_error(type, received);
  SIGNALBOX_FUZZ_EXPECT(type_of(*received.resource) == type, "R5: the type", describe(received));
  SIGNALBOX_FUZZ_EXPECT(!received.name.empty(), "R5: a name", "none");
}

bool is_same(const ReceivedResource& left, const ReceivedResource& right) {
  if (left.name != right.name || left.rejection != right.rejection) return false;
  if (!left.resource.ok() || !right.resource.ok())
    return left.resource.status() == right.resource.status();
  return xds::same_content(*left.resource, *right.resource);
}

// --- sizes ------------------------------------------------------------------

std::size_t count_routes(const RouteConfig& config) {
  return std::accumulate(
      config.virtual_hosts.begin(),
      config.virtual_hosts.end(),
      std::size_t{0},
      [](std::size_t sum, const VirtualHost& host) { return sum + host.routes.size(); });
}

bool within_limits(const RouteConfig& config, const xds::Limits& limits) {
  const auto is_short = [&](const auto& named) {
    return named.name.size() <= limits.max_name_length;
  };
  const auto& hosts = config.virtual_hosts;
  return is_short(config) && count_routes(config) <= limits.max_routes &&
         std::all_of(hosts.begin(), hosts.end(), [&](const VirtualHost& host) {
           return is_short(host) && std::all_of(host.routes.begin(), host.routes.end(), is_short);
         });
}

bool within_limits(const Resource& resource, const xds::Limits& limits) {
  return std::visit(
      Overloaded{
          [&](const std::shared_ptr<const Listener>& listener) {
            const auto* routes = std::get_if<std::shared_ptr<const RouteConfig>>(&listener->routes);
            return listener->name.size() <= limits.max_name_length &&
                   (routes == nullptr || within_limits(**routes, limits));
          },
          [&](const std::shared_ptr<const RouteConfig>& config) {
            return within_limits(*config, limits);
          },
          [&](const std::shared_ptr<const Cluster>& cluster) {
            const auto* aggregate = std::get_if<AggregateDiscovery>(&cluster->discovery);
            return cluster->name.str().size() <= limits.max_name_length &&
                   (aggregate == nullptr || aggregate->clusters.size() <= limits.max_clusters);
          },
          [&](const EndpointsPtr& endpoints) {
            return count_endpoints(*endpoints) <= limits.max_endpoints;
          },
      },
      resource);
}

void check_limits(ResourceType type,
                  absl::string_view type_url,
                  absl::string_view bytes,
                  const ReceivedResource& unlimited) {
  const auto& options = few_of_all();
  const auto received = parse_resource(type, type_url, bytes, options);
  check_result(type, received);
  if (received.resource.ok()) {
    SIGNALBOX_FUZZ_EXPECT(
        within_limits(*received.resource, options.limits), "R6: limits hold", describe(received));
    SIGNALBOX_FUZZ_EXPECT(
        is_same(received, unlimited), "R6: limits change nothing else", describe(unlimited));
    return;
  }
  const Rejection& why = *received.rejection;
  SIGNALBOX_FUZZ_EXPECT((why.reason == RejectionReason::kLimit) == !why.limit.empty(),
                        "R6: a limit has a name",
                        describe(received));
}

// --- once more --------------------------------------------------------------

void check_again(ResourceType type, absl::string_view bytes, const ReceivedResource& first) {
  const std::string type_url(xds::type_url_of(type));
  const std::unique_ptr<::google::protobuf::Message> message(resource_prototype(type).New());
  const bool decoded = message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  SIGNALBOX_FUZZ_EXPECT(decoded, "R4: what is valid is a message", describe(first));

  const char* name_field = type == ResourceType::kEndpoints ? "cluster_name" : "name";
  const auto* field = message->GetDescriptor()->FindFieldByName(name_field);
  SIGNALBOX_FUZZ_EXPECT(message->GetReflection()->GetString(*message, field) == first.name,
                        "R5: the name of the bytes",
                        first.name);

  message->DiscardUnknownFields();
  const auto again = parse_resource(type, type_url, message->SerializeAsString(), everything());
  SIGNALBOX_FUZZ_EXPECT(is_same(first, again), "R4", describe(again));
}

// --- responses --------------------------------------------------------------

std::size_t count_invalid(const ResourcesReceived& received) {
  std::size_t invalid = received.unnamed_errors.size();
  for (const ReceivedResource& resource : received.resources)
    invalid += resource.resource.ok() ? 0 : 1;
  return invalid;
}

void check_received(const DecodedResponse& response) {
  const ResourcesReceived& received = response.received;
  const std::size_t invalid = count_invalid(received);
  SIGNALBOX_FUZZ_EXPECT(
      response.nack_detail.empty() == (invalid == 0), "R1: ACK or NACK", response.nack_detail);
  SIGNALBOX_FUZZ_EXPECT(response.nack_detail.size() <= xds::kMaxNackDetailLength + 64,
                        "R2: the length of a NACK",
                        std::to_string(response.nack_detail.size()));
  SIGNALBOX_FUZZ_EXPECT(
      xds::is_utf8(response.nack_detail), "R2: a NACK is UTF-8", response.nack_detail);
  const auto counted =
      std::accumulate(received.rejected.begin(), received.rejected.end(), std::uint64_t{0});
  // Refused resources with the same name make one invalid entry, but may be counted several times.
  SIGNALBOX_FUZZ_EXPECT((counted > 0) == (invalid > 0) && counted >= invalid,
                        "R1: what is refused is counted",
                        absl::StrCat(counted, " counted, ", invalid, " invalid"));
  std::set<std::string> names;
  for (const ReceivedResource& resource : received.resources) {
    check_result(received.type, resource);
    SIGNALBOX_FUZZ_EXPECT(names.insert(resource.name).second, "R7: once", resource.name);
  }
}

// Rule R7 of the header: in a response of its own, the resource gives the same result as alone.
void check_answer(ResourceType type, absl::string_view bytes, const ReceivedResource& alone) {
  DiscoveryResponse proto;
  proto.set_type_url(std::string(xds::type_url_of(type)));
  proto.set_version_info("7");
  proto.set_nonce("once");
  auto& any = *proto.add_resources();
  any.set_type_url(proto.type_url());
  any.set_value(std::string(bytes));
  const auto response = xds::decode_response(proto.SerializeAsString(), everything());
  SIGNALBOX_FUZZ_EXPECT(
      response.ok(), "R7: a response is read", std::string(response.status().message()));
  check_received(*response);
  const ResourcesReceived& received = response->received;
  SIGNALBOX_FUZZ_EXPECT(response->nonce == "once" && received.version == "7",
                        "R7: nonce and version",
                        response->nonce);
  const bool told =
      alone.name.empty()
          ? received.resources.empty() && received.unnamed_errors.size() == 1
          : received.resources.size() == 1 && is_same(received.resources.front(), alone);
  SIGNALBOX_FUZZ_EXPECT(told, "R7: the same alone and in a response", describe(alone));
}

}  // namespace

void check_resource(ResourceType type, absl::string_view bytes) {
  const std::string type_url(xds::type_url_of(type));
  const auto received = parse_resource(type, type_url, bytes, everything());
  check_result(type, received);
  SIGNALBOX_FUZZ_EXPECT(is_same(received, parse_resource(type, type_url, bytes, everything())),
                        "R3",
                        describe(received));
  if (received.resource.ok()) check_again(type, bytes, received);
  check_limits(type, type_url, bytes, received);
  check_answer(type, bytes, received);
  check_result(type, parse_resource(type, type_url, bytes));
}

void check_response(absl::string_view bytes) {
  for (const ParseOptions& options : {everything(), few_of_all()}) {
    const auto response = xds::decode_response(bytes, options);
    if (response.ok()) {
      check_received(*response);
      continue;
    }
    const std::string error(response.status().message());
    SIGNALBOX_FUZZ_EXPECT(error.size() <= kMaxErrorLength && xds::is_utf8(error),
                          "R2: of what is no response",
                          error);
  }
}

}  // namespace signalbox::fuzz
