// SPDX-License-Identifier: Apache-2.0
//
// Measures time and memory for decoding a hostile response, until its NACK is known.
//
//   bytes ─▶ ResponseParser, part by part ─▶ the text of the NACK: time, and memory at its highest
#include <chrono>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include <malloc.h>

#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/bench/measures.hpp"
#include "tests/bench/process_usage.hpp"
#include "tests/support/decode_response.hpp"
#include "xds/type_url.hpp"

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using envoy::config::route::v3::RouteConfiguration;
using envoy::service::discovery::v3::DiscoveryResponse;

constexpr int kRoutes = 3'000;
constexpr int kPatternsOfRoute = 30;

// A response as long as max_message_bytes allows, with empty resources of two bytes each.
std::string empty_resources() {
  DiscoveryResponse response;
  response.set_nonce("nonce");
  response.set_type_url(std::string(xds::kClusterTypeUrl));
  std::string bytes = response.SerializeAsString();
  const std::size_t size = std::size_t{64} << 20U;
  bytes.reserve(size);
  while (bytes.size() + 2 <= size)
    bytes.append("\x12\x00", 2);
  return bytes;
}

std::string patterns() {
  RouteConfiguration config;
  config.set_name("r");
  auto* host = config.add_virtual_hosts();
  host->add_domains(std::string(1, '*'));
  int number = 0;
  for (int i = 0; i < kRoutes; ++i) {
    auto* route = host->add_routes();
    route->mutable_match()->set_prefix("/");
    route->mutable_route()->set_cluster("c");
    for (int j = 0; j < kPatternsOfRoute; ++j) {
      auto* header = route->mutable_match()->add_headers();
      header->set_name("x-user");
      header->mutable_safe_regex_match()->set_regex(
          absl::StrCat("user-", number++, "-[a-z0-9]{8}(\\.example\\.com)?"));
    }
  }
  DiscoveryResponse response;
  response.set_nonce("nonce");
  response.set_type_url(std::string(xds::kRouteConfigurationTypeUrl));
  auto* resource = response.add_resources();
  resource->set_type_url(response.type_url());
  resource->set_value(config.SerializeAsString());
  return response.SerializeAsString();
}

// Resets the kernel's peak of resident memory (VmHWM).
void begin_counting() {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;
}

}  // namespace

Measured measure_response(const MeasureOptions& options, Side& /*side*/) {
  const std::string bytes = options.response == "patterns" ? patterns() : empty_resources();
  begin_counting();
  const double before_mb = status_megabytes("VmRSS");
  const auto begun = Clock::now();
  const auto decoded = xds::decode_response(bytes);
  const double answered_ms =
      std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
  const double most_mb = status_megabytes("VmHWM") - before_mb;
  if (!decoded.ok()) return decoded.status();
  if (decoded->nack_detail.empty()) return absl::InternalError("the response was not refused");
  const double bytes_mb = static_cast<double>(bytes.size()) / 1e6;
  return nlohmann::json{{"answered_ms", answered_ms},
                        {"memory_mb", most_mb + bytes_mb},
                        {"bytes_per_byte", (most_mb + bytes_mb) / bytes_mb}};
}

}  // namespace signalbox::bench
