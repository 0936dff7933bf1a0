// SPDX-License-Identifier: Apache-2.0
//
// RequestLimit — counts the calls in flight of one cluster, from all policies and channels that
// share it. (Fault filters count active faults with one, too.)
// RequestLimits — one RequestLimit for each {cluster, EDS service} (gRFC A32, A37). Usually the
// whole process has one RequestLimits.
//
//   cluster_impl ─▶ RequestLimits::of ─▶ [RequestLimit] ◀─ RequestGate ◀─ router: enter, ended
//
//   A token allows one call in flight.
//   out_ = tokens that are out: with calls, or kept by a stripe of threads for its next calls
//          ├ far from the limit: a stripe takes kBatch at once, so that calls share no cache line
//          └ near it: one by one, and kept tokens are taken back before a call is refused
//
// A stripe is a group of threads (messages/counting/striped.hpp). The limit itself is an argument:
// each caller passes that of its configuration. Two configurations of one cluster share the count,
// but each applies its own limit. A new limit makes a new RequestGate, and does not change the
// count.
//
// Invariants
//   Q1  Calls in flight ≤ out_ ≤ the limit, at every moment, while all callers pass the same limit.
//   Q2  A call is refused only while as many calls are in flight as the limit allows. Exception:
//       the call may miss tokens that another thread is moving at that moment: it gives them back,
//       puts them into a stripe or takes them out of one.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "messages/counting/call_tracker.hpp"
#include "messages/counting/drop_counts.hpp"
#include "messages/counting/striped.hpp"
#include "messages/ids.hpp"

namespace signalbox::lb {

/// Thread-safe, lock-free.
class RequestLimit {
 public:
  /// Takes a token for one more call, if fewer than `most` calls are in flight. Returns whether it
  /// took one.
  [[gnu::hot]] bool take(std::uint32_t most) const noexcept;

  /// Gives back the token of a call that has ended.
  [[gnu::hot]] void put_back(std::uint32_t most) const noexcept;

  /// The number of calls in flight; exact while no thread takes or puts back.
  std::int64_t in_flight() const noexcept;

 private:
  /// How many tokens a stripe (a group of threads) takes at once. When a call ends and its stripe
  /// keeps more than 2 × kBatch tokens, the stripe usually puts kBatch of them back.
  static constexpr std::int64_t kBatch = 8;

  /// Whether the limit would not be exceeded even if every stripe took another batch.
  static bool is_far(std::int64_t out, std::uint32_t most) {
    return out + kBatch * static_cast<std::int64_t>(kStripes) <= std::int64_t{most};
  }

  struct alignas(kCacheLine) Kept {
    std::atomic<std::int64_t> tokens{0};
  };

  [[gnu::hot]] static bool take_one(std::atomic<std::int64_t>& tokens) noexcept;
  bool call_in() const noexcept;

  alignas(kCacheLine) mutable std::atomic<std::int64_t> out_{0};
  mutable std::array<Kept, kStripes> kept_{};
};

using RequestLimitPtr = std::shared_ptr<const RequestLimit>;

/// Thread-safe. Takes a lock, so calls never use it. Makes a RequestLimit when of() finds none for
/// the cluster and service. The RequestLimit is destroyed with its last holder.
class RequestLimits {
 public:
  /// The RequestLimit for this cluster and EDS service. `service_name` is empty for LOGICAL_DNS.
  RequestLimitPtr of(const ClusterName& cluster, const std::string& service_name);

  /// The number of entries, including those of a destroyed RequestLimit that are not removed yet.
  std::size_t size();

  /// The RequestLimits that all runtimes of the process share (A37-29).
  static const std::shared_ptr<RequestLimits>& of_process();

 private:
  void forget_unheld();

  std::mutex mutex_;
  std::map<std::pair<ClusterName, std::string>, std::weak_ptr<const RequestLimit>> limits_;
  /// When there are this many entries, those of a destroyed RequestLimit are removed.
  std::size_t tidy_at_ = 16;
};

/// Limits the calls in flight of a cluster, as one configuration says. Refused calls are dropped
/// with UNAVAILABLE. The members that every call reads are on one cache line.
class alignas(kCacheLine) RequestGate final : public CallGate {
 public:
  /// `refused` counts the calls that are refused, and so does `reported`, for the load reports;
  /// null: they are not counted.
  RequestGate(RequestLimitPtr calls,
              std::uint32_t most,
              const ClusterName& cluster,
              EventCountPtr refused,
              EventCountPtr reported = nullptr);

  [[gnu::hot]] bool enter() const noexcept override { return calls_->take(most_); }

  [[gnu::hot]] void ended(const CallEnd& /*end*/) const noexcept override {
    calls_->put_back(most_);
  }

  absl::Status refuse() const override;

  std::uint32_t limit() const override { return most_; }

  bool is_full() const override { return in_flight() >= std::int64_t{most_}; }

  /// See RequestLimit::in_flight().
  std::int64_t in_flight() const noexcept { return calls_->in_flight(); }

  /// The status of refused calls.
  const absl::Status& refusal() const { return refusal_; }

 private:
  const RequestLimitPtr calls_;
  const std::uint32_t most_;
  const absl::Status refusal_;
  const EventCountPtr refused_;
  const EventCountPtr reported_;
};

using RequestGatePtr = std::shared_ptr<const RequestGate>;

}  // namespace signalbox::lb
