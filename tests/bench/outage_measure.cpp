// SPDX-License-Identifier: Apache-2.0
//
// Measures an outage as a client sees it under an open load: the control plane is killed and
// started again.
//
//   driver: start ── ready ─▶ SIGKILL to the control plane ── … ── starts it again ── result
//   client: load ── options.length ─▶ calls, failed ──────────────────────────────────────┘
#include <atomic>
#include <iostream>
#include <thread>

#include "tests/bench/measures.hpp"
#include "tests/bench/rate_load.hpp"

namespace signalbox::bench {

Measured measure_outage(const MeasureOptions& options, Side& side) {
  if (auto status = warm_up(*side.stub, options.endpoints, options.port); !status.ok())
    return status;
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> failed{0};
  {
    const auto load = start_load(side, {.rate = options.rate}, [&](const tools::NamedCall& call) {
      ++calls;
      if (!call.ok) ++failed;
    });
    std::cout << R"({"ready":true})" << "\n" << std::flush;
    std::this_thread::sleep_for(options.length);
  }
  return nlohmann::json{{"calls", calls.load()}, {"failed", failed.load()}};
}

}  // namespace signalbox::bench
