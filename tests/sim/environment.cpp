// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/environment.hpp"

#include <memory>

#include "lb/leaf/picker_pace.hpp"
#include "lb/request_limit.hpp"
#include "metrics/instruments.hpp"
#include "tests/sim/resources.hpp"
#include "tests/support/decode_at_once.hpp"
#include "tests/support/decode_response.hpp"

namespace signalbox::sim {

actors::Environment environment_of(const Setting& setting, std::uint64_t seed) {
  actors::Environment environment;
  environment.connector = setting.connector;
  environment.load_streams = setting.load_streams;
  environment.name_lookup = setting.name_lookup;
  environment.reclaimer = setting.reclaimer;
  environment.instruments = std::make_shared<metrics::Instruments>();
  environment.make_decoder = [](ServerId) -> xds::ResponseDecoder {
    return xds::decode_at_once([](absl::string_view bytes) { return xds::decode_response(bytes); });
  };
  environment.node_bytes = node_bytes("");
  environment.node_id = "simulated";
  environment.seed = seed;
  environment.detached_lookups = false;
  environment.detached_streams = false;
  environment.policy.request_limits = std::make_shared<lb::RequestLimits>();
  environment.policy.picker_interval = lb::kPickerInterval;
  return environment;
}

}  // namespace signalbox::sim
