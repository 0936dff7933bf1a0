// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/outlier_detection.hpp"

#include <algorithm>
#include <optional>

#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using DetectionProto = envoy::config::cluster::v3::OutlierDetection;

std::optional<OutlierDetection::SuccessRate> parse_success_rate(const DetectionProto& proto,
                                                                const Field& field) {
  OutlierDetection::SuccessRate rate;
  if (proto.has_enforcing_success_rate()) {
    rate.enforcement_percent =
        parse_percent(proto.enforcing_success_rate(), field.at("enforcing_success_rate"));
  }
  if (rate.enforcement_percent == 0) return std::nullopt;
  if (proto.has_success_rate_stdev_factor())
    rate.stdev_factor = proto.success_rate_stdev_factor().value();
  if (proto.has_success_rate_minimum_hosts())
    rate.minimum_hosts = proto.success_rate_minimum_hosts().value();
  if (proto.has_success_rate_request_volume())
    rate.request_volume = proto.success_rate_request_volume().value();
  return rate;
}

std::optional<OutlierDetection::FailurePercentage> parse_failure_percentage(
    const DetectionProto& proto, const Field& field) {
  OutlierDetection::FailurePercentage failure;
  failure.enforcement_percent =
      parse_percent(proto.enforcing_failure_percentage(), field.at("enforcing_failure_percentage"));
  if (failure.enforcement_percent == 0) return std::nullopt;
  if (proto.has_failure_percentage_threshold()) {
    failure.threshold_percent = parse_percent(proto.failure_percentage_threshold(),
                                              field.at("failure_percentage_threshold"));
  }
  if (proto.has_failure_percentage_minimum_hosts())
    failure.minimum_hosts = proto.failure_percentage_minimum_hosts().value();
  if (proto.has_failure_percentage_request_volume())
    failure.request_volume = proto.failure_percentage_request_volume().value();
  return failure;
}

}  // namespace

OutlierDetection parse_outlier_detection(const DetectionProto& proto, const Field& field) {
  OutlierDetection detection;
  if (proto.has_interval())
    detection.interval = parse_duration(proto.interval(), field.at("interval"));
  if (proto.has_base_ejection_time()) {
    detection.base_ejection_time =
        parse_duration(proto.base_ejection_time(), field.at("base_ejection_time"));
  }
  if (proto.has_max_ejection_time()) {
    detection.max_ejection_time =
        parse_duration(proto.max_ejection_time(), field.at("max_ejection_time"));
  }
  // A max_ejection_time below base_ejection_time is raised to base_ejection_time. This also holds
  // for the default of max_ejection_time.
  detection.max_ejection_time = std::max(detection.max_ejection_time, detection.base_ejection_time);
  if (proto.has_max_ejection_percent()) {
    detection.max_ejection_percent =
        parse_percent(proto.max_ejection_percent(), field.at("max_ejection_percent"));
  }
  detection.success_rate = parse_success_rate(proto, field);
  detection.failure_percentage = parse_failure_percentage(proto, field);
  return detection;
}

}  // namespace signalbox::xds
