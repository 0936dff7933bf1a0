// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/fault.hpp"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "messages/http_status.hpp"
#include "signalbox/envoy/extensions/filters/http/fault/v3/fault.pb.h"
#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using envoy::extensions::filters::common::fault::v3::FaultDelay;
using envoy::extensions::filters::http::fault::v3::FaultAbort;
using envoy::extensions::filters::http::fault::v3::HTTPFault;
using envoy::type::v3::FractionalPercent;

std::uint32_t denominator_of(const FractionalPercent& proto) {
  switch (proto.denominator()) {
    case FractionalPercent::TEN_THOUSAND:
      return 10'000;
    case FractionalPercent::MILLION:
      return 1'000'000;
    default:
      return 100;
  }
}

// The share of calls that get the fault. An unset percentage selects no calls.
FaultShare parse_share(const FractionalPercent& proto, const Field& field) {
  parse_fraction(proto, field);  // Adds an error if the denominator is unknown.
  const std::uint32_t denominator = denominator_of(proto);
  return {std::min(proto.numerator(), denominator), denominator};
}

std::optional<FaultFilter::Abort> parse_abort(const FaultAbort& proto, const Field& field) {
  FaultFilter::Abort abort;
  abort.share = parse_share(proto.percentage(), field.at("percentage"));
  switch (proto.error_type_case()) {
    case FaultAbort::kGrpcStatus:
      if (proto.grpc_status() > kLastStatusCode) {
        field.at("grpc_status")
            .add(
                absl::StrCat("must be in [0, ", kLastStatusCode, "], found ", proto.grpc_status()));
      }
      abort.status = static_cast<absl::StatusCode>(proto.grpc_status());
      return abort;
    case FaultAbort::kHttpStatus:
      if (!is_http_status(proto.http_status())) {
        field.at("http_status")
            .add(absl::StrCat("must be in [200, 599], found ", proto.http_status()));
      }
      abort.status = status_of_http(proto.http_status());
      return abort;
    case FaultAbort::kHeaderAbort:
      return abort;
    case FaultAbort::ERROR_TYPE_NOT_SET:
      break;
  }
  field.at("error_type").add("must be grpc_status, http_status or header_abort, found none");
  return std::nullopt;
}

std::optional<FaultFilter::Delay> parse_delay(const FaultDelay& proto, const Field& field) {
  FaultFilter::Delay delay;
  delay.share = parse_share(proto.percentage(), field.at("percentage"));
  switch (proto.fault_delay_secifier_case()) {
    case FaultDelay::kFixedDelay:
      delay.fixed = parse_duration(proto.fixed_delay(), field.at("fixed_delay"));
      return delay;
    case FaultDelay::kHeaderDelay:
      return delay;
    case FaultDelay::FAULT_DELAY_SECIFIER_NOT_SET:
      break;
  }
  field.at("fault_delay_secifier").add("must be fixed_delay or header_delay, found none");
  return std::nullopt;
}

}  // namespace

std::optional<HttpFilterConfig> parse_fault(const Extension& extension, const Field& field) {
  HTTPFault proto;
  if (!decode(extension, proto, field)) return std::nullopt;
  FaultFilter filter;
  if (proto.has_delay()) filter.delay = parse_delay(proto.delay(), field.at("delay"));
  if (proto.has_abort()) filter.abort = parse_abort(proto.abort(), field.at("abort"));
  if (proto.has_max_active_faults()) filter.max_active_faults = proto.max_active_faults().value();
  return filter;
}

}  // namespace signalbox::xds
