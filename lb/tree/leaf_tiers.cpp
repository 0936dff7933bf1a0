// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/leaf_tiers.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lb/config_of.hpp"
#include "lb/health/host_count.hpp"
#include "lb/health/spread.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/state_sum.hpp"
#include "lb/tree/child_set.hpp"
#include "lb/tree/leaf_tiers_picker.hpp"
#include "lb/tree/pending_update.hpp"
#include "lb/tree/published.hpp"
#include "lb/tree/retention.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

using Localities = std::vector<LocalityPtr>;

ChildName child_of(const ChildName& priority, Tier::Hosts hosts) {
  switch (hosts) {
    case Tier::Hosts::kHealthy:
      break;
    case Tier::Hosts::kDegraded:
      return ChildName(priority.str() + "-degraded");
    case Tier::Hosts::kAll:
      return ChildName(priority.str() + "-all");
  }
  return priority;
}

/// For a priority in panic: joins the healthy, degraded and unhealthy part of each locality into
/// one locality (L5 of leaf_tiers.hpp). If the parts are the same as before, so is the pointer to
/// the joined locality.
class PanicLocalities {
 public:
  /// Begins a configuration. Joined localities that it does not use are forgotten at the next
  /// begin().
  void begin() { before_ = std::exchange(made_, {}); }

  Localities of(const Priority& priority) {
    std::map<LocalityName, Localities> parts;
    for (const auto* part : priority.lists()) {
      for (const LocalityPtr& locality : *part)
        parts[locality->name].push_back(locality);
    }
    Localities merged;
    for (const auto& [name, of_name] : parts) {
      const auto known = before_.find(of_name);
      const LocalityPtr one = known == before_.end() ? merge(of_name) : known->second;
      made_[of_name] = one;
      if (!one->endpoints.empty()) merged.push_back(one);
    }
    return merged;
  }

 private:
  static LocalityPtr merge(const Localities& parts) {
    auto merged = std::make_shared<Locality>(*parts.front());
    for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
      const auto& more = (*part)->endpoints;
      merged->endpoints.insert(merged->endpoints.end(), more.begin(), more.end());
    }
    std::erase_if(merged->endpoints, is_draining);
    for (Endpoint& endpoint : merged->endpoints)
      endpoint.health = HealthStatus::kUnhealthy;
    return merged;
  }

  std::map<Localities, LocalityPtr> before_;  ///< From parts to the joined locality.
  std::map<Localities, LocalityPtr> made_;
};

bool has_endpoints(const Localities& localities, bool draining_too = true) {
  return std::ranges::any_of(localities, [&](const LocalityPtr& locality) {
    return std::ranges::any_of(locality->endpoints, [&](const Endpoint& endpoint) {
      return draining_too || !is_draining(endpoint);
    });
  });
}

bool has_endpoints(const Priority& priority, Tier::Hosts hosts) {
  switch (hosts) {
    case Tier::Hosts::kHealthy:
      return has_endpoints(priority.localities);
    case Tier::Hosts::kDegraded:
      return has_endpoints(priority.degraded);
    case Tier::Hosts::kAll:
      break;
  }
  return has_endpoints(priority.localities) || has_endpoints(priority.degraded) ||
         has_endpoints(priority.unhealthy, false);
}

constexpr Tier::Hosts kHosts[] = {Tier::Hosts::kHealthy, Tier::Hosts::kDegraded, Tier::Hosts::kAll};

// `count` of `all` endpoints, as a number of `whole` endpoints, rounded down.
std::uint64_t scaled(std::uint64_t count, std::uint64_t all, std::uint64_t whole) {
  if (all == 0 || all == whole) return count;
  const double product = static_cast<double>(count) * static_cast<double>(whole);
  return static_cast<std::uint64_t>(product / static_cast<double>(all));
}

// The fit endpoints of a tier that has `whole` endpoints in EDS. A child that uses only some of
// them (random_subsetting) stands for all of them (L3).
HostTally fit_in(const Child& child, const HostTally& whole) {
  const PriorityHosts counted = hosts_of(child);
  return {scaled(counted.healthy.hosts, counted.total.hosts, whole.hosts),
          scaled(counted.healthy.weight, counted.total.weight, whole.weight)};
}

/// A tier (one part of a priority's endpoints, such as the degraded ones), and its child's name.
struct Slot {
  Tier tier;
  ChildName child;
};

/// The endpoints as of the newest configuration that has taken effect (L4 of leaf_tiers.hpp).
struct Listed {
  std::vector<Slot> slots;  ///< The tiers that have endpoints, priority by priority.
  std::vector<ChildName> priorities;
  std::vector<PriorityHosts> hosts;
  std::uint32_t overprovisioning_percent = 140;
  bool weighted = false;
};

class LeafTiers final : public Policy {
 public:
  explicit LeafTiers(PolicyOptions options) : options_(std::move(options)) {}

  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    LbEffects effects;
    std::visit(Overloaded{
                   [&](const ConfigUpdated& update) { on(update, effects); },
                   [&](const ChildStateChanged& changed) { children_.hear(changed, effects); },
                   [&](const ChildAskedReresolution& asked) { on(asked, effects); },
                   [&](const TimerFired& fired) { on(fired, effects); },
                   [&](const IdleExitRequested&) { exit_idle(effects); },
                   [&](const auto&) { children_.hear_other(event, effects); },
               },
               event);
    if (update_.ended(children_, options_.failover_timeout, effects)) conclude(effects);
    if (children_.generation() != 0) publish(effects);
    children_.report_applied(effects);
    return effects;
  }

 private:
  // --- configurations ---

  void on(const ConfigUpdated& update, LbEffects& effects) {
    children_.begin(update);
    config_ = config_of<LeafTiersConfig>(update);
    endpoints_ = update.endpoints;
    update_.begin();
    panic_.begin();
    std::set<ChildName> named;
    for (std::uint32_t at = 0; at < config_.priorities.size(); ++at) {
      for (const Tier::Hosts hosts : kHosts) {
        if (!has_endpoints(priority(at), hosts) || fails({at, hosts})) continue;
        const ChildName child = child_of(config_.priorities[at], hosts);
        named.insert(child);
        if (is_wanted({at, hosts})) activate(child, effects);
        if (running_.contains(child)) send(child, {at, hosts}, effects);
      }
    }
    for (const ChildName& child : running_) {
      if (!named.contains(child)) children_.excuse(child);
    }
  }

  bool is_wanted(const Tier& tier) const { return config_.tiers->contains(tier); }

  // Whether all calls to the tier fail while it is wanted (L6).
  bool fails(const Tier& tier) const {
    return tier.hosts == Tier::Hosts::kAll && fails_in_panic(config_.child);
  }

  Priority priority(std::size_t at) const {
    const bool exists = endpoints_ != nullptr && at < endpoints_->priorities.size();
    return exists ? endpoints_->priorities[at] : Priority{};
  }

  void send(const ChildName& child, const Tier& tier, LbEffects& effects) {
    auto slice = std::make_shared<Endpoints>();
    const Priority whole = priority(tier.priority);
    Priority& part = slice->priorities.emplace_back();
    switch (tier.hosts) {
      case Tier::Hosts::kHealthy:
        part.localities = whole.localities;
        break;
      case Tier::Hosts::kDegraded:
        part.localities = whole.degraded;
        break;
      case Tier::Hosts::kAll:
        part.localities = panic_.of(whole);
        break;
    }
    children_.update_if_changed(child, config_.child, std::move(slice), effects);
  }

  // All children have answered the configuration, or the time for it is over, so it takes effect
  // (L4 of leaf_tiers.hpp).
  void conclude(LbEffects& effects) {
    listed_ = list();
    is_listed_ = true;
    std::map<ChildName, Tier> named;
    for (const Slot& slot : listed_.slots) {
      if (!fails(slot.tier)) named.emplace(slot.child, slot.tier);
    }
    std::vector<ChildName> unnamed;
    for (const ChildName& child : running_) {
      const auto found = named.find(child);
      if (found == named.end()) {
        unnamed.push_back(child);
      } else if (!is_wanted(found->second)) {
        retention_.begin(child, effects);
      }
    }
    for (const ChildName& child : unnamed)
      destroy(child, effects);
  }

  Listed list() const {
    Listed listed;
    listed.priorities = config_.priorities;
    for (std::uint32_t at = 0; at < config_.priorities.size(); ++at) {
      const Priority whole = priority(at);
      PriorityHosts& hosts = listed.hosts.emplace_back();
      hosts.healthy = tally(whole.localities);
      hosts.degraded = tally(whole.degraded);
      hosts.total = tally(whole.unhealthy);
      add(hosts.total, hosts.healthy);
      add(hosts.total, hosts.degraded);
      for (const Tier::Hosts part : kHosts) {
        if (has_endpoints(whole, part))
          listed.slots.push_back({{at, part}, child_of(config_.priorities[at], part)});
      }
    }
    if (endpoints_ == nullptr) return listed;
    listed.overprovisioning_percent = endpoints_->overprovisioning_percent;
    listed.weighted = endpoints_->weighted_priority_health;
    return listed;
  }

  // --- which tiers run ---

  void activate(const ChildName& child, LbEffects& effects) {
    running_.insert(child);
    retention_.end(child, effects);
  }

  void destroy(const ChildName& child, LbEffects& effects) {
    retention_.end(child, effects);
    running_.erase(child);
    children_.stop(child, effects);
  }

  void on(const ChildAskedReresolution& asked, LbEffects& effects) {
    if (!config_.ignore_reresolution_requests) children_.hear_other(asked, effects);
  }

  void on(const TimerFired& fired, LbEffects& effects) {
    if (update_.ran_out(fired)) {
      for (const ChildName& child : running_)
        children_.excuse(child);
      return;
    }
    if (const auto expired = retention_.ran_out(fired)) destroy(*expired, effects);
  }

  void exit_idle(LbEffects& effects) const {
    for (const Slot& slot : listed_.slots) {
      if (is_wanted(slot.tier)) children_.exit_idle(slot.child, effects);
    }
  }

  // --- publications ---

  void publish(LbEffects& effects) {
    if (!is_listed_) {
      published_.publish(
          {ConnectivityState::kConnecting, {}, make_queue_picker(), children_.generation()},
          effects);
      return;
    }
    if (!update_.is_pending() || hosts_ == nullptr) hosts_ = count();
    const auto [state, status] = state_of_tiers();
    published_.publish({state, status, picker(status), children_.generation(), hosts_}, effects);
  }

  std::pair<ConnectivityState, absl::Status> state_of_tiers() const {
    if (listed_.slots.empty()) {
      return {ConnectivityState::kTransientFailure, absl::UnavailableError("there is no endpoint")};
    }
    StateCounts in_state{};
    absl::Status status;
    for (const Slot& slot : listed_.slots) {
      if (fails(slot.tier) && is_wanted(slot.tier)) {
        ++in_state[index_of(ConnectivityState::kTransientFailure)];
        status = panic_status();
        continue;
      }
      const Child* child = children_.find(slot.child);
      if (child == nullptr || !is_wanted(slot.tier)) continue;
      ++in_state[index_of(child->lasting_state)];
      if (!child->status.ok()) status = with_note(child->status, to_string(slot.tier) + ": ");
    }
    if (in_state == StateCounts{}) return {ConnectivityState::kConnecting, absl::OkStatus()};
    const ConnectivityState state = sum_of(in_state);
    if (state != ConnectivityState::kTransientFailure) status = absl::OkStatus();
    return {state, status};
  }

  PickerPtr picker(const absl::Status& status) {
    std::vector<TierPicker> tiers(kTiersOfPriority * listed_.priorities.size());
    for (const Slot& slot : listed_.slots) {
      // Without is_wanted(), calls for another tier that is gone would come here, and fail.
      if (fails(slot.tier) && is_wanted(slot.tier)) {
        tiers[place_of(slot.tier)] = {in_panic_, true};
        continue;
      }
      const Child* child = children_.find(slot.child);
      tiers[place_of(slot.tier)] = {child == nullptr ? make_queue_picker() : child->picker,
                                    child != nullptr};
    }
    if (shown_ != nullptr && tiers == tiers_) return shown_;
    shown_ = listed_.slots.empty() ? make_fail_picker(status) : make_leaf_tiers_picker(tiers);
    tiers_ = std::move(tiers);
    return shown_;
  }

  static absl::Status panic_status() {
    return absl::UnavailableError(
        "too few endpoints are healthy (panic), and fail_traffic_on_panic is set");
  }

  // The HostReport (how many endpoints are fit), from which tiered computes the shares of calls (L3
  // of leaf_tiers.hpp).
  HostReportPtr count() const {
    auto report = std::make_shared<HostReport>();
    report->overprovisioning_percent = listed_.overprovisioning_percent;
    report->weighted = listed_.weighted;
    report->priorities = listed_.hosts;
    for (const Slot& slot : listed_.slots) {
      const Child* child = children_.find(slot.child);
      if (child == nullptr || slot.tier.hosts == Tier::Hosts::kAll) continue;
      PriorityHosts& at = report->priorities[slot.tier.priority];
      HostTally& part = slot.tier.hosts == Tier::Hosts::kHealthy ? at.healthy : at.degraded;
      part = fit_in(*child, part);
    }
    return report;
  }

  const PolicyOptions options_;
  LeafTiersConfig config_;
  EndpointsPtr endpoints_;
  ChildSet children_;
  PanicLocalities panic_;
  PendingUpdate update_;
  std::set<ChildName> running_;  ///< The names of children_.
  Retention retention_;          ///< Stops children of unwanted tiers after kPriorityRetention.
  Listed listed_;
  bool is_listed_ = false;  ///< A configuration has taken effect.
  HostReportPtr hosts_;
  Published published_;
  std::vector<TierPicker> tiers_;  ///< The input of shown_.
  PickerPtr shown_;
  const PickerPtr in_panic_ = make_fail_picker(panic_status());  ///< See L6.
};

}  // namespace

std::unique_ptr<Policy> make_leaf_tiers(PolicyOptions options) {
  return std::make_unique<LeafTiers>(std::move(options));
}

}  // namespace signalbox::lb
