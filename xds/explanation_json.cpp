// SPDX-License-Identifier: Apache-2.0
#include "xds/explanation_json.hpp"

#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

namespace signalbox::xds {
namespace {

const char* name_of(PickOutcome outcome) {
  switch (outcome) {
    case PickOutcome::kComplete:
      return "complete";
    case PickOutcome::kQueue:
      return "queue";
    case PickOutcome::kFail:
      return "fail";
    case PickOutcome::kDrop:
      return "drop";
  }
  return "";
}

}  // namespace

std::string to_json_text(const ExplainedCall& call, const Explanation& explanation) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const PickStep& step : explanation.steps) {
    steps.push_back({{"part", step.part},
                     {"decision", step.decision},
                     {"reason", step.reason},
                     {"source", step.source}});
  }
  const nlohmann::ordered_json answer{
      {"target", call.target},
      {"method", call.method},
      {"seed", call.seed},
      {"outcome", name_of(explanation.outcome)},
      {"cluster", explanation.cluster},
      {"leaf", explanation.leaf},
      {"address", explanation.address},
      {"delay_seconds", std::chrono::duration<double>(explanation.delay).count()},
      {"status",
       {{"code", absl::StatusCodeToString(explanation.status.code())},
        {"message", std::string(explanation.status.message())}}},
      {"steps", std::move(steps)}};
  // Names from a control plane or a call need not be UTF-8. dump() would throw without `replace`.
  return answer.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace signalbox::xds
