// SPDX-License-Identifier: Apache-2.0
//
// PagePool — memory for data that calls of sessions access at random: the hosts' seats (results of
// picks) and SessionMarks (when a session used a host last).
//
//   PolicyOptions::session_memory ─▶ [PagePool] ─▶ pages of 2 MiB, from `pages`
//
// A call's session may be on any of thousands of hosts. If the hosts' data were spread over many
// small pages, most picks would miss not only the cache but also the TLB, the CPU's cache of page
// addresses. A page of 2 MiB has the data of thousands of hosts, and needs one entry of the TLB.
//
// The pool reuses freed memory. It gives memory back to `pages` only when it is destroyed; pieces
// of more than 4 MiB are given back as soon as they are freed.

#pragma once

#include <cstddef>
#include <memory_resource>
#include <mutex>

namespace signalbox::lb {

/// Thread-safe; takes a lock, so it is never used during a pick. One pool serves all policies of a
/// process.
class PagePool final : public std::pmr::memory_resource {
 public:
  static constexpr std::size_t kLargePage = std::size_t{2} << 20U;
  /// A larger piece comes directly from `pages`.
  static constexpr std::size_t kLargestPooled = std::size_t{4} << 20U;

  /// `pages` gives memory that is aligned to large pages, and must outlive the pool.
  explicit PagePool(std::pmr::memory_resource& pages) : pages_(pages) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource& pages_;
  std::mutex mutex_;  // Guards ground_ and pool_.
  std::pmr::monotonic_buffer_resource ground_{kLargePage, &pages_};
  std::pmr::unsynchronized_pool_resource pool_{{4096, kLargestPooled}, &ground_};
};

}  // namespace signalbox::lb
