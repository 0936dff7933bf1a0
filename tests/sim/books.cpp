// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/books.hpp"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

namespace signalbox::sim {

using metrics::Metric;

namespace {

const char* name_of(Metric metric) {
  return metrics::row_of(metric).name.data();
}

void require_equal(
    Metric metric, const std::string& label, double told, double is, FakeComplaints& complaints) {
  complaints.require(told == is,
                     "metrics equal what is there [I10]",
                     absl::StrCat(name_of(metric), "{", label, "} says ", told, ", it is ", is));
}

bool begins_with(const metrics::LabelValues& values, const metrics::LabelValues& first) {
  return values.size() >= first.size() && std::equal(first.begin(), first.end(), values.begin());
}

// How many nodes each cluster is in the policy trees of all targets: one for each target that has
// it in its routes, and one for each routed aggregate of a target that has it as a leaf.
std::map<std::string, int> trees_by_cluster(const Topology& topology) {
  std::map<std::string, int> trees;
  for (const TargetModel& target : topology.targets) {
    for (const std::string& root : routed(target)) {
      const std::vector<std::string> leaves = leaves_of(topology, root);
      for (const std::string& leaf : leaves)
        ++trees[leaf];
      if (std::ranges::count(leaves, root) == 0) ++trees[root];
    }
  }
  return trees;
}

// The load of one cluster that no report had yet. Sums of 0 are left out.
testing::CallLoad load_of(const ClusterLoad& cluster) {
  testing::CallLoad load;
  for (const auto& [category, count] : cluster.drops) {
    if (count != 0) load.drops[category] += count;
  }
  if (cluster.breaker_drops != 0) load.drops[""] += cluster.breaker_drops;
  const auto add = [&](const std::string& name, const MetricSum& sum) {
    if (sum.calls != 0) load += {.metrics = {{name, sum}}};
  };
  for (const LocalityLoad& locality : cluster.localities) {
    load += {locality.issued, locality.succeeded, locality.failed};
    add("cpu_utilization", locality.cpu_utilization);
    add("mem_utilization", locality.mem_utilization);
    add("application_utilization", locality.application_utilization);
    for (const auto& [name, sum] : locality.named)
      add(name, sum);
  }
  return load;
}

std::string load_text(const testing::CallLoad& load) {
  std::string text =
      absl::StrCat(load.issued, " begun, ", load.succeeded, " succeeded, ", load.failed, " failed");
  for (const auto& [category, count] : load.drops)
    absl::StrAppend(&text, ", ", count, " dropped by \"", category, "\"");
  for (const auto& [name, sum] : load.metrics)
    absl::StrAppend(&text, ", ", name, " ", sum.total, " in ", sum.calls);
  return text;
}

}  // namespace

double Books::sum(Metric metric, const metrics::LabelValues& first_labels) const {
  double sum = 0;
  for (const metrics::Family& family : families_) {
    if (family.row->metric != metric) continue;
    for (const metrics::Series& series : family.series) {
      if (begins_with(series.labels, first_labels)) sum += series.value;
    }
  }
  return sum;
}

double Books::sum_routed(Metric metric,
                         const std::string& cluster,
                         const std::string& second_label) const {
  double sum = 0;
  for (const metrics::Family& family : families_) {
    if (family.row->metric != metric) continue;
    for (const metrics::Series& series : family.series) {
      const std::string& aggregate = series.labels.back();
      const std::string& routed = aggregate.empty() ? series.labels.front() : aggregate;
      const bool is_meant = second_label.empty() || series.labels.at(1) == second_label;
      if (routed == cluster && is_meant) sum += series.value;
    }
  }
  return sum;
}

std::size_t Books::count(Metric metric) const {
  const auto found = std::ranges::find_if(
      families_, [&](const metrics::Family& family) { return family.row->metric == metric; });
  return found == families_.end() ? 0 : found->series.size();
}

std::map<std::string, double> Books::by_label(Metric metric, std::size_t place) const {
  std::map<std::string, double> values;
  for (const metrics::Family& family : families_) {
    if (family.row->metric != metric) continue;
    for (const metrics::Series& series : family.series)
      values[series.labels.at(place)] += series.value;
  }
  return values;
}

std::map<metrics::LabelValues, double> Books::series(Metric metric) const {
  std::map<metrics::LabelValues, double> values;
  for (const metrics::Family& family : families_) {
    if (family.row->metric != metric) continue;
    for (const metrics::Series& series : family.series)
      values[series.labels] = series.value;
  }
  return values;
}

void gauges_are_what_lives(const Books& books,
                           const Setting& setting,
                           const Stage& stage,
                           FakeComplaints& complaints) {
  const auto require = [&](Metric metric, std::size_t is) {
    require_equal(metric, "", books.sum(metric), static_cast<double>(is), complaints);
  };
  require(Metric::kPolicies, stage.living("policy"));
  require(Metric::kSubchannels, stage.living("subchannel"));
  require(Metric::kEndpoints, stage.living("subchannel"));
  require(Metric::kXdsConnected, 1);
  std::size_t subscribed = 0;
  for (const ResourceType type : {ResourceType::kListener,
                                  ResourceType::kRouteConfig,
                                  ResourceType::kCluster,
                                  ResourceType::kEndpoints}) {
    if (const auto names = setting.control_plane->subscribed(type)) subscribed += names->size();
  }
  require(Metric::kXdsResources, subscribed);

  std::map<std::string, double> standing;
  for (const auto& [address, numbers] : setting.connector->standing())
    standing[owner_of(address)] += static_cast<double>(numbers.size());
  for (int number = 0; number < kClusters; ++number) {
    const std::string cluster = cluster_name(static_cast<std::size_t>(number));
    const double is = standing[cluster];
    require_equal(Metric::kConnectionsOpen,
                  cluster,
                  books.sum(Metric::kConnectionsOpen, {cluster}),
                  is,
                  complaints);
    double ready = 0;  // The number of ready endpoints, summed over all priorities.
    for (const auto& [labels, value] : books.series(Metric::kEndpoints)) {
      if (labels.at(0) == cluster && labels.at(2) == "ready") ready += value;
    }
    require_equal(Metric::kEndpoints, cluster + " ready", ready, is, complaints);
  }
}

void deaths_are_those_that_happened(const Books& books,
                                    const Stage& stage,
                                    FakeComplaints& complaints) {
  for (const auto& [kind, deaths] : books.by_label(Metric::kActorDeaths, 0)) {
    const double killed = static_cast<double>(stage.killed(kind));
    complaints.require(deaths <= killed,
                       "no deaths are counted that did not happen [I10]",
                       absl::StrCat(deaths, " of ", kind, " for ", killed));
  }
}

void loads_are_what_was_called(const std::map<std::string, testing::CallLoad>& calls,
                               LoadBook& book,
                               const Setting& setting,
                               const Stage& stage,
                               FakeComplaints& complaints) {
  std::map<std::string, testing::CallLoad> told = setting.load_server->loads();
  const LoadReading rest = book.read(0, {.all = true}, setting.clock.now());
  testing::CallLoad untold;
  for (const ClusterLoad& cluster : rest.clusters) {
    const testing::CallLoad load = load_of(cluster);
    told[cluster.cluster.str()] += load;
    untold += load;
  }
  complaints.require(untold.events() == 0 || !rest.is_in_use, "at rest all load is reported [C3]");
  std::uint64_t twice = 0;
  for (const auto& [cluster, load] : calls) {
    const testing::CallLoad& books = told[cluster];
    const bool is_right =
        has_load_reports(cluster) ? books.has_all_of(load) : books == testing::CallLoad{};
    complaints.require(is_right,
                       "the load server's books equal the calls [C3, C4, C6]",
                       absl::StrCat(cluster, ": ", load_text(books), ", not ", load_text(load)));
    if (has_load_reports(cluster) && is_right) twice += books.events() - load.events();
    // The totals of metrics are compared, too, where nothing was reported twice.
    const bool is_equal = books.events() != load.events() || books == load;
    complaints.require(!has_load_reports(cluster) || is_equal,
                       "the load server's metrics are those of the calls [C6]",
                       absl::StrCat(cluster, ": ", load_text(books), ", not ", load_text(load)));
  }
  complaints.require(twice <= stage.killed("load_reporter") * setting.load_server->largest(),
                     "no load is reported twice, unless the reporter died [C7]",
                     absl::StrCat(twice, " events"));
}

void active_priorities_are_the_best(const Books& books,
                                    const Topology& topology,
                                    FakeComplaints& complaints) {
  const auto told = books.by_label(Metric::kPriorityActive, 0);
  const auto trees = trees_by_cluster(topology);
  const auto require = [&](const std::string& cluster, std::size_t is) {
    if (trees.at(cluster) != 1) return;
    const auto found = told.find(cluster);
    require_equal(Metric::kPriorityActive,
                  cluster,
                  found == told.end() ? -2 : found->second,
                  static_cast<double>(is),
                  complaints);
  };
  for (const std::string& root : routed(topology)) {
    const auto leaf = serving_leaf(topology, root);
    if (!leaf || is_tiered(topology, root)) continue;
    const ClusterModel& model = topology.clusters.at(*leaf);
    require(*leaf, model.kind == ClusterKind::kDns ? 0 : *best_priority(model));
    if (*leaf == root) continue;
    const auto leaves = leaves_of(topology, root);
    require(root, static_cast<std::size_t>(std::ranges::find(leaves, *leaf) - leaves.begin()));
  }
}

void loads_are_of_a_hundred(const Books& books,
                            const Setting& setting,
                            const Topology& topology,
                            FakeComplaints& complaints) {
  const std::map<Address, int> connected = setting.connector->wanted();
  const auto text_of = [](const metrics::LabelValues& labels) {
    return absl::StrCat(labels[0], ": ", labels[1], "/", labels[2]);
  };
  std::map<metrics::LabelValues, double> expected;
  for (const std::string& root : routed(topology)) {
    if (!is_tiered(topology, root)) continue;
    for (const Place& place : serving_places(topology, root)) {
      const metrics::LabelValues labels{root, place.leaf, absl::StrCat(place.priority)};
      expected[labels] += place.percent;
      const ClusterModel& model = topology.clusters.at(place.leaf);
      if (model.kind == ClusterKind::kDns || model.policy->connects != Connects::kAll) continue;
      for (const Address& host : hosts_at(topology, place)) {
        const auto found = connected.find(host);
        complaints.require(found != connected.end() && found->second > 0,
                           "every tier that has a load is connected [ENV-25]",
                           absl::StrCat(text_of(labels), ": ", host.str()));
      }
    }
  }
  const std::map<metrics::LabelValues, double> told = books.series(Metric::kTierLoad);
  for (const auto& [labels, percent] : told) {
    complaints.require(
        is_tiered(topology, labels[0]), "only tiered aggregates have loads [ENV]", text_of(labels));
    const auto found = expected.find(labels);
    require_equal(Metric::kTierLoad,
                  text_of(labels),
                  percent,
                  found == expected.end() ? 0 : found->second,
                  complaints);
  }
  for (const auto& [labels, percent] : expected)
    complaints.require(
        told.contains(labels), "what has a load is told of [ENV-11]", text_of(labels));
}

void calls_are_counted(const Books& books,
                       const std::map<std::string, CallCounts>& counts,
                       FakeComplaints& complaints) {
  constexpr const char* kResults[kPickOutcomes] = {"complete", "queue", "fail", "drop"};
  for (const auto& [cluster, count] : counts) {
    for (std::size_t i = 0; i < kPickOutcomes; ++i) {
      require_equal(Metric::kPicks,
                    absl::StrCat(cluster, " ", kResults[i]),
                    books.sum_routed(Metric::kPicks, cluster, kResults[i]),
                    static_cast<double>(count.picks[i]),
                    complaints);
    }
    require_equal(Metric::kRpcsActive,
                  cluster,
                  books.sum_routed(Metric::kRpcsActive, cluster),
                  static_cast<double>(count.running),
                  complaints);
    require_equal(Metric::kAffinityCookies,
                  cluster,
                  books.sum_routed(Metric::kAffinityCookies, cluster),
                  static_cast<double>(count.cookies),
                  complaints);
  }
}

void gauges_end(const Books& books, FakeComplaints& complaints) {
  for (const Metric metric : {Metric::kPolicies,
                              Metric::kSubchannels,
                              Metric::kConnectionsOpen,
                              Metric::kXdsResources,
                              Metric::kRpcsActive}) {
    for (const auto& [label, value] : books.by_label(metric, 0))
      require_equal(metric, label, value, 0, complaints);
  }
  for (const Metric metric :
       {Metric::kEndpoints, Metric::kPriorityActive, Metric::kTierLoad, Metric::kXdsConnected}) {
    complaints.require(
        books.count(metric) == 0, "gauges end with what they tell of [I10]", name_of(metric));
  }
}

}  // namespace signalbox::sim
