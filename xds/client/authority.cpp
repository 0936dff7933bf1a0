// SPDX-License-Identifier: Apache-2.0
#include "xds/client/authority.hpp"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"

#include "messages/invariant.hpp"

namespace signalbox::xds {

Authority::Authority(std::vector<ServerId> servers) : servers_(std::move(servers)) {
  SIGNALBOX_INVARIANT(!servers_.empty(), "an authority has a server");
}

bool Authority::uses(ServerId server) const {
  return absl::c_linear_search(in_use(), server);
}

ServerId Authority::fall_back() {
  SIGNALBOX_INVARIANT(has_next(), "there is a server to fall back to");
  ++in_use_;
  return active();
}

std::vector<ServerId> Authority::return_to(ServerId server) {
  const auto used = in_use();
  const auto chosen = absl::c_find(used, server);
  SIGNALBOX_INVARIANT(chosen != used.end(), "only a server in use is returned to");
  const std::vector<ServerId> left(std::next(chosen), used.end());
  in_use_ -= left.size();
  return left;
}

}  // namespace signalbox::xds
