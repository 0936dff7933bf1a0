// SPDX-License-Identifier: Apache-2.0
#include "lb/route/path_index.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace signalbox::lb {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint64_t kWholeBit = std::uint64_t{1} << 63U;

std::uint64_t mix(std::uint64_t value) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{value} * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

std::uint32_t tag_of(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash >> 32U);
}

// Lower-cases the ASCII letters among eight bytes at once.
std::uint64_t in_lower_case(std::uint64_t letters) {
  constexpr std::uint64_t kEach = 0x0101010101010101ULL;
  const std::uint64_t low_bits = letters & 0x7f * kEach;
  const std::uint64_t from_a = low_bits + (0x80 - 'A') * kEach;
  const std::uint64_t after_z = low_bits + (0x7f - 'Z') * kEach;
  const std::uint64_t is_upper = (from_a ^ after_z) & ~letters & 0x80 * kEach;
  return letters | is_upper >> 2U;
}

}  // namespace

// Computes the hashes of ever longer beginnings of a text, each from the one before in a few steps.
class PathIndex::Hashes {
 public:
  Hashes(absl::string_view text, const PathIndex& index)
      : text_(text), ignore_case_(index.ignore_case_), state_(index.seed_) {}

  // The hash of the text's first `size` bytes. `size` must not be less than in the previous call.
  // The last word of 8 bytes may overlap the word before it. `is_whole`: the hash for an exact
  // path; it differs from that for a prefix of the same text.
  std::uint64_t of(std::size_t size, bool is_whole) {
    for (; done_ + kWord <= size; done_ += kWord)
      state_ = mix(state_ ^ word(done_, kWord));
    const std::size_t last = std::min(size, kWord);
    const std::uint64_t hash = mix((state_ + size) ^ word(size - last, last));
    return hash >> 1U | (is_whole ? kWholeBit : 0);
  }

 private:
  std::uint64_t word(std::size_t begin, std::size_t size) const {
    std::uint64_t word = 0;
    if (size > 0) std::memcpy(&word, text_.data() + begin, size);
    return ignore_case_ ? in_lower_case(word) : word;
  }

  absl::string_view text_;
  bool ignore_case_;
  std::size_t done_ = 0;
  std::uint64_t state_;  // The state after the words before done_.
};

PathIndex::PathIndex(std::vector<Entry> entries, bool ignore_case)
    : ignore_case_(ignore_case), seed_(absl::HashOf(0)) {  // Usually differs between processes.
  if (entries.empty()) return;
  if (ignore_case) {
    for (Entry& entry : entries)
      absl::AsciiStrToLower(&entry.text);
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::tie(a.text, a.is_exact, a.position) < std::tie(b.text, b.is_exact, b.position);
  });
  // Between 1.5 and 3 slots for each entry.
  const std::size_t slots = std::bit_ceil(entries.size() + entries.size() / 2 + 1);
  lines_.resize(std::max<std::size_t>(slots / Line().slots.size(), 1));
  records_.push_back(0);  // An index of 0 marks an empty slot, so record 0 is not used.
  for (auto begin = entries.begin(); begin != entries.end();) {
    const auto end = std::find_if(begin, entries.end(), [&](const Entry& entry) {
      return entry.text != begin->text || entry.is_exact != begin->is_exact;
    });
    insert({&*begin, static_cast<std::size_t>(end - begin)});
    begin = end;
  }
  records_.shrink_to_fit();
  std::ranges::sort(prefix_sizes_);
  prefix_sizes_.erase(std::unique(prefix_sizes_.begin(), prefix_sizes_.end()), prefix_sizes_.end());
}

// Inserts the entries `alike`. Precondition: all have the same text, and all are exact or all
// prefixes.
void PathIndex::insert(absl::Span<const Entry> alike) {
  const auto& [text, is_exact, first] = alike.front();
  if (is_exact) {
    longest_path_ = std::max(longest_path_, text.size());
  } else {
    prefix_sizes_.push_back(static_cast<std::uint32_t>(text.size()));
    const auto last = static_cast<unsigned char>(text.empty() ? 0 : text.back());
    last_bytes_.set(last);
    if (ignore_case_) last_bytes_.set(static_cast<unsigned char>(absl::ascii_toupper(last)));
  }

  const std::uint64_t hash = Hashes(text, *this).of(text.size(), is_exact);
  const auto empty_in = [](Line& line) { return std::ranges::find(line.slots, 0U, &Slot::record); };
  std::size_t at = line_of(hash);
  while (empty_in(lines_[at]) == lines_[at].slots.end())
    at = line_of(at + 1);
  *empty_in(lines_[at]) = {tag_of(hash),
                           static_cast<std::uint32_t>(records_.size()),
                           static_cast<std::uint32_t>(alike.size()),
                           first};

  records_.push_back(static_cast<std::uint32_t>(text.size()));
  if (alike.size() > 1) {
    for (const Entry& entry : alike)
      records_.push_back(entry.position);
  }
  const std::size_t bytes = records_.size();
  records_.resize(bytes + (text.size() + sizeof(std::uint32_t) - 1) / sizeof(std::uint32_t));
  std::memcpy(records_.data() + bytes, text.data(), text.size());
}

// A look-up usually reads two places in memory, one for the whole path and one for a prefix. The
// first is prefetched while the second is read.
void PathIndex::collect(absl::string_view path, Candidates& found) const {
  if (lines_.empty()) return;
  const std::uint64_t whole = Hashes(path, *this).of(std::min(path.size(), longest_path_), true);
  __builtin_prefetch(&lines_[line_of(whole)]);
  Hashes hashes(path, *this);
  for (const std::uint32_t size : prefix_sizes_) {
    if (size > path.size()) break;
    const absl::string_view text = path.substr(0, size);
    if (may_be_prefix(text)) add(text, hashes.of(size, false), found);
  }
  add(path, whole, found);
}

void PathIndex::add(absl::string_view text, std::uint64_t hash, Candidates& found) const {
  for (std::size_t at = line_of(hash);; at = line_of(at + 1)) {
    for (const Slot& slot : lines_[at].slots) {
      if (slot.record == 0) return;
      if (slot.tag != tag_of(hash) || !has_text(slot, text)) continue;
      if (slot.routes == 1) {
        found.emplace_back(&slot.first, 1);
      } else {
        found.emplace_back(&records_[slot.record + 1], slot.routes);
      }
      return;
    }
  }
}

bool PathIndex::has_text(const Slot& slot, absl::string_view text) const {
  const std::uint32_t* const size = &records_[slot.record];
  const std::uint32_t* const bytes = size + 1 + (slot.routes == 1 ? 0 : slot.routes);
  const absl::string_view own(reinterpret_cast<const char*>(bytes), *size);
  return ignore_case_ ? absl::EqualsIgnoreCase(own, text) : own == text;
}

bool PathIndex::may_be_prefix(absl::string_view text) const {
  return text.empty() || last_bytes_[static_cast<unsigned char>(text.back())];
}

}  // namespace signalbox::lb
