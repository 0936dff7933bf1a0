// SPDX-License-Identifier: Apache-2.0
#include "actors/io/large_pages.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include <sys/mman.h>

namespace signalbox::actors {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20U;
// Larger pieces have pages of their own.
constexpr std::size_t kLargestPooled = std::size_t{4} << 20U;

std::size_t in_pages(std::size_t bytes) {
  return (bytes + kLargePage - 1) / kLargePage * kLargePage;
}

class LargePages final : public std::pmr::memory_resource {
 private:
  // Maps one page more, so that the memory can be aligned to a large page, and unmaps the rest at
  // once.
  void* do_allocate(std::size_t bytes, std::size_t /*alignment*/) override {
    const std::size_t size = in_pages(bytes);
    void* const mapped = mmap(
        nullptr, size + kLargePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    auto* const first = static_cast<std::byte*>(mapped);
    const std::size_t before =
        in_pages(reinterpret_cast<std::uintptr_t>(first)) - reinterpret_cast<std::uintptr_t>(first);
    if (before > 0) munmap(first, before);
    munmap(first + before + size, kLargePage - before);
    madvise(first + before, size, MADV_HUGEPAGE);  // A hint.
    return first + before;
  }

  void do_deallocate(void* pages, std::size_t bytes, std::size_t /*alignment*/) override {
    munmap(pages, in_pages(bytes));
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

class PooledPages final : public std::pmr::memory_resource {
 private:
  // A power of two. For other sizes libstdc++'s pool returns pieces with less alignment than asked
  // for; for powers of two it returns pieces that are aligned to their size.
  static std::size_t pooled(std::size_t bytes, std::size_t alignment) {
    return std::bit_ceil(std::max(bytes, alignment));
  }

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes > kLargestPooled) return pages_.allocate(bytes, alignment);
    const std::scoped_lock lock(mutex_);
    return pool_.allocate(pooled(bytes, alignment));
  }

  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    if (bytes > kLargestPooled) return pages_.deallocate(memory, bytes, alignment);
    const std::scoped_lock lock(mutex_);
    pool_.deallocate(memory, pooled(bytes, alignment));
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  LargePages pages_;
  std::mutex mutex_;
  std::pmr::monotonic_buffer_resource ground_{kLargePage, &pages_};
  std::pmr::unsynchronized_pool_resource pool_{{4096, kLargestPooled}, &ground_};
};

}  // namespace

std::pmr::memory_resource& large_pages() {
#if defined(__SANITIZE_ADDRESS__)
  return *std::pmr::new_delete_resource();  // ASan then checks each piece.
#else
  static auto* const memory = new PooledPages;  // Never destroyed: marks may live longer.
  return *memory;
#endif
}

}  // namespace signalbox::actors
