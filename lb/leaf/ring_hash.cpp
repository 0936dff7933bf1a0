// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/ring_hash.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "lb/config_of.hpp"
#include "lb/leaf/hash_items.hpp"
#include "lb/leaf/petiole.hpp"
#include "lb/leaf/ring_hash_picker.hpp"
#include "lb/pick/pickers.hpp"

namespace signalbox::lb {
namespace {

class RingHash final : public Petiole {
 public:
  explicit RingHash(PolicyContext context)
      : Petiole("ring_hash", std::move(context), EndpointSet::Connects::kWhenAsked) {}

 private:
  bool configure(const ConfigUpdated& update) override {
    const auto& config = config_of<RingHashConfig>(update);
    const std::uint64_t cap = context().options.ring_size_cap;
    const HashRing::Sizes sizes{std::min(config.min_ring_size, cap),
                                std::min(config.max_ring_size, cap)};
    const bool is_new = sizes != sizes_ || config.request_hash_header != header_;
    if (sizes != sizes_) ring_ = nullptr;
    sizes_ = sizes;
    header_ = config.request_hash_header;
    return is_new;
  }

  // Makes a new ring only if the list, a field of an endpoint or locality, or `sizes_` has changed
  // (I2 of ring_hash.hpp).
  void endpoints_taken(const ConfigUpdated& update, const EndpointSet::Changes& changes) override {
    if (ring_ != nullptr && !changes.list) return;
    const auto items = hash_items(
        endpoints(),
        update.endpoints,
        context().options.weighted_shuffling ? WeightRule::kShare : WeightRule::kProduct);
    ring_ = std::make_shared<const HashRing>(items, sizes_);
    for (std::size_t at = 0; at < endpoints().size(); ++at)
      endpoints().let_count(at, ring_->has_point(at));  // Without a point, no pick reaches it (I3).
  }

  // Calls may be waiting for the endpoint that changed, so a new picker is needed at once. Only a
  // new text of a failure may wait.
  PickerPace::Need need_of(const EndpointSet::Changes& changes) const override {
    if (changes.list || changes.states || changes.ready) return PickerPace::Need::kNow;
    return Petiole::need_of(changes);
  }

  // The policy's state: the first rule that fits decides (I1 of ring_hash.hpp).
  ConnectivityState state() const override {
    const std::size_t failed = endpoints().count(ConnectivityState::kTransientFailure);
    if (endpoints().count(ConnectivityState::kReady) > 0) return ConnectivityState::kReady;
    if (failed >= 2) return ConnectivityState::kTransientFailure;
    if (endpoints().count(ConnectivityState::kConnecting) > 0)
      return ConnectivityState::kConnecting;
    if (failed == 1 && endpoints().counted() > 1) return ConnectivityState::kConnecting;
    if (endpoints().count(ConnectivityState::kIdle) > 0) return ConnectivityState::kIdle;
    return ConnectivityState::kTransientFailure;
  }

  PickerPtr make_picker() override {
    if (endpoints().size() == 0) return make_fail_picker(failure());
    return std::make_shared<const RingHashPicker>(
        RingHashPicker::Parts{ring_, header_, context().asks, failure()}, endpoints());
  }

  void asked(const PickAsk& ask, LbEffects& effects) override {
    endpoints().connect(ask.address, effects);
  }

  void exit_idle(LbEffects& effects) override {
    if (state() == ConnectivityState::kIdle) connect_one(effects);
  }

  // Connects an IDLE endpoint when some have failed, and none is READY or CONNECTING: otherwise the
  // policy might stay in TRANSIENT_FAILURE. If the endpoint fails at once, the next one is
  // connected.
  void follow_up(LbEffects& effects) override {
    const auto count = [&](ConnectivityState state) { return endpoints().count(state); };
    while (count(ConnectivityState::kReady) == 0 && count(ConnectivityState::kConnecting) == 0 &&
           count(ConnectivityState::kTransientFailure) > 0 && count(ConnectivityState::kIdle) > 0) {
      connect_one(effects);
    }
  }

  // Connects the next IDLE endpoint after the one that was connected last, so that all get their
  // turn. The first place is drawn (A117): many clients would choose the same otherwise.
  void connect_one(LbEffects& effects) {
    if (!next_) next_ = draw_below(context().seed, Salt::kEndpoint, endpoints().size());
    for (std::size_t left = endpoints().size(); left > 0; --left) {
      const std::size_t at = (*next_)++ % endpoints().size();
      const EndpointSet::Member& member = endpoints()[at];
      if (!member.counts || member.state != ConnectivityState::kIdle) continue;
      return endpoints().connect(at, effects);
    }
  }

  HashRing::Sizes sizes_;
  std::string header_;
  std::shared_ptr<const HashRing> ring_;  // Its items: endpoints(), in the same order.
  std::optional<std::size_t> next_;
};

}  // namespace

std::unique_ptr<Policy> make_leaf(const RingHashConfig& /*config*/, PolicyContext context) {
  return std::make_unique<RingHash>(std::move(context));
}

}  // namespace signalbox::lb
