// SPDX-License-Identifier: Apache-2.0
#include "lb/health/host_count.hpp"

namespace signalbox::lb {

bool same_hosts(const HostReportPtr& left, const HostReportPtr& right) {
  return left == right || (left != nullptr && right != nullptr && *left == *right);
}

void add(HostTally& sum, const HostTally& more) {
  sum.hosts += more.hosts;
  sum.weight += more.weight;
}

void take(HostTally& sum, const HostTally& less) {
  sum.hosts -= less.hosts;
  sum.weight -= less.weight;
}

HostTally tally(const std::vector<LocalityPtr>& localities) {
  HostTally sum;
  for (const LocalityPtr& locality : localities) {
    for (const Endpoint& endpoint : locality->endpoints) {
      if (!is_draining(endpoint)) add(sum, {1, endpoint.weight});
    }
  }
  return sum;
}

HostTally tally(const EndpointsPtr& endpoints) {
  HostTally sum;
  if (endpoints == nullptr) return sum;
  for (const Priority& priority : endpoints->priorities)
    add(sum, tally(priority.localities));
  return sum;
}

HostReportPtr fit_of(const HostTally& fit, const HostTally& total) {
  auto report = std::make_shared<HostReport>();
  report->priorities.push_back({fit, {}, total});
  return report;
}

}  // namespace signalbox::lb
