// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/endpoint_trackers.hpp"

#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "lb/trace.hpp"
#include "messages/each_address.hpp"

namespace signalbox::lb {
namespace {

class EndpointTracker final : public CallTracker {
 public:
  explicit EndpointTracker(EndpointCallsPtr calls) : calls_(std::move(calls)) {}

  void ended(const CallEnd& end) const noexcept override {
    if (end.code) calls_->add(place_of_code(*end.code), 1);
  }

 private:
  const EndpointCallsPtr calls_;
};

class EndpointCountingPicker final : public Picker {
 public:
  EndpointCountingPicker(PickerPtr child, EndpointTrackersPtr trackers)
      : child_(std::move(child)), trackers_(std::move(trackers)) {}

  const SessionHint* session_hint() const override { return child_.session_hint(); }

  PickResult pick(const PickArgs& args) const override { return decide(args, Silent{}); }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    PickResult result = child_.ask(args, sink);
    const auto* const complete = std::get_if<Complete>(&result.outcome);
    if (complete == nullptr || complete->connection == nullptr) return result;
    result.trackers.add(trackers_->of(complete->connection->address()));
    return result;
  }

  ChildPicker child_;
  EndpointTrackersPtr trackers_;
};

}  // namespace

EndpointTrackers::EndpointTrackers(const ClusterName& cluster,
                                   const EndpointsPtr& endpoints,
                                   EndpointCounters& counters,
                                   const std::shared_ptr<Retirement>& retirement,
                                   const EndpointTrackers* before)
    : others_(before != nullptr
                  ? before->others_
                  : make_tracked<EndpointTracker>(retirement, counters.other_endpoints(cluster))) {
  if (endpoints == nullptr) return;
  const auto add = [&](const Address& address, std::size_t /*priority*/) {
    if (by_address_.contains(address)) return;
    if (before != nullptr) {
      const auto known = before->by_address_.find(address);
      if (known != before->by_address_.end()) {
        by_address_.emplace(address, known->second);
        return;
      }
    }
    if (auto calls = counters.endpoint(cluster, address))
      by_address_.emplace(address, make_tracked<EndpointTracker>(retirement, std::move(calls)));
  };
  each_address(*endpoints, add);
}

PickerPtr make_endpoint_counting_picker(PickerPtr child, EndpointTrackersPtr trackers) {
  return std::make_shared<const EndpointCountingPicker>(std::move(child), std::move(trackers));
}

}  // namespace signalbox::lb
