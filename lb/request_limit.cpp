// SPDX-License-Identifier: Apache-2.0
#include "lb/request_limit.hpp"

#include "absl/strings/str_cat.h"

#include "messages/cluster_settings.hpp"

namespace signalbox::lb {

// --- RequestLimit ---

bool RequestLimit::take_one(std::atomic<std::int64_t>& tokens) noexcept {
  std::int64_t kept = tokens.load(std::memory_order_relaxed);
  while (kept > 0) {
    if (tokens.compare_exchange_weak(
            kept, kept - 1, std::memory_order_acquire, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// A token that this thread's stripe keeps (see the header) is used only if `out_`, the number of
// tokens taken, is at most the limit: the limit may have fallen since the stripe took that token.
bool RequestLimit::take(std::uint32_t most) const noexcept {
  std::atomic<std::int64_t>& mine = kept_[this_thread_stripe()].tokens;
  std::int64_t out = out_.load(std::memory_order_acquire);
  if (out <= std::int64_t{most} && take_one(mine)) return true;
  while (true) {
    const std::int64_t wanted = is_far(out, most) ? kBatch : 1;
    if (out + wanted <= std::int64_t{most}) {
      if (!out_.compare_exchange_weak(out, out + wanted, std::memory_order_acq_rel)) continue;
      if (wanted > 1) mine.fetch_add(wanted - 1, std::memory_order_release);
      return true;
    }
    const bool found = call_in();
    out = out_.load(std::memory_order_acquire);
    if (!found && out >= std::int64_t{most}) return false;
  }
}

void RequestLimit::put_back(std::uint32_t most) const noexcept {
  if (!is_far(out_.load(std::memory_order_acquire), most)) {
    out_.fetch_sub(1, std::memory_order_acq_rel);
    return;
  }
  std::atomic<std::int64_t>& mine = kept_[this_thread_stripe()].tokens;
  std::int64_t kept = mine.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (kept <= 2 * kBatch) return;
  if (mine.compare_exchange_strong(kept, kept - kBatch, std::memory_order_acq_rel))
    out_.fetch_sub(kBatch, std::memory_order_acq_rel);
}

// Takes back the tokens that stripes (groups of threads) keep for later calls. Returns whether
// there were any.
bool RequestLimit::call_in() const noexcept {
  std::int64_t found = 0;
  for (Kept& kept : kept_) {
    if (kept.tokens.load(std::memory_order_relaxed) > 0)
      found += kept.tokens.exchange(0, std::memory_order_acq_rel);
  }
  if (found > 0) out_.fetch_sub(found, std::memory_order_acq_rel);
  return found > 0;
}

std::int64_t RequestLimit::in_flight() const noexcept {
  std::int64_t kept = 0;
  for (const Kept& stripe : kept_)
    kept += stripe.tokens.load(std::memory_order_acquire);
  return out_.load(std::memory_order_acquire) - kept;
}

// --- RequestLimits ---

RequestLimitPtr RequestLimits::of(const ClusterName& cluster, const std::string& service_name) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const RequestLimit>& known = limits_[{cluster, service_name}];
  if (RequestLimitPtr living = known.lock()) return living;
  auto fresh = std::make_shared<const RequestLimit>();
  known = fresh;
  forget_unheld();
  return fresh;
}

// Removes the entries of destroyed RequestLimits. Searches only when the table has doubled since
// the last search, so the cost per entry is small.
void RequestLimits::forget_unheld() {
  if (limits_.size() < tidy_at_) return;
  std::erase_if(limits_, [](const auto& entry) { return entry.second.expired(); });
  tidy_at_ = 2 * limits_.size() + 16;
}

std::size_t RequestLimits::size() {
  const std::lock_guard lock(mutex_);
  return limits_.size();
}

const std::shared_ptr<RequestLimits>& RequestLimits::of_process() {
  static const auto shared = std::make_shared<RequestLimits>();
  return shared;
}

// --- RequestGate ---

RequestGate::RequestGate(RequestLimitPtr calls,
                         std::uint32_t most,
                         const ClusterName& cluster,
                         EventCountPtr refused,
                         EventCountPtr reported)
    : calls_(std::move(calls)),
      most_(most),
      refusal_(
          absl::UnavailableError(absl::StrCat("cluster ",
                                              cluster.str(),
                                              ": circuit breaker: ",
                                              most,
                                              " calls in flight, the ",
                                              most == kDefaultMaxRequests ? "default" : "limit",
                                              "; circuit_breakers.thresholds.max_requests "
                                              "raises it"))),
      refused_(std::move(refused)),
      reported_(std::move(reported)) {}

absl::Status RequestGate::refuse() const {
  if (refused_ != nullptr) refused_->add(0, 1);
  if (reported_ != nullptr) reported_->add(0, 1);
  return refusal_;
}

}  // namespace signalbox::lb
