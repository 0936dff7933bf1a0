// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/pick_first.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "lb/pickers.hpp"
#include "lb/policy/pick_first_core.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

std::vector<const Endpoint*> all_endpoints(const Endpoints& slice) {
  std::vector<const Endpoint*> endpoints;
  for (const Priority& priority : slice.priorities) {
    for (const LocalityPtr& locality : priority.localities) {
      for (const Endpoint& endpoint : locality->endpoints)
        endpoints.push_back(&endpoint);
    }
  }
  return endpoints;
}

// Fisher and Yates. The order is the seed's alone, so that an update that changes nothing also
// leaves the order alone.
void shuffle(std::vector<const Endpoint*>& endpoints, std::uint64_t seed) {
  for (std::size_t left = endpoints.size(); left > 1; --left)
    std::swap(endpoints[left - 1], endpoints[draw_below(seed, Salt::kEndpoint, left, left)]);
}

// A62 shuffles endpoints; the addresses of one endpoint keep their order (A61).
std::vector<Address> flatten(const EndpointsPtr& slice, bool shuffled, std::uint64_t seed) {
  if (slice == nullptr) return {};
  std::vector<const Endpoint*> endpoints = all_endpoints(*slice);
  if (shuffled) shuffle(endpoints, seed);
  std::vector<Address> addresses;
  for (const Endpoint* endpoint : endpoints)
    addresses.insert(addresses.end(), endpoint->addresses.begin(), endpoint->addresses.end());
  return addresses;
}

class PickFirstPolicy final : public Policy {
 public:
  PickFirstPolicy(const PickFirstConfig& config, PolicyContext context)
      : config_(config), context_(std::move(context)) {}

  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    LbEffects effects;
    std::visit(Overloaded{
                   [&](const ConfigUpdated& update) { configure(update, effects); },
                   [&](const SubchannelStateChanged& change) { first_.observe(change, effects); },
                   [&](const IdleExitRequested&) { first_.exit_idle(effects); },
                   [&](const PickAsked&) { first_.exit_idle(effects); },
                   // A leaf has no children; pick_first has no timers and builds at once.
                   [](const auto&) {},
               },
               event);
    publish_changes(effects);
    report_applied(effects);
    return effects;
  }

 private:
  struct Published {
    ConnectivityState state;
    absl::Status status;
    ConnectionPtr connection;

    friend bool operator==(const Published&, const Published&) = default;
  };

  void configure(const ConfigUpdated& update, LbEffects& effects) {
    if (update.config != nullptr) {
      const auto* config = std::get_if<PickFirstConfig>(update.config.get());
      SIGNALBOX_INVARIANT(config != nullptr, "pick_first is configured as pick_first");
      config_ = *config;
    }
    generation_ = update.generation;
    owes_applied_ = true;
    first_.update(flatten(update.endpoints, config_.shuffle_address_list, context_.seed), effects);
  }

  void publish_changes(LbEffects& effects) {
    if (generation_ == 0) return;
    Published now{first_.state(), first_.status(), first_.connection()};
    if (published_ == now) return;
    effects.push_back(Publish{now.state, now.status, make_picker(now), generation_});
    published_ = std::move(now);
  }

  void report_applied(LbEffects& effects) {
    if (!owes_applied_ || !first_.heard_all()) return;
    owes_applied_ = false;
    effects.push_back(ReportApplied{generation_});
  }

  PickerPtr make_picker(const Published& now) const {
    switch (now.state) {
      case ConnectivityState::kReady:
        return make_connection_picker(now.connection);
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
  PickFirst first_{PickFirst::WhenLost::kGoIdle};
  std::optional<Published> published_;
};

}  // namespace

std::unique_ptr<Policy> make_pick_first(const PickFirstConfig& config, PolicyContext context) {
  return std::make_unique<PickFirstPolicy>(config, std::move(context));
}

}  // namespace signalbox::lb
