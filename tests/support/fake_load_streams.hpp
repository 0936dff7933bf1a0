// SPDX-License-Identifier: Apache-2.0
//
// FakeLoadStreams — endpoints that report their load on streams, in memory. Runs on one thread.
//
//   policy actor ─▶ watch ─▶ [FakeLoadStreams] ─▶ a report each period ─▶ listener
//
// All endpoints report the same load, so calls are spread as if endpoints had no weights. The fake
// complains if a listener watches a connection twice with the same period: then a policy has
// forgotten its earlier watch.

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "actors/io/load_streams.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_complaints.hpp"

namespace signalbox::testing {

class FakeLoadStreams final : public actors::LoadStreams {
 public:
  FakeLoadStreams(FakeClock& clock, FakeComplaints& complaints)
      : clock_(clock), complaints_(complaints) {}

  std::unique_ptr<Watch> watch(const ConnectionPtr& connection,
                               Duration period,
                               LoadListenerPtr listener) override {
    auto wish = std::make_shared<const Wish>(Wish{connection.get(), period, std::move(listener)});
    for (const std::weak_ptr<const Wish>& other : wishes_) {
      const auto known = other.lock();
      if (known == nullptr || known->listener != wish->listener) continue;
      complaints_.require(known->connection != wish->connection || known->period != wish->period,
                          "a listener watches a connection once",
                          connection->address().str());
    }
    wishes_.push_back(wish);
    report_later(wish);
    return std::make_unique<FakeWatch>(std::move(wish));
  }

  /// The watches that have not ended.
  std::size_t watches() const {
    std::size_t living = 0;
    for (const std::weak_ptr<const Wish>& wish : wishes_)
      living += wish.expired() ? 0 : 1;
    return living;
  }

  /// The reports so far.
  std::size_t reports() const { return reports_; }

 private:
  struct Wish {
    const Connection* connection = nullptr;  // Only compared.
    Duration period{};
    LoadListenerPtr listener;
  };

  struct FakeWatch final : Watch {
    explicit FakeWatch(std::shared_ptr<const Wish> wanted) : wish(std::move(wanted)) {}

    const std::shared_ptr<const Wish> wish;
  };

  void report_later(const std::weak_ptr<const Wish>& wish) {
    const auto living = wish.lock();
    clock_.after(living->period, [this, wish] {
      const auto found = wish.lock();
      if (found == nullptr) {
        std::erase_if(wishes_, [](const auto& one) { return one.expired(); });
        return;
      }
      ++reports_;
      found->listener->reported({.cpu_utilization = 0.5, .qps = 100}, clock_.now());
      report_later(wish);
    });
  }

  FakeClock& clock_;
  FakeComplaints& complaints_;
  std::vector<std::weak_ptr<const Wish>> wishes_;
  std::size_t reports_ = 0;
};

}  // namespace signalbox::testing
