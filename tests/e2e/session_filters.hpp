// SPDX-License-Identifier: Apache-2.0
//
// Sessions of a ChannelWorld: the filter on the route, and a picker that begins sessions.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/channel_world.hpp"
#include "tests/support/filter_fixture.hpp"

namespace signalbox::test {

/// A session filter with this cookie path.
inline lb::FilterChainPtr session_chain(const std::string& cookie_path) {
  const StatefulSessionFilter session{.cookie =
                                          SessionCookie{.name = "session", .path = cookie_path}};
  const std::vector<HttpFilter> filters{testing::filter("session", session)};
  const FilterOverrides no_overrides;
  return lb::FilterChains(filters, {}).with({&no_overrides, &no_overrides, &no_overrides});
}

/// A picker: its nth pick takes the nth connection, and every further pick takes the last
/// connection. A call with a session filter begins a session with the picked endpoint.
inline ScriptedPicker::Script keeping(std::vector<ConnectionPtr> connections) {
  std::vector<std::string> hosts;
  hosts.reserve(connections.size());
  for (const ConnectionPtr& connection : connections)
    hosts.push_back(connection->address().str());
  auto picks = std::make_shared<std::atomic<std::size_t>>(0);
  return [connections = std::move(connections), hosts = std::move(hosts), picks = std::move(picks)](
             const PickArgs& args) {
    const std::size_t turn = std::min(picks->fetch_add(1), connections.size() - 1);
    PickResult result;
    result.outcome = Complete{connections[turn].get()};
    if (args.session != nullptr) result.affinity = {AffinityResult::kNew, &hosts[turn]};
    return result;
  };
}

}  // namespace signalbox::test
