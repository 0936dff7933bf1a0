// SPDX-License-Identifier: Apache-2.0
//
// FakeLoadStreams — endpoints that report their load on streams, in memory. Runs on one thread.
//
//   policy actor ─▶ watch ─▶ [FakeLoadStreams] ─▶ a report each period ─▶ listener
//                                  └ faults: reports lie, jump, come late, stop
//
// Without faults each endpoint reports its true_load(). The fake complains if a listener watches a
// connection twice with the same period: then a policy has forgotten its earlier watch.

#pragma once

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/io/load_streams.hpp"
#include "tests/support/fake_chance.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_complaints.hpp"
#include "tests/support/fake_faults.hpp"

namespace signalbox::testing {

/// The load that an endpoint reports on a stream when no fault is active. The last digit of its
/// host decides between three loads.
inline LoadReport true_load(const Address& address) {
  const std::string host = address.str().substr(0, address.str().rfind(':'));
  return {.cpu_utilization = 0.25 * (1 + (host.back() - '0') % 3), .qps = 100};
}

/// Makes a report false: nonsense (kReportLies), or a thousand times too great or too small
/// (kReportJumps). LRS passes on no value that it changes.
inline void spoil_report(LoadReport& report, FakeFaults& faults) {
  if (faults.fires(Fault::kReportLies)) {
    FakeChance& dice = faults.dice(Fault::kReportLies);
    using Limits = std::numeric_limits<double>;
    const std::vector<double> lies{
        Limits::quiet_NaN(), Limits::infinity(), -1, 0, Limits::max(), Limits::denorm_min()};
    report.qps = dice.one_of(lies);
    report.eps = dice.one_of(lies);
  }
  if (faults.fires(Fault::kReportJumps))
    report.qps *= faults.dice(Fault::kReportJumps).percent(50) ? 1e3 : 1e-3;
}

class FakeLoadStreams final : public actors::LoadStreams {
 public:
  FakeLoadStreams(FakeClock& clock, FakeFaults& faults, FakeComplaints& complaints)
      : clock_(clock), faults_(faults), complaints_(complaints) {}

  std::unique_ptr<Watch> watch(const ConnectionPtr& connection,
                               Duration period,
                               LoadListenerPtr listener) override {
    auto wish = std::make_shared<Wish>(
        Wish{connection.get(), connection->address(), period, std::move(listener)});
    for (const std::weak_ptr<Wish>& other : wishes_) {
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
    for (const std::weak_ptr<Wish>& wish : wishes_)
      living += wish.expired() ? 0 : 1;
    return living;
  }

  /// The reports so far.
  std::size_t reports() const { return reports_; }

 private:
  struct Wish {
    const Connection* connection = nullptr;  // Only compared.
    Address address;
    Duration period{};
    LoadListenerPtr listener;
    Instant stopped_until{};
  };

  struct FakeWatch final : Watch {
    explicit FakeWatch(std::shared_ptr<Wish> wanted) : wish(std::move(wanted)) {}

    const std::shared_ptr<Wish> wish;
  };

  void report_later(const std::weak_ptr<Wish>& wish) {
    const auto living = wish.lock();
    clock_.after(living->period, [this, wish] {
      const auto found = wish.lock();
      if (found == nullptr) {
        std::erase_if(wishes_, [](const auto& one) { return one.expired(); });
        return;
      }
      report(found);
      report_later(wish);
    });
  }

  void report(const std::shared_ptr<Wish>& wish) {
    using std::chrono::seconds;
    if (faults_.fires(Fault::kReportStops)) {
      wish->stopped_until =
          clock_.now() + faults_.dice(Fault::kReportStops).between(seconds(1), seconds(40));
    }
    if (faults_.has(Fault::kReportStops) && clock_.now() < wish->stopped_until) return;
    LoadReport load = true_load(wish->address);
    spoil_report(load, faults_);
    if (!faults_.fires(Fault::kReportLate)) return tell(*wish, load);
    clock_.after(faults_.dice(Fault::kReportLate).between(seconds(1), seconds(20)),
                 [this, weak = std::weak_ptr<Wish>(wish), load] {
                   if (const auto found = weak.lock()) tell(*found, load);
                 });
  }

  void tell(const Wish& wish, const LoadReport& load) {
    ++reports_;
    wish.listener->reported(load, clock_.now());
  }

  FakeClock& clock_;
  FakeFaults& faults_;
  FakeComplaints& complaints_;
  std::vector<std::weak_ptr<Wish>> wishes_;
  std::size_t reports_ = 0;
};

}  // namespace signalbox::testing
