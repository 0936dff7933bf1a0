// SPDX-License-Identifier: Apache-2.0
//
// Finds fields that are set, that signalbox's messages have but signalbox does not read, and that
// change the behaviour of Envoy. A field that the messages lack is an error of the file
// (xds/resource_file).
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <google/protobuf/any.pb.h>
#include <google/protobuf/message.h>

#include "signalbox/envoy/config/route/v3/route_components.pb.h"
#include "xds/lint/lint.hpp"
#include "xds/parse/retry_policy.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

namespace protobuf = ::google::protobuf;
using RetryProto = envoy::config::route::v3::RetryPolicy;

struct UnreadField {
  absl::string_view message;  // The message's name below envoy.config.
  absl::string_view field;
  absl::string_view what;
};

constexpr absl::string_view kNoCalls = "signalbox cannot do this: the calls of this route fail";
constexpr absl::string_view kNoRoute = "signalbox cannot do this: the route is left out";
constexpr absl::string_view kNoHash = "signalbox cannot hash this: the entry is left out";
constexpr absl::string_view kNoTarget = "a listener for servers: calls to this target fail";

constexpr UnreadField kUnread[] = {
    {"listener.v3.Listener", "default_filter_chain", kNoTarget},
    {"listener.v3.Listener", "filter_chains", kNoTarget},
    {"route.v3.Route", "direct_response", kNoCalls},
    {"route.v3.Route", "filter_action", kNoCalls},
    {"route.v3.Route", "non_forwarding_action", kNoCalls},
    {"route.v3.Route", "redirect", kNoCalls},
    {"route.v3.RouteAction", "cluster_header", kNoRoute},
    {"route.v3.RouteAction", "cluster_specifier_plugin", kNoRoute},
    {"route.v3.RouteAction", "inline_cluster_specifier_plugin", kNoRoute},
    {"route.v3.RouteAction",
     "timeout",
     "signalbox does not read it; max_stream_duration ends calls (gRFC A31)"},
    {"route.v3.RouteAction.HashPolicy", "connection_properties", kNoHash},
    {"route.v3.RouteAction.HashPolicy", "cookie", kNoHash},
    {"route.v3.RouteAction.HashPolicy", "query_parameter", kNoHash},
    {"route.v3.RouteAction.MaxStreamDuration",
     "grpc_timeout_header_offset",
     "signalbox does not read it"},
    {"route.v3.RouteMatch", "connect_matcher", kNoRoute},
    {"route.v3.RouteMatch", "query_parameters", kNoRoute},
    {"route.v3.RouteMatch", "tls_context", "signalbox does not read it"},
};

const UnreadField* find_unread(const protobuf::FieldDescriptor& field) {
  absl::string_view message = field.containing_type()->full_name();
  if (!absl::ConsumePrefix(&message, "signalbox.envoy.config.")) return nullptr;
  for (const UnreadField& unread : kUnread) {
    if (unread.message == message && unread.field == field.name()) return &unread;
  }
  return nullptr;
}

// "virtual_hosts[0]", "typed_per_filter_config".
std::string below(const std::string& path, const std::string& name, int index, bool is_list) {
  return absl::StrCat(
      path, path.empty() ? "" : ".", name, is_list ? absl::StrCat("[", index, "]") : "");
}

void look_at_retries(const RetryProto& retries,
                     const std::string& path,
                     std::vector<LintFinding>& findings) {
  std::vector<std::string> unknown;
  bool any_known = false;
  for (absl::string_view condition :
       absl::StrSplit(absl::string_view(retries.retry_on()), ',', absl::SkipWhitespace())) {
    condition = absl::StripAsciiWhitespace(condition);
    if (is_retry_condition(condition)) {
      any_known = true;
    } else {
      unknown.push_back(absl::StrCat("\"", condition, "\""));
    }
  }
  if (!unknown.empty()) {
    findings.push_back(
        {below(path, "retry_on", 0, false),
         absl::StrCat("signalbox does not know ",
                      absl::StrJoin(unknown, ", "),
                      any_known ? "" : ", so calls are not retried",
                      "; it knows cancelled, deadline-exceeded, internal, resource-exhausted, "
                      "unavailable (gRFC A44)")});
  }
  if (retries.num_retries().value() > kMostRetries) {
    findings.push_back({below(path, "num_retries", 0, false),
                        absl::StrCat("signalbox retries at most ",
                                     kMostRetries,
                                     " times (gRFC A6), found ",
                                     retries.num_retries().value())});
  }
}

class Walk {
 public:
  explicit Walk(std::vector<LintFinding>& findings) : findings_(findings) {}

  void visit(const protobuf::Message& message, const std::string& path) {
    const protobuf::Descriptor& type = *message.GetDescriptor();
    if (&type == protobuf::Any::descriptor()) return visit_any(message, path);
    if (&type == RetryProto::descriptor())
      look_at_retries(static_cast<const RetryProto&>(message), path, findings_);
    const protobuf::Reflection& reflection = *message.GetReflection();
    std::vector<const protobuf::FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const auto* field : fields)
      visit_field(message, reflection, *field, path);
  }

 private:
  void visit_field(const protobuf::Message& message,
                   const protobuf::Reflection& reflection,
                   const protobuf::FieldDescriptor& field,
                   const std::string& path) {
    if (const UnreadField* unread = find_unread(field)) {
      findings_.push_back({below(path, field.name(), 0, false), std::string(unread->what)});
      return;
    }
    if (field.cpp_type() != protobuf::FieldDescriptor::CPPTYPE_MESSAGE) return;
    if (!field.is_repeated())
      return visit(reflection.GetMessage(message, &field), below(path, field.name(), 0, false));
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      visit(reflection.GetRepeatedMessage(message, &field, i),
            below(path, field.name(), i, !field.is_map()));
    }
  }

  void visit_any(const protobuf::Message& message, const std::string& path) {
    const auto& any = static_cast<const protobuf::Any&>(message);
    const protobuf::Descriptor* type = find_message(any.type_url());
    if (type == nullptr) return;
    const std::unique_ptr<protobuf::Message> inner(
        protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    if (inner->ParseFromString(any.value())) visit(*inner, path);
  }

  std::vector<LintFinding>& findings_;
};

}  // namespace

std::vector<LintFinding> unread_fields(const ResourceBytes& resource) {
  std::vector<LintFinding> findings;
  protobuf::Any any;
  any.set_type_url(resource.type_url);
  any.set_value(resource.bytes);
  Walk(findings).visit(any, "");
  return findings;
}

}  // namespace signalbox::xds
