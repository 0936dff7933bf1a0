// SPDX-License-Identifier: Apache-2.0
#include "lb/session/page_pool.hpp"

#include <cstdint>
#include <map>

#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

// Records the memory that the pool has taken and not given back: address and size of each piece.
class Pages final : public std::pmr::memory_resource {
 public:
  std::map<void*, std::size_t> in_use;

 private:
  void* do_allocate(std::size_t bytes, std::size_t /*alignment*/) override {
    void* const first = std::pmr::new_delete_resource()->allocate(bytes, PagePool::kLargePage);
    in_use[first] = bytes;
    return first;
  }

  void do_deallocate(void* pages, std::size_t bytes, std::size_t /*alignment*/) override {
    REQUIRE(in_use.at(pages) == bytes);
    in_use.erase(pages);
    std::pmr::new_delete_resource()->deallocate(pages, bytes, PagePool::kLargePage);
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

TEST_CASE("page_pool: small pieces share pages, and what is given back serves again",
          "[lb][session]") {
  Pages pages;
  {
    PagePool pool(pages);
    const std::size_t size = GENERATE(64, 96, 128'128);
    const std::size_t alignment = GENERATE(8, 64);
    void* const first = pool.allocate(size, alignment);
    void* const second = pool.allocate(size, alignment);
    CHECK(first != second);
    CHECK(reinterpret_cast<std::uintptr_t>(first) % alignment == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(second) % alignment == 0);
    const std::size_t taken = pages.in_use.size();
    for (int round = 0; round < 1'000; ++round)
      pool.deallocate(pool.allocate(size, alignment), size, alignment);
    CHECK(pages.in_use.size() == taken);
    pool.deallocate(first, size, alignment);
    pool.deallocate(second, size, alignment);
    CHECK(pages.in_use.size() == taken);  // Kept for later pieces.
  }
  CHECK(pages.in_use.empty());
}

TEST_CASE("page_pool: the largest piece that it pools is kept for later pieces", "[lb][session]") {
  Pages pages;
  PagePool pool(pages);
  void* const piece = pool.allocate(PagePool::kLargestPooled, 64);
  const auto taken = pages.in_use;
  pool.deallocate(piece, PagePool::kLargestPooled, 64);
  CHECK(pages.in_use == taken);
  CHECK(pool.allocate(PagePool::kLargestPooled, 64) != nullptr);
  CHECK(pages.in_use == taken);
}

TEST_CASE("page_pool: a piece beyond the largest has pages of its own, while it lives",
          "[lb][session]") {
  Pages pages;
  PagePool pool(pages);
  const auto own = pages.in_use;  // The pool's lists of free pieces.
  const std::size_t size = PagePool::kLargestPooled + 1;
  void* const piece = pool.allocate(size, 64);
  auto with_piece = own;
  with_piece.emplace(piece, size);
  CHECK(pages.in_use == with_piece);
  pool.deallocate(piece, size, 64);
  CHECK(pages.in_use == own);
}

}  // namespace
}  // namespace signalbox::lb
