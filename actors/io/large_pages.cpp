// SPDX-License-Identifier: Apache-2.0
#include "actors/io/large_pages.hpp"

#include <cstddef>
#include <cstdint>
#include <new>

#include <sys/mman.h>

#include "lb/session/page_pool.hpp"

namespace signalbox::actors {
namespace {

constexpr std::size_t kLargePage = lb::PagePool::kLargePage;

std::size_t in_pages(std::size_t bytes) {
  return (bytes + kLargePage - 1) / kLargePage * kLargePage;
}

class LargePages final : public std::pmr::memory_resource {
 private:
  // Maps one large page more than needed, so that the result can be aligned to a large page. Unmaps
  // the surplus at once.
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
    madvise(first + before, size, MADV_HUGEPAGE);  // A hint: the system may ignore it.
    return first + before;
  }

  void do_deallocate(void* pages, std::size_t bytes, std::size_t /*alignment*/) override {
    munmap(pages, in_pages(bytes));
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

std::pmr::memory_resource& large_pages() {
#if defined(__SANITIZE_ADDRESS__)
  // In a build with ASan: without the pool, ASan checks each allocation.
  return *std::pmr::new_delete_resource();
#else
  // Neither object is ever destroyed, because marks in the memory may live until the process ends.
  static auto* const pages = new LargePages;
  static auto* const pool = new lb::PagePool(*pages);
  return *pool;
#endif
}

}  // namespace signalbox::actors
