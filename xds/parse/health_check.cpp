// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/health_check.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "messages/header_rules.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/percent_encoding.hpp"

namespace signalbox::xds {
namespace {

using CheckProto = envoy::config::core::v3::HealthCheck;
using HttpProto = CheckProto::HttpHealthCheck;
using RangeProtos = ::google::protobuf::RepeatedPtrField<envoy::type::v3::Int64Range>;
using Statuses = HealthCheck::Http::Statuses;

constexpr std::int64_t kFirstStatus = 100;
constexpr std::int64_t kEndOfStatuses = 600;

Duration parse_positive(bool is_set,
                        const ::google::protobuf::Duration& proto,
                        const Field& field) {
  if (!is_set) {
    field.add("must be set, found none");
    return {};
  }
  const std::size_t errors_before = field.errors_so_far();
  const Duration duration = parse_duration(proto, field);
  if (duration == Duration::zero() && field.errors_so_far() == errors_before)
    field.add("must be longer than 0, found 0");
  return duration;
}

std::uint32_t parse_threshold(bool is_set,
                              const ::google::protobuf::UInt32Value& proto,
                              const Field& field) {
  if (!is_set) {
    field.add("must be set, found none");
  } else if (proto.value() == 0) {
    field.add("must be at least 1, found 0");
  }
  return proto.value();
}

// Adds an error if the text has a control character. For texts that the prober writes into a header
// or a request line.
void require_printable(const std::string& text, const Field& field) {
  const auto is_control = [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); };
  if (std::ranges::any_of(text, is_control))
    field.add(absl::StrCat("must have no control characters, found ", in_quotes(text)));
}

std::vector<Statuses> parse_statuses(const RangeProtos& protos,
                                     absl::string_view name,
                                     const Field& http) {
  std::vector<Statuses> ranges;
  for (int i = 0; i < protos.size(); ++i) {
    const std::int64_t start = protos[i].start();
    const std::int64_t end = protos[i].end();
    if (start >= kFirstStatus && start < end && end <= kEndOfStatuses) {
      ranges.push_back({static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(end)});
      continue;
    }
    http.at(name, static_cast<std::size_t>(i))
        .add(absl::StrCat("must be a range [start, end) within [",
                          kFirstStatus,
                          ", ",
                          kEndOfStatuses,
                          ") that is not empty, found [",
                          start,
                          ", ",
                          end,
                          ")"));
  }
  return ranges;
}

HealthCheck::Http parse_http(const HttpProto& proto, const Field& field) {
  HealthCheck::Http http;
  http.host = proto.host();
  require_name_length(http.host, field.at("host"));
  require_printable(http.host, field.at("host"));
  http.path = proto.path();
  require_name(http.path, field.at("path"));
  require_printable(http.path, field.at("path"));
  auto expected = parse_statuses(proto.expected_statuses(), "expected_statuses", field);
  if (!expected.empty()) http.expected = std::move(expected);
  http.retriable = parse_statuses(proto.retriable_statuses(), "retriable_statuses", field);
  return http;
}

std::string parse_payload(const CheckProto::Payload& proto, const Field& field) {
  if (proto.payload_case() == CheckProto::Payload::kBinary) return proto.binary();
  const std::string& text = proto.text();
  std::optional<std::string> bytes = hex_decode(text);
  if (text.empty() || !bytes.has_value()) {
    field.add(absl::StrCat("must have text of hexadecimal digits, two for each byte, found ",
                           in_quotes(text)));
    return {};
  }
  return *std::move(bytes);
}

HealthCheck::Tcp parse_tcp(const CheckProto::TcpHealthCheck& proto, const Field& field) {
  HealthCheck::Tcp tcp;
  if (proto.has_send()) tcp.send = parse_payload(proto.send(), field.at("send"));
  for (int i = 0; i < proto.receive_size(); ++i) {
    tcp.receive.push_back(
        parse_payload(proto.receive(i), field.at("receive", static_cast<std::size_t>(i))));
  }
  return tcp;
}

HealthCheck::Grpc parse_grpc(const CheckProto::GrpcHealthCheck& proto, const Field& field) {
  require_name_length(proto.service_name(), field.at("service_name"));
  require_name_length(proto.authority(), field.at("authority"));
  // gRPC sends only printable ASCII in an authority.
  if (!is_header_value("", proto.authority())) {
    field.at("authority")
        .add(absl::StrCat("must be printable ASCII, found ", in_quotes(proto.authority())));
  }
  return {proto.service_name(), proto.authority()};
}

bool is_plain_get(const HttpProto& proto) {
  using envoy::config::core::v3::GET;
  using envoy::config::core::v3::METHOD_UNSPECIFIED;
  return proto.codec_client_type() == envoy::type::v3::HTTP1 &&
         (proto.method() == METHOD_UNSPECIFIED || proto.method() == GET) && !proto.has_send() &&
         proto.receive().empty() && proto.request_headers_to_add().empty() &&
         !proto.has_service_name_matcher();
}

// The prober's own sockets have no TLS. For a cluster with TLS they can only test whether a
// connection is possible.
bool can_do(const CheckProto& proto, bool has_tls) {
  switch (proto.health_checker_case()) {
    case CheckProto::kGrpcHealthCheck:
      return true;
    case CheckProto::kHttpHealthCheck:
      return !has_tls && is_plain_get(proto.http_health_check());
    case CheckProto::kTcpHealthCheck:
      return !has_tls ||
             (!proto.tcp_health_check().has_send() && proto.tcp_health_check().receive().empty());
    default:  // CustomHealthCheck, checks of newer APIs, or none.
      return false;
  }
}

HealthCheck parse_health_check(const CheckProto& proto, const Field& field) {
  HealthCheck check;
  if (proto.has_http_health_check()) {
    check.probe = parse_http(proto.http_health_check(), field.at("http_health_check"));
  } else if (proto.has_tcp_health_check()) {
    check.probe = parse_tcp(proto.tcp_health_check(), field.at("tcp_health_check"));
  } else if (proto.has_grpc_health_check()) {
    check.probe = parse_grpc(proto.grpc_health_check(), field.at("grpc_health_check"));
  }
  check.timeout = parse_positive(proto.has_timeout(), proto.timeout(), field.at("timeout"));
  check.interval = parse_positive(proto.has_interval(), proto.interval(), field.at("interval"));
  check.initial_jitter = parse_duration(proto.initial_jitter(), field.at("initial_jitter"));
  check.interval_jitter = parse_duration(proto.interval_jitter(), field.at("interval_jitter"));
  check.interval_jitter_percent = proto.interval_jitter_percent();
  if (check.interval_jitter_percent > 100) {
    field.at("interval_jitter_percent")
        .add(absl::StrCat("must be at most 100, found ", check.interval_jitter_percent));
  }
  check.unhealthy_threshold = parse_threshold(proto.has_unhealthy_threshold(),
                                              proto.unhealthy_threshold(),
                                              field.at("unhealthy_threshold"));
  check.healthy_threshold = parse_threshold(
      proto.has_healthy_threshold(), proto.healthy_threshold(), field.at("healthy_threshold"));
  return check;
}

bool within_check_limit(int found, const Field& top) {
  const std::size_t most = top.options().limits.max_health_checks;
  if (static_cast<std::size_t>(found) <= most) return true;
  top.at("health_checks")
      .add_over_limit("max_health_checks",
                      absl::StrCat("must have at most ", most, " entries, found ", found));
  return false;
}

}  // namespace

HealthChecksPtr parse_health_checks(const HealthCheckProtos& protos,
                                    bool has_tls,
                                    const Field& top) {
  if (!top.options().health_checks || !within_check_limit(protos.size(), top)) return nullptr;
  std::vector<HealthCheck> checks;
  for (int i = 0; i < protos.size(); ++i) {
    HealthCheck check =
        parse_health_check(protos[i], top.at("health_checks", static_cast<std::size_t>(i)));
    if (can_do(protos[i], has_tls)) checks.push_back(std::move(check));
  }
  if (checks.empty()) return nullptr;
  return std::make_shared<const std::vector<HealthCheck>>(std::move(checks));
}

}  // namespace signalbox::xds
