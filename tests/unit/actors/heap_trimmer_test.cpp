// SPDX-License-Identifier: Apache-2.0
#include "actors/heap_trimmer.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/mman.h>
#include <unistd.h>

namespace signalbox::actors::heap_trimmer_test {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{};

// The due time of each trim of the plan, in seconds after kStart. Each trim is made when it is due.
std::vector<long> trims_of(TrimPlan plan) {
  std::vector<long> seconds;
  while (const auto next = plan.next_trim()) {
    seconds.push_back(std::chrono::duration_cast<std::chrono::seconds>(*next - kStart).count());
    plan.record_trim(*next);
  }
  return seconds;
}

TEST_CASE("heap_trimmer: trims a few times after many have ended", "[scale][heap_trimmer][H2]") {
  TrimPlan plan;
  CHECK(plan.next_trim() == std::nullopt);
  plan.record_many(kStart);
  CHECK(trims_of(plan) == std::vector<long>{1, 6, 31, 151});
}

TEST_CASE("heap_trimmer: more ends neither put a trim off nor bring two trims together",
          "[scale][heap_trimmer][H2]") {
  TrimPlan plan;
  plan.record_many(kStart);
  plan.record_many(kStart + 500ms);
  CHECK(plan.next_trim() == kStart + 1s);
  plan.record_trim(kStart + 1s);
  plan.record_many(kStart + 2s);
  CHECK(trims_of(plan) == std::vector<long>{6, 11, 36, 156});
  // When many more subchannels have ended after the last trim of a plan, a new plan begins.
  TrimPlan later = plan;
  for (int i = 0; i < 4; ++i)
    later.record_trim(kStart + 6s);
  CHECK(later.next_trim() == std::nullopt);
  later.record_many(kStart + 100s);
  CHECK(trims_of(later) == std::vector<long>{101, 106, 131, 251});
}

TEST_CASE("heap_trimmer: trims on a thread of its own after so many ends, and not before",
          "[scale][heap_trimmer][H1][H3]") {
  std::promise<std::thread::id> trimmed;
  auto when_trimmed = trimmed.get_future();
  bool is_told = false;  // Only the trimmer's thread reads or writes these two.
  int prepared = 0;
  HeapTrimmer trimmer(
      [&] {
        CHECK(prepared == 1);
        if (!std::exchange(is_told, true)) trimmed.set_value(std::this_thread::get_id());
      },
      [&] { ++prepared; });
  for (std::uint64_t i = 1; i < TrimPlan::kMany; ++i)
    trimmer.record_end();
  CHECK(when_trimmed.wait_for(0s) == std::future_status::timeout);
  trimmer.record_end();
  REQUIRE(when_trimmed.wait_for(60s) == std::future_status::ready);
  CHECK(when_trimmed.get() != std::this_thread::get_id());
}

TEST_CASE("heap_trimmer: ends before a trim that is due", "[scale][heap_trimmer]") {
  std::atomic<int> trims = 0;
  {
    HeapTrimmer trimmer([&] { ++trims; }, [] {});
    for (std::uint64_t i = 0; i < TrimPlan::kMany; ++i)
      trimmer.record_end();
  }
  CHECK(trims <= 1);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

constexpr std::size_t kBlock = 64 << 10;

bool is_resident(const void* place) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(place) / page * page;
  unsigned char resident = 0;
  const int result = ::mincore(reinterpret_cast<void*>(begin), page, &resident);
  return result == 0 && (resident & 1) != 0;  // An unmapped page gives ENOMEM.
}

// The writes are volatile because the compiler may drop plain writes that precede free().
void* filled(std::size_t size) {
  void* const block = std::malloc(size);
  auto* const bytes = static_cast<volatile char*>(block);
  for (std::size_t i = 0; i < size; i += 1'024)
    bytes[i] = 1;
  return block;
}

TEST_CASE("heap_trimmer: the free end of a thread's arena returns to the system",
          "[scale][heap_trimmer][H4]") {
  bool was_resident = false;
  bool is_kept = true;
  std::thread thread([&] {
    std::free(filled(24 << 20));  // Raises glibc's trim threshold to twice this size.
    std::vector<void*> blocks;
    blocks.reserve(256);
    for (int i = 0; i < 256; ++i)
      blocks.push_back(filled(kBlock));
    const void* const place = static_cast<char*>(blocks.at(200)) + kBlock / 2;
    while (blocks.size() > 1) {
      std::free(blocks.back());
      blocks.pop_back();
    }
    was_resident = is_resident(place);
    HeapTrimmer::lower_threshold();
    std::free(blocks.back());
    is_kept = is_resident(place);
  });
  thread.join();
  CHECK(was_resident);
  CHECK_FALSE(is_kept);
}

#endif

}  // namespace
}  // namespace signalbox::actors::heap_trimmer_test
