// SPDX-License-Identifier: Apache-2.0
//
// explanation_json — where a call would go, and why, as JSON.
//
//   lb::Router::explain ─▶ Explanation ─▶ [to_json_text] ─┬▶ GET /explain
//                                                         └▶ `signalbox explain --json`
//
//   {"target": "xds:///orders", "method": "/shop.Orders/Place", "seed": 42,
//    "outcome": "complete" | "queue" | "fail" | "drop", "cluster": "…", "address": "ip:port",
//    "delay_seconds": 0, "status": {"code": "UNAVAILABLE", "message": "…"},
//    "steps": [{"room": "…", "decision": "…", "reason": "…", "source": "…"}, …]}
//
// Strings are "" where there is none. No value of a header or a cookie is in it.

#pragma once

#include <cstdint>
#include <string>

#include "messages/explanation.hpp"

namespace signalbox::xds {

/// The call that was explained.
struct ExplainedCall {
  std::string target;
  std::string method;
  std::uint64_t seed = 0;
};

std::string to_json_text(const ExplainedCall& call, const Explanation& explanation);

}  // namespace signalbox::xds
