// SPDX-License-Identifier: Apache-2.0
#include "actors/heap_trimmer.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace signalbox::actors {

void TrimPlan::record_many(Instant now) {
  done_ = 0;
  const Instant first = now + kPauses.front();
  const Instant planned = last_ ? std::max(first, *last_ + kLeastPause) : first;
  // A trim that is already planned is not delayed when more subchannels end.
  next_ = next_ ? std::min(*next_, planned) : planned;
}

void TrimPlan::record_trim(Instant now) {
  last_ = now;
  next_ = std::nullopt;
  if (++done_ < kPauses.size()) next_ = now + kPauses.at(done_);
}

HeapTrimmer::HeapTrimmer(std::function<void()> trim, std::function<void()> prepare)
    : trim_(std::move(trim)), prepare_(std::move(prepare)) {}

HeapTrimmer::~HeapTrimmer() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void HeapTrimmer::record_end() {
  const std::uint64_t ended = ended_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (ended % TrimPlan::kMany != 0) return;
  const std::lock_guard lock(mutex_);
  if (is_stopping_) return;
  plan_.record_many(std::chrono::steady_clock::now());
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void HeapTrimmer::run() {
  prepare_();
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    const auto next = plan_.next_trim();
    if (!next) {
      changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() < *next) {
      changed_.wait_until(lock, *next);
    } else {
      lock.unlock();
      trim_();
      lock.lock();
      plan_.record_trim(std::chrono::steady_clock::now());
    }
  }
}

void HeapTrimmer::lower_threshold() {
#if defined(__GLIBC__)
  // Only the first call sets the threshold, so that the program may change it afterwards.
  static const int kIsSet = ::mallopt(M_TRIM_THRESHOLD, kMostAtTop);
  static_cast<void>(kIsSet);
#endif
}

void HeapTrimmer::trim_heap() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace signalbox::actors
