// SPDX-License-Identifier: Apache-2.0
//
// explanation_json — the route of one call through the pickers, with reasons, as JSON.
//
//   lb::Router::explain ─▶ Explanation ─▶ [to_json_text] ─┬▶ GET /explain
//                                                         └▶ `signalbox explain --json`
//
//   {"target": "xds:///orders", "method": "/shop.Orders/Place", "seed": 42,
//    "outcome": "complete" | "queue" | "fail" | "drop", "cluster": "…", "leaf": "…",
//    "address": "ip:port", "delay_seconds": 0, "status": {"code": "UNAVAILABLE", "message": "…"},
//    "steps": [{"part": "…", "decision": "…", "reason": "…", "source": "…"}, …]}
//
// Strings without a value are "". The JSON has names of headers. It quotes no value of a header and
// no cookie, with these exceptions:
// - It has the numbers that the fault filter takes from headers: delay, percentage and status.
// - It has those addresses of a cookie that are endpoints of the cluster.
// - A filter or a policy of the program's own may quote what it reads.

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
