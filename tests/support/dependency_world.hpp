// SPDX-License-Identifier: Apache-2.0
//
// DependencyWorld — a dependency manager, and its effects as lines of text. Before the manager
// builds a configuration, it starts a timer of zero length, so that waiting events are handled
// first. In these tests no event waits, so DependencyWorld fires that timer at once.
//
//   DependencyWorld world;
//   world.set(cds("a"), eds_cluster("a", "e"))   ▶  {"watch EDS e"}

#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "messages/overloaded.hpp"
#include "tests/support/xds_resources.hpp"
#include "xds/depend/dependency_manager.hpp"

namespace signalbox::tests {

using Lines = std::vector<std::string>;

class DependencyWorld {
 public:
  explicit DependencyWorld(xds::MissingLeaf missing_leaf = xds::MissingLeaf::kSkip)
      : core_({"xds:///orders", "orders", "orders.example", "node-1", 7, missing_leaf, {}}) {
    started = run(core_.start());
  }

  Lines step(const DependencyEvent& event) { return run(core_.step(event, now)); }

  std::optional<xds::Awaited> awaited() const { return core_.awaited(); }

  Lines set(const ResourceKey& key, Resource resource) {
    return step(ResourcesChanged{{ResourceChanged{key, std::move(resource)}}});
  }

  Lines fail(const ResourceKey& key, absl::Status why) {
    return step(ResourcesChanged{{ResourceChanged{key, std::move(why)}}});
  }

  Lines gone(const ResourceKey& key) { return fail(key, absl::NotFoundError("does not exist")); }

  Lines ambient(const ResourceKey& key, absl::Status why) {
    return step(ResourcesChanged{{AmbientErrorChanged{key, std::move(why)}}});
  }

  Lines resolve(const std::string& name, const std::vector<std::string>& addresses) {
    std::vector<Address> found;
    for (const std::string& address : addresses)
      found.emplace_back(address);
    return step(NameResolved{DnsName{name}, std::move(found)});
  }

  Lines fail_to_resolve(const std::string& name, const std::string& why) {
    return step(NameResolved{DnsName{name}, absl::UnavailableError(why)});
  }

  Lines reference(const std::set<std::string>& names) {
    ClustersReferenced event;
    for (const std::string& name : names)
      event.clusters.emplace(name);
    return step(event);
  }

  Lines elapse() {
    now += timer.delay;
    return step(TimerFired{timer.timer});
  }

  /// Sets the listener "orders" with inline routes to these clusters; returns the effects.
  Lines route_to(const std::vector<std::string>& clusters) {
    return set(lds("orders"), inline_listener("orders", routes_to("routes", clusters)));
  }

  /// Adds a leaf: an EDS cluster with one endpoint. Its EDS resource is "<name>-eds".
  void add_leaf(const std::string& name) {
    set(cds(name), eds_cluster(name, name + "-eds"));
    set(eds(name + "-eds"), endpoints({{locality("l", {name + ":1"})}}));
  }

  const ClusterConfig& cluster(const std::string& name) const {
    const auto& found = config->clusters.at(ClusterName{name});
    REQUIRE(found.ok());
    return **found;
  }

  absl::Status cluster_error(const std::string& name) const {
    return config->clusters.at(ClusterName{name}).status();
  }

  const LeafEndpoints& leaf(const std::string& name) const {
    return std::get<LeafEndpoints>(cluster(name).children);
  }

  std::vector<std::string> leaves(const std::string& name) const {
    std::vector<std::string> names;
    for (const ClusterName& leaf : std::get<AggregateLeaves>(cluster(name).children).leaves)
      names.push_back(leaf.str());
    return names;
  }

  /// The note (an error beside a value that stays valid) of the cluster in the last configuration;
  /// empty: none.
  std::string cluster_note(const std::string& name) const {
    const auto found = notes->clusters.find(ClusterName{name});
    return found == notes->clusters.end() ? std::string() : found->second;
  }

  std::set<std::string> clusters() const {
    std::set<std::string> names;
    for (const auto& [name, entry] : config->clusters)
      names.insert(name.str());
    return names;
  }

  Instant now;
  Lines started;
  XdsConfigPtr config;  ///< The configuration emitted last; null after an error.
  ResolutionNotesPtr notes;
  ConfigOrigin origin;  ///< The origin of `config`.
  std::string note;     ///< The target's resolution note.
  absl::Status error;
  StartTimer timer;  ///< The timer started last, of more than zero length.

 private:
  Lines run(const DependencyEffects& effects) {
    Lines lines;
    for (const DependencyEffect& effect : effects) {
      const auto* start = std::get_if<StartTimer>(&effect);
      if (start == nullptr || start->delay > Duration::zero()) {
        lines.push_back(std::visit([this](const auto& what) { return run(what); }, effect));
        continue;
      }
      const Lines later = run(core_.step(TimerFired{start->timer}, now));
      lines.insert(lines.end(), later.begin(), later.end());
    }
    return lines;
  }

  static std::string describe(const ResourceKey& key) {
    return absl::StrCat(to_string(key.type), " ", key.name);
  }

  std::string run(const Watch& watch) { return absl::StrCat("watch ", describe(watch.key)); }

  std::string run(const Unwatch& unwatch) {
    return absl::StrCat("unwatch ", describe(unwatch.key));
  }

  std::string run(const ResolveName& resolve) {
    return absl::StrCat("resolve ", resolve.name.str());
  }

  std::string run(const EmitConfig& emit) {
    config = emit.config;
    notes = emit.notes;
    origin = emit.origin;
    note = emit.notes->target;
    error = absl::OkStatus();
    return "config";
  }

  std::string run(const EmitError& emit) {
    config = nullptr;
    error = emit.status;
    return "error";
  }

  std::string run(const StartTimer& start) {
    timer = start;
    return "timer";
  }

  std::string run(const CancelTimer&) { return "cancel"; }

  xds::DependencyManager core_;
};

}  // namespace signalbox::tests
