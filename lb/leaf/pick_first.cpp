// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/pick_first.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "lb/health/host_count.hpp"
#include "lb/leaf/address_order.hpp"
#include "lb/leaf/pick_first_core.hpp"
#include "lb/pick/pickers.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

// Whether picks with `left` and with `right` have equal results. Localities are compared only by
// name and weight.
bool same(const ChosenEndpoint& left, const ChosenEndpoint& right) {
  if (left.tracker != right.tracker) return false;
  if (left.endpoint == nullptr || right.endpoint == nullptr) return left.endpoint == right.endpoint;
  return *left.endpoint == *right.endpoint && left.locality->name == right.locality->name &&
         left.locality->weight == right.locality->weight;
}

// The endpoint with this address; empty if the list does not have it.
ChosenEndpoint endpoint_of(const EndpointsPtr& endpoints, const Address& address) {
  if (endpoints == nullptr) return {};
  for (const Priority& priority : endpoints->priorities) {
    for (const LocalityPtr& locality : priority.localities) {
      for (const Endpoint& endpoint : locality->endpoints) {
        if (std::ranges::find(endpoint.addresses, address) != endpoint.addresses.end())
          return {locality, &endpoint, nullptr};
      }
    }
  }
  return {};
}

class PickFirstPolicy final : public Policy {
 public:
  PickFirstPolicy(const PickFirstConfig& config, PolicyContext context)
      : config_(config),
        context_(std::move(context)),
        first_(PickFirst::WhenLost::kGoIdle,
               context_.options.connection_attempt_delay,
               PickFirst::Health::kIgnored) {}

  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    LbEffects effects;
    std::visit(Overloaded{
                   [&](const ConfigUpdated& update) { configure(update, effects); },
                   [&](const SubchannelStateChanged& change) { observe(change, effects); },
                   [&](const TimerFired& fired) { first_.fire(fired.timer, effects); },
                   [&](const IdleExitRequested&) { first_.exit_idle(effects); },
                   [&](const PickAsked&) { first_.exit_idle(effects); },
                   // A leaf has no children and keeps no sessions, and pick_first publishes its
                   // pickers at once. So no other event concerns it.
                   [](const auto&) {},
               },
               event);
    publish_changes(effects);
    report_applied(effects);
    return effects;
  }

 private:
  struct Shown {
    ConnectivityState state;
    absl::Status status;
    ConnectionPtr connection;
    ChosenEndpoint chosen;
    HostTally fit;
    HostTally all;

    friend bool operator==(const Shown& left, const Shown& right) {
      return left.state == right.state && left.status == right.status &&
             left.connection == right.connection && same(left.chosen, right.chosen) &&
             left.fit == right.fit && left.all == right.all;
    }
  };

  void configure(const ConfigUpdated& update, LbEffects& effects) {
    if (update.config != nullptr) {
      const auto* config = std::get_if<PickFirstConfig>(update.config.get());
      SIGNALBOX_INVARIANT(config != nullptr, "pick_first is configured as pick_first");
      config_ = *config;
    }
    generation_ = update.generation;
    owes_applied_ = true;
    endpoints_ = update.endpoints;
    all_ = tally(endpoints_);
    first_.update(endpoints_ == nullptr ? std::vector<Address>()
                                        : flatten(*endpoints_, order(), context_.seed),
                  effects);
  }

  Shuffle order() const {
    if (!config_.shuffle_address_list) return Shuffle::kNone;
    return context_.options.weighted_shuffling ? Shuffle::kByWeight : Shuffle::kEvenly;
  }

  void observe(const SubchannelStateChanged& change, LbEffects& effects) {
    first_.observe(change, effects);
    if (change.connection == nullptr || change.connection != first_.connection()) return;
    tracker_ = change.tracker;
    judged_unfit_ = !change.healthy;
  }

  Shown present() const {
    Shown now{first_.state(), first_.status(), first_.connection(), {}, all_, all_};
    if (now.state == ConnectivityState::kTransientFailure &&
        context_.options.unreachable_is_unhealthy)
      now.fit = {};
    if (now.connection == nullptr) return now;
    now.chosen = endpoint_of(endpoints_, now.connection->address());
    now.chosen.tracker = tracker_;
    if (judged_unfit_ && now.chosen.endpoint != nullptr)
      take(now.fit, {1, now.chosen.endpoint->weight});
    return now;
  }

  void publish_changes(LbEffects& effects) {
    if (generation_ == 0) return;
    Shown now = present();
    if (shown_ == now) return;
    const bool is_count_alone =
        shown_ && shown_->state == now.state && shown_->status == now.status &&
        shown_->connection == now.connection && same(shown_->chosen, now.chosen);
    if (!is_count_alone) picker_ = make_picker(now);
    effects.push_back(
        Publish{now.state, now.status, picker_, generation_, fit_of(now.fit, now.all)});
    shown_ = std::move(now);
  }

  void report_applied(LbEffects& effects) {
    if (!owes_applied_ || !first_.heard_all()) return;
    owes_applied_ = false;
    effects.push_back(ReportApplied{generation_});
  }

  PickerPtr make_picker(const Shown& now) const {
    switch (now.state) {
      case ConnectivityState::kReady:
        return make_connection_picker(
            now.connection,
            now.chosen,
            now.chosen.locality == nullptr
                ? CallZone::kUnknown
                : zone_of(now.chosen.locality->name, context_.options.caller));
      case ConnectivityState::kTransientFailure:
        return make_fail_picker(now.status);
      case ConnectivityState::kIdle:
        return make_ask_picker(context_.asks, PickAsk{PickAsk::Kind::kExitIdle, {}});
      case ConnectivityState::kConnecting:
        break;
    }
    return make_queue_picker();
  }

  PickFirstConfig config_;
  PolicyContext context_;
  Generation generation_ = 0;
  bool owes_applied_ = false;
  EndpointsPtr endpoints_;
  PickFirst first_;
  HostTally all_;           // The endpoints but DRAINING ones, and their weight.
  CallTrackerPtr tracker_;  // The tracker of the connection.
  // Outlier detection or a health check finds the endpoint in use unfit.
  bool judged_unfit_ = false;
  PickerPtr picker_;            // The picker published last.
  std::optional<Shown> shown_;  // The last publication.
};

}  // namespace

std::unique_ptr<Policy> make_leaf(const PickFirstConfig& config, PolicyContext context) {
  return std::make_unique<PickFirstPolicy>(config, std::move(context));
}

}  // namespace signalbox::lb
