// SPDX-License-Identifier: Apache-2.0
#include "tools/load/fault_analysis.hpp"

#include <algorithm>
#include <cmath>

#include "tools/load/call_code.hpp"

namespace signalbox::tools {
namespace {

constexpr std::int64_t kWindow = 5 * kSecondNs;
constexpr std::int64_t kWindowBins = kWindow / kLoadBinNs;
constexpr auto kSecondBins = static_cast<std::int64_t>(kBinsInSecond);
constexpr double kWithin = 1.2;
constexpr double kFinest = 1e6;  // The limit is at least this much above the baseline; ns.
constexpr double kShare = 0.99;

struct Within {
  std::uint64_t good = 0;  // Ended OK, within the limit.
  std::uint64_t all = 0;
};

Within count_within(const LoadBin& bin, double limit_ns) {
  Within counted{.good = 0, .all = bin.scheduled};
  for (const LoadBucket& bucket : bin.latencies) {
    if (static_cast<double>(LatencyHistogram::lowest_of(bucket.bucket)) <= limit_ns)
      counted.good += bucket.count;
  }
  return counted;
}

std::vector<Within> within_of(const std::vector<LoadBin>& bins, std::uint64_t baseline_p99_ns) {
  const auto baseline = static_cast<double>(baseline_p99_ns);
  const double limit = std::max(kWithin * baseline, baseline + kFinest);
  std::vector<Within> within;
  within.reserve(bins.size());
  for (const LoadBin& bin : bins)
    within.push_back(count_within(bin, limit));
  return within;
}

std::int64_t whole_bins_of(const std::vector<LoadBin>& bins, std::int64_t ran_ns) {
  return std::min<std::int64_t>(ran_ns / kLoadBinNs, static_cast<std::int64_t>(bins.size()));
}

// True if 99 % of the calls in the bins from `begin` up to `end` are within the latency limit.
bool is_within(const std::vector<Within>& within, std::int64_t begin, std::int64_t end) {
  Within sum;
  for (std::int64_t i = begin; i < end; ++i) {
    sum.good += within[static_cast<std::size_t>(i)].good;
    sum.all += within[static_cast<std::size_t>(i)].all;
  }
  return sum.all > 0 && static_cast<double>(sum.good) >= kShare * static_cast<double>(sum.all);
}

}  // namespace

void FaultAnalysis::fault_began(std::int64_t at_ns, bool is_fault) {
  Fault fault{.at_ns = at_ns, .is_fault = is_fault};
  for (const auto& [rank, last] : last_answer_) {
    // The loop runs from the best rank to the worst, so the worst rank remains.
    if (last >= at_ns - kSecondNs) fault.worst_before = rank;
  }
  faults_.push_back(fault);
  figures_.emplace_back();
}

void FaultAnalysis::ended(const EndedCall& call, std::optional<std::uint32_t> rank) {
  while (!recent_failures_.empty() && recent_failures_.front() < call.ended_ns - kSecondNs)
    recent_failures_.pop_front();
  if (is_failure(call.code)) {
    failed(call);
    return;
  }
  note_session(call);
  if (rank) answered(call, *rank);
}

// Whether answers at `now_ns` count for a later fault, because one began a second or more after
// `fault`.
bool FaultAnalysis::is_over(std::size_t fault, std::int64_t now_ns) const {
  return std::ranges::any_of(faults_, [&](const Fault& later) {
    return later.is_fault && later.at_ns >= faults_[fault].at_ns + kSecondNs &&
           later.at_ns <= now_ns;
  });
}

std::optional<std::size_t> FaultAnalysis::blamed(const EndedCall& call) const {
  std::optional<std::size_t> before;
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    if (!faults_[i].is_fault || faults_[i].at_ns > call.ended_ns) continue;
    if (faults_[i].at_ns >= call.due_ns) return i;
    before = i;
  }
  return before;
}

void FaultAnalysis::failed(const EndedCall& call) {
  recent_failures_.push_back(call.ended_ns);
  if (const auto fault = blamed(call)) ++figures_[*fault].lost;
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    if (faults_[i].failed_back && call.ended_ns <= *faults_[i].failed_back + kSecondNs)
      ++figures_[i].failback_errors;
  }
}

void FaultAnalysis::answered(const EndedCall& call, std::uint32_t rank) {
  last_answer_[rank] = std::max(last_answer_[rank], call.ended_ns);
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    Fault& fault = faults_[i];
    if (!fault.is_fault || call.ended_ns < fault.at_ns) continue;
    const bool is_next = !fault.worst_before || rank > *fault.worst_before;
    if (!fault.next_answered && is_next && !is_over(i, call.ended_ns)) {
      fault.next_answered = call.ended_ns;
      figures_[i].first_success_ns = call.ended_ns - fault.at_ns;
    } else if (fault.next_answered && !fault.failed_back && !is_next &&
               call.sent_ns > *fault.next_answered) {
      fault.failed_back = call.ended_ns;
      for (const std::int64_t failure : recent_failures_) {
        if (failure > *fault.next_answered) ++figures_[i].failback_errors;
      }
    }
  }
}

void FaultAnalysis::note_session(const EndedCall& call) {
  if (call.session < 0 || static_cast<std::size_t>(call.session) >= sessions_.size()) return;
  Session& session = sessions_[static_cast<std::size_t>(call.session)];
  const bool has_moved = session.endpoint && *session.endpoint != call.endpoint;
  session.endpoint = call.endpoint;
  if (!has_moved) return;
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    if (faults_[i].is_fault && faults_[i].at_ns <= call.ended_ns) last = i;
  }
  if (!last || session.counted_for == last) return;
  session.counted_for = last;
  ++figures_[*last].sessions_moved;
}

std::uint64_t baseline_of(const std::vector<LoadBin>& bins, std::int64_t at_ns) {
  const auto end = static_cast<std::size_t>(std::max<std::int64_t>(0, at_ns / kLoadBinNs));
  const std::size_t begin = end > kWindowBins ? end - kWindowBins : 0;
  LatencyHistogram before;
  for (std::size_t i = begin; i < end && i < bins.size(); ++i) {
    for (const LoadBucket& bucket : bins[i].latencies)
      before.record_many(LatencyHistogram::highest_of(bucket.bucket), bucket.count);
  }
  return before.percentile(99);
}

std::optional<std::int64_t> recovery_of(const std::vector<LoadBin>& bins,
                                        std::int64_t at_ns,
                                        std::int64_t ran_ns,
                                        std::uint64_t baseline_p99_ns) {
  if (baseline_p99_ns == 0) return std::nullopt;
  const std::vector<Within> within = within_of(bins, baseline_p99_ns);
  const std::int64_t whole_bins = whole_bins_of(bins, ran_ns);
  for (std::int64_t i = at_ns / kLoadBinNs; i + kWindowBins <= whole_bins; ++i) {
    if (is_within(within, i, i + kWindowBins))
      return std::max<std::int64_t>(0, i * kLoadBinNs - at_ns);
  }
  return std::nullopt;
}

Unrecovered why_unrecovered(const std::vector<LoadBin>& bins,
                            std::int64_t at_ns,
                            std::int64_t ran_ns,
                            std::uint64_t baseline_p99_ns) {
  if (baseline_p99_ns == 0) return Unrecovered::kNoBaseline;
  const std::int64_t whole_bins = whole_bins_of(bins, ran_ns);
  if (at_ns / kLoadBinNs + kWindowBins > whole_bins) return Unrecovered::kTooShort;
  const bool is_good_at_end =
      is_within(within_of(bins, baseline_p99_ns), whole_bins - kSecondBins, whole_bins);
  return is_good_at_end ? Unrecovered::kTooShort : Unrecovered::kNever;
}

}  // namespace signalbox::tools
