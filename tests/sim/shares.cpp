// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/shares.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <vector>

#include "tests/support/fake_load_streams.hpp"

namespace signalbox::sim {
namespace {

using Shared = std::map<Address, double>;

// A locality, with its hosts that may get calls.
struct Served {
  std::string zone;
  double weight = 1;
  std::vector<const HostModel*> hosts;
};

std::vector<Served> served_localities(const PriorityModel& priority) {
  std::vector<Served> all;
  for (const LocalityModel& locality : priority) {
    Served& served = all.emplace_back(Served{zone_of(locality), double(locality.weight), {}});
    for (const HostModel& host : locality.hosts) {
      if (is_served(host)) served.hosts.push_back(&host);
    }
  }
  return all;
}

void divide(double whole, std::vector<double> weights, std::vector<double>& shares) {
  double sum = 0;
  for (const double weight : weights)
    sum += weight;
  for (std::size_t at = 0; at < weights.size() && sum > 0; ++at)
    shares[at] += whole * weights[at] / sum;
}

void divide_by_weight(double whole,
                      const std::vector<Served>& localities,
                      std::vector<double>& shares) {
  std::vector<double> weights;
  weights.reserve(localities.size());
  for (const Served& locality : localities)
    weights.push_back(locality.hosts.empty() ? 0 : locality.weight);
  divide(whole, std::move(weights), shares);
}

// Decision 0150. Every zone has the same part of the callers: the zones of all localities, and the
// client's.
std::vector<double> shares_by_zone(const std::vector<Served>& localities,
                                   const ZoneRule& rule,
                                   const std::string& zone) {
  std::vector<double> shares(localities.size(), 0);
  std::map<std::string, double> hosts{{zone, 0}};
  double all = 0;
  for (const Served& locality : localities) {
    hosts[locality.zone] += static_cast<double>(locality.hosts.size());
    all += static_cast<double>(locality.hosts.size());
  }
  const bool holds = !zone.empty() && hosts.size() > 1 && all >= static_cast<double>(rule.fewest);
  const double ruled = holds ? rule.percent / 100.0 : 0;
  divide_by_weight(1 - ruled, localities, shares);
  if (!holds) return shares;

  const auto callers = 1.0 / static_cast<double>(hosts.size());
  const double staying = std::min(1.0, hosts.at(zone) / all / callers);
  // A zone's part of the calls, for each of its hosts: hosts of a zone get equal parts.
  std::map<std::string, double> by_host;
  if (hosts.at(zone) > 0) by_host[zone] = staying / hosts.at(zone);
  double spare = 0;
  for (const auto& [name, count] : hosts) {
    if (name != zone) spare += std::max(0.0, count / all - callers);
  }
  for (const auto& [name, count] : hosts) {
    const double own = std::max(0.0, count / all - callers);
    if (name != zone && spare > 0 && count > 0) by_host[name] = (1 - staying) * own / spare / count;
  }
  for (std::size_t at = 0; at < localities.size(); ++at) {
    shares[at] +=
        ruled * by_host[localities[at].zone] * static_cast<double>(localities[at].hosts.size());
  }
  return shares;
}

std::vector<double> shares_of_localities(const std::vector<Served>& localities,
                                         const PolicyRow& row,
                                         const std::string& zone) {
  if (row.zones) return shares_by_zone(localities, *row.zones, zone);
  std::vector<double> shares(localities.size(), 0);
  divide_by_weight(1, localities, shares);
  return shares;
}

double weight_of(const std::string& leaf, const HostModel& host, Shares rule) {
  if (rule == Shares::kByWeight) return host.weight;
  if (rule != Shares::kByLoad) return 1;
  const LoadReport load = testing::true_load(address_of(leaf, host.number));
  return load.qps / load.cpu_utilization;
}

void divide_among(const std::vector<const HostModel*>& hosts,
                  const std::string& leaf,
                  Shares rule,
                  double whole,
                  Shared& shares) {
  double sum = 0;
  for (const HostModel* host : hosts)
    sum += weight_of(leaf, *host, rule);
  for (const HostModel* host : hosts)
    shares[address_of(leaf, host->number)] = whole * weight_of(leaf, *host, rule) / sum;
}

std::vector<const HostModel*> all_hosts(const std::vector<Served>& localities) {
  std::vector<const HostModel*> all;
  for (const Served& locality : localities)
    all.insert(all.end(), locality.hosts.begin(), locality.hosts.end());
  return all;
}

}  // namespace

std::optional<Shared> shares_of(const std::string& leaf,
                                const ClusterModel& model,
                                const std::string& zone) {
  const PolicyRow& row = *model.policy;
  const auto best = best_priority(model);
  if (model.kind != ClusterKind::kEds || row.shares == Shares::kUnchecked || !best)
    return std::nullopt;
  const std::vector<Served> localities = served_localities(model.priorities[*best]);
  Shared shares;
  if (!row.by_locality) {
    divide_among(all_hosts(localities), leaf, row.shares, 1, shares);
    return shares;
  }
  const std::vector<double> wholes = shares_of_localities(localities, row, zone);
  for (std::size_t at = 0; at < localities.size(); ++at)
    divide_among(localities[at].hosts, leaf, row.shares, wholes[at], shares);
  return shares;
}

Shared shares_with_busy(const std::string& leaf, const ClusterModel& model, const Address& busy) {
  const Shared drawn = *shares_of(leaf, model, "");
  const double bias = *model.policy->bias;
  const double first = drawn.begin()->second;
  // Hosts of equal weights: of two draws, that with fewer calls.
  const bool is_even = std::ranges::all_of(
      drawn, [&](const auto& entry) { return std::abs(entry.second - first) < 1e-9; });
  Shared shares;
  for (const auto& [one, part] : drawn) {
    for (const auto& [other, part_of_other] : drawn) {
      const auto chance = [&](const Address& host) {
        return host != busy ? 1.0 : is_even ? 0.0 : std::pow(2.0, -bias);
      };
      const double won = one == other ? 1 : chance(one) / (chance(one) + chance(other));
      shares[one] += part * part_of_other * won;
      shares[other] += part * part_of_other * (1 - won);
    }
  }
  return shares;
}

std::string zone_of(const ClusterModel& model, const Address& host) {
  const int number = number_of(host);
  for (const PriorityModel& priority : model.priorities) {
    for (const LocalityModel& locality : priority) {
      const auto found = std::ranges::find(locality.hosts, number, &HostModel::number);
      if (found != locality.hosts.end()) return zone_of(locality);
    }
  }
  return "";
}

}  // namespace signalbox::sim
