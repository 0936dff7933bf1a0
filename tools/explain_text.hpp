// SPDX-License-Identifier: Apache-2.0
//
// explain_text — an explanation (xds/explanation_json.hpp) for people.
//
//   GET /explain, Runtime::explain_json ─▶ JSON ─▶ [explain_text] ─▶ `signalbox explain`
//
//   xds:///orders  /shop.Orders/Place  --seed 42
//
//    1. route: route 0 of 1
//         the first that matches: path with prefix "/"  [RDS orders-routes]
//    2. …
//
//   The call goes to 10.0.0.1:80, in cluster orders.
//
// Control characters in texts of the explanation are escaped.

#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace signalbox::tools {

/// The whole text. `explanation`: the JSON of /explain. A text that is missing or not a string
/// counts as empty.
std::string explain_text(const nlohmann::json& explanation);

}  // namespace signalbox::tools
