// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/override_host.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory_resource>
#include <optional>
#include <utility>

#include "lb/config_of.hpp"
#include "lb/health/host_count.hpp"
#include "lb/tree/override_host_picker.hpp"
#include "lb/tree/pass_through.hpp"

namespace signalbox::lb {
namespace {

/// Moves DRAINING endpoints from those that get calls to the unhealthy ones. Remembers the
/// localities that it made, so that an unchanged locality is the same pointer again.
class DrainingFilter {
 public:
  EndpointsPtr filter(const EndpointsPtr& endpoints) {
    if (endpoints == nullptr) return nullptr;
    std::map<LocalityPtr, Parts> used;
    auto filtered = std::make_shared<Endpoints>(*endpoints);
    for (Priority& priority : filtered->priorities) {
      for (LocalityPtr& locality : priority.localities) {
        if (std::ranges::none_of(locality->endpoints, is_draining)) continue;
        const Parts& parts = used[locality] = divided(locality);
        locality = parts.rest;
        priority.unhealthy.push_back(parts.draining);
      }
    }
    made_ = std::move(used);
    if (made_.empty()) return endpoints;
    return filtered;
  }

 private:
  struct Parts {
    LocalityPtr rest;
    LocalityPtr draining;
  };

  Parts divided(const LocalityPtr& locality) const {
    if (const auto known = made_.find(locality); known != made_.end()) return known->second;
    auto rest = std::make_shared<Locality>(*locality);
    auto draining = std::make_shared<Locality>(*locality);
    std::erase_if(rest->endpoints, is_draining);
    std::erase_if(draining->endpoints, std::not_fn(is_draining));
    return {rest, draining};
  }

  std::map<LocalityPtr, Parts> made_;  ///< Keys: localities as received.
};

class OverrideHost final : public PassThrough {
 public:
  explicit OverrideHost(PolicyContext context)
      : asks_(std::move(context.asks)),
        memory_(context.options.session_memory),
        caller_(std::move(context.options.caller)) {}

 private:
  Given give(const ConfigUpdated& update, Instant /*now*/, LbEffects& effects) override {
    const auto& own = config_of<OverrideHostConfig>(update);
    own.sessions ? adopt(own, update.endpoints, effects) : forget(own, effects);
    return {own.child, draining_.filter(update.endpoints)};
  }

  void adopt(const OverrideHostConfig& own, const EndpointsPtr& endpoints, LbEffects& effects) {
    const HostTablePtr before =
        std::exchange(table_,
                      std::make_shared<const HostTable>(
                          endpoints, own.override_host_status, table_.get(), own.cluster, memory_));
    HostStates left = std::exchange(states_, HostStates(table_->size()));
    for (std::size_t at = 0; before != nullptr && at < table_->size(); ++at) {
      const auto place = before->find((*table_)[at].address.str());
      // A host that was not allowed before has no state: the subchannel map reports allowed hosts
      // only.
      if (place && (*table_)[at].allowed) states_[at] = std::move(left[*place]);
    }
    slots_ = make_host_slots(table_, states_, caller_);
    keep({own.idle_timeout, table_->marks()}, effects);
  }

  void forget(const OverrideHostConfig& own, LbEffects& effects) {
    if (table_ == nullptr) return;
    table_ = nullptr;
    states_.clear();
    slots_ = nullptr;
    keep({own.idle_timeout, nullptr}, effects);
  }

  // Sends KeepSessions to the subchannel map, unless the last one was equal. Sending an equal one
  // again would have no effect: not even the next sweep would come earlier (A75-32).
  void keep(KeepSessions order, LbEffects& effects) {
    const bool is_same = kept_.marks != nullptr && order.marks != nullptr &&
                         kept_.idle_timeout == order.idle_timeout && *kept_.marks == *order.marks;
    if (is_same) return;
    kept_ = order;
    effects.push_back(std::move(order));
  }

  // --- the states of hosts ---

  void on_subchannel(const SubchannelStateChanged& report, LbEffects& effects) override {
    set_state(report.address, report, effects);
  }

  void on_gone(const SubchannelGone& gone, LbEffects& effects) override {
    set_state(gone.address, std::nullopt, effects);
  }

  // Records a host's state, and asks for a new picker at the end of the burst (RebuildSoon). The
  // picker is needed after every event, because a picker sends each ask only once, and that ask may
  // have been lost.
  void set_state(const Address& address,
                 std::optional<SubchannelStateChanged> state,
                 LbEffects& effects) {
    const auto place = place_of(address);
    if (!place) return;
    states_[*place] = std::move(state);
    slots_are_old_ = true;
    if (!std::exchange(rebuild_ordered_, true)) effects.push_back(RebuildSoon{});
  }

  void on_rebuild() override {
    rebuild_ordered_ = false;
    if (std::exchange(slots_are_old_, false) && table_ != nullptr)
      slots_ = make_host_slots(table_, states_, caller_);
  }

  // Handles an ask: acquires and connects the host that a call waits for. If the table no longer
  // has the host, the ask is dropped: with the newest picker the call does not wait for it
  // (A75-38).
  void on_ask(const PickAsk& ask, LbEffects& effects) override {
    const auto place = place_of(ask.address);
    if (!place) return;
    const auto& state = states_[*place];
    if (!state) effects.push_back(AcquireSubchannel{ask.address});
    if (!state || state->state == ConnectivityState::kIdle) effects.push_back(Connect{ask.address});
  }

  /// The index of the address in the table; nullopt: sessions may not stay on this host, or it is
  /// unknown.
  std::optional<std::size_t> place_of(const Address& address) const {
    if (table_ == nullptr) return std::nullopt;
    const auto place = table_->find(address.str());
    return place && (*table_)[*place].allowed ? place : std::nullopt;
  }

  // --- the picker ---

  PickerPtr show(const PickerPtr& child) override {
    if (slots_ == nullptr) return child;
    if (child == shown_child_ && slots_ == shown_slots_) return shown_;
    shown_child_ = child;
    shown_slots_ = slots_;
    shown_ = make_override_host_picker(child, slots_, asks_);
    return shown_;
  }

  const std::shared_ptr<const AskTarget> asks_;
  std::pmr::memory_resource* const memory_;  ///< For SessionMarks and seats (host_slots.hpp).
  const LocalityName caller_;
  DrainingFilter draining_;
  HostTablePtr table_;  ///< Null: no call can belong to a session.
  HostStates states_;   ///< The states of the hosts of table_, in its order.
  /// Made from table_ and states_ at the last update or RebuildDue; null if table_ is null.
  HostSlotsPtr slots_;
  KeepSessions kept_;  ///< The KeepSessions that was sent last.
  bool slots_are_old_ = false;
  bool rebuild_ordered_ = false;
  // The picker published last, and its inputs.
  PickerPtr shown_child_;
  HostSlotsPtr shown_slots_;
  PickerPtr shown_;
};

}  // namespace

std::unique_ptr<Policy> make_override_host(PolicyContext context) {
  return std::make_unique<OverrideHost>(std::move(context));
}

}  // namespace signalbox::lb
