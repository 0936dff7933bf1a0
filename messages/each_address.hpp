// SPDX-License-Identifier: Apache-2.0
//
// each_address — visits all addresses of a cluster's endpoints, the unfit ones, too.
//
//   Endpoints ─▶ [each_address] ─▶ see(address, number of its priority), in the order of priorities

#pragma once

#include <cstddef>

#include "messages/endpoints.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// Calls `see` with a `const Address&`, which lives as long as `endpoints`, and the number of its
/// priority as std::size_t. An address may come several times.
template <typename See>
void each_address(const Endpoints& endpoints, const See& see) {
  std::size_t number = 0;
  for (const Priority& priority : endpoints.priorities) {
    for (const auto* part : priority.lists()) {
      for (const LocalityPtr& locality : *part) {
        for (const Endpoint& endpoint : locality->endpoints) {
          for (const Address& address : endpoint.addresses)
            see(address, number);
        }
      }
    }
    ++number;
  }
}

}  // namespace signalbox
