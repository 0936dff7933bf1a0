// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/rate_load.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "tools/load/engine.hpp"

namespace signalbox::bench {
namespace {

std::string request_of(std::chrono::microseconds work) {
  demo::v1::PlaceRequest request;
  request.set_item("item");
  request.set_work_us(static_cast<std::uint32_t>(work.count()));
  return request.SerializeAsString();
}

}  // namespace

std::unique_ptr<tools::EngineRun> start_load(const Side& side,
                                             const RateLoad& load,
                                             std::function<void(const tools::NamedCall&)> see) {
  std::vector<std::string> requests;
  requests.reserve(load.work.size());
  for (const std::chrono::microseconds work : load.work)
    requests.push_back(request_of(work));
  tools::CallPlan plan;
  plan.method = kMethodPath;
  plan.call_timeout = std::chrono::seconds(5);
  plan.max_in_flight = 1'000'000;
  plan.profile = {{.from = load.rate, .to = load.rate}};
  plan.arrivals = load.arrivals;
  plan.duration = std::chrono::hours(24);
  return std::make_unique<tools::EngineRun>(
      std::make_unique<tools::LoadEngine>(side.channel, std::move(plan), requests),
      tools::EngineRun::Clock::now(),
      [see = std::move(see)](const tools::EngineRun& run, const tools::OpenLoop::Drained& drained) {
        for (const tools::EndedCall& call : drained.ended)
          see(run.named(call));
      });
}

}  // namespace signalbox::bench
