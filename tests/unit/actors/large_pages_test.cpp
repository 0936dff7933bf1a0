// SPDX-License-Identifier: Apache-2.0
#include "actors/io/large_pages.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

namespace signalbox::actors {
namespace {

constexpr std::size_t kLine = 64;

struct Piece {
  std::byte* memory = nullptr;
  std::size_t size = 0;
  unsigned char letter = 0;

  bool is_untouched() const {
    return std::all_of(
        memory, memory + size, [this](std::byte byte) { return byte == std::byte{letter}; });
  }
};

Piece take(std::size_t size, unsigned char letter) {
  Piece piece{static_cast<std::byte*>(large_pages().allocate(size, kLine)), size, letter};
  std::memset(piece.memory, letter, size);
  return piece;
}

void give_back(const Piece& piece) {
  large_pages().deallocate(piece.memory, piece.size, kLine);
}

// The VmFlags line of the mapping that holds `memory`; "" if there is none.
std::string kernel_flags(const void* memory) {
  std::ifstream maps("/proc/self/smaps");
  const auto place = reinterpret_cast<std::uintptr_t>(memory);
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-')
      is_here = begin <= place && place < end;
    if (is_here && absl::StartsWith(line, "VmFlags:")) return line;
  }
  return "";
}

std::size_t mapped_bytes() {
  std::ifstream status("/proc/self/statm");
  std::size_t pages = 0;
  status >> pages;
  return pages * 4096;
}

// False under AddressSanitizer, where pieces are not pooled so that it can watch each of them, and
// on systems without large pages. There is then nothing to test.
bool is_pooled() {
#if defined(__SANITIZE_ADDRESS__)
  return false;
#else
  return std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled");
#endif
}

TEST_CASE("large_pages: pieces of all sizes are apart, and aligned", "[actors][io]") {
  std::mt19937 dice(1);
  std::vector<Piece> pieces;
  for (int round = 0; round < 2'000; ++round) {
    const std::size_t most = std::size_t{1} << (dice() % 22);
    pieces.push_back(take(1 + dice() % most, static_cast<unsigned char>(dice())));
    REQUIRE(reinterpret_cast<std::uintptr_t>(pieces.back().memory) % kLine == 0);
    if (dice() % 3 == 0 || pieces.size() > 50) {
      std::swap(pieces[dice() % pieces.size()], pieces.back());
      REQUIRE(pieces.back().is_untouched());
      give_back(pieces.back());
      pieces.pop_back();
    }
  }
  for (const Piece& piece : pieces) {
    REQUIRE(piece.is_untouched());
    give_back(piece);
  }
}

TEST_CASE("large_pages: threads get pieces of their own", "[actors][io]") {
  std::vector<std::thread> threads;
  std::array<bool, 4> are_apart{};
  for (std::size_t at = 0; at < are_apart.size(); ++at) {
    threads.emplace_back([at, &are_apart] {
      bool is_apart = true;
      for (std::size_t round = 0; round < 2'000; ++round) {
        const Piece piece = take(32 + round % 200, static_cast<unsigned char>(at));
        is_apart = is_apart && piece.is_untouched();
        give_back(piece);
      }
      are_apart[at] = is_apart;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(std::ranges::count(are_apart, true) == 4);
}

TEST_CASE("large_pages: what was given back serves again", "[actors][io]") {
  if (!is_pooled()) return;
  const std::size_t size = GENERATE(64, 128'128, 2 << 20);
  std::set<const void*> places;
  for (int round = 0; round < 1'000; ++round) {
    const Piece older = take(size, 1);
    const Piece newer = take(size, 2);  // A new picker is built while the old one still exists.
    places.insert({older.memory, newer.memory});
    give_back(older);
    give_back(newer);
  }
  CHECK(places.size() < 10);
  CHECK_FALSE(kernel_flags(*places.begin()).empty());  // The pool keeps its memory mapped.
}

TEST_CASE("large_pages: asks for large pages, and gives those of large pieces back",
          "[actors][io]") {
  if (!is_pooled()) return;
  const Piece small = take(64, 1);
  CHECK(absl::StrContains(kernel_flags(small.memory), " hg"));
  const std::size_t before = mapped_bytes();
  const Piece large = take(5 << 20, 2);
  CHECK(absl::StrContains(kernel_flags(large.memory), " hg"));
  CHECK(reinterpret_cast<std::uintptr_t>(large.memory) % (2 << 20) == 0);
  give_back(large);
  CHECK(kernel_flags(large.memory).empty());
  CHECK(kernel_flags(large.memory + (6 << 20) - 1).empty());
  for (int round = 0; round < 100; ++round)
    give_back(take(5 << 20, 3));
  CHECK(mapped_bytes() < before + (2 << 20));
  give_back(small);
}

}  // namespace
}  // namespace signalbox::actors
