// SPDX-License-Identifier: Apache-2.0
#include "actors/io/transport_name.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

namespace signalbox::actors {
namespace {

using Word = std::uintptr_t;

constexpr std::size_t kWord = sizeof(Word);
constexpr std::size_t kPage = 4096;
constexpr absl::string_view kUnnamed = "fd-client";

// How much of each object is searched. Debian's build of gRPC has the offsets 176, 480 and 32.
constexpr std::size_t kChannelBytes = 256;
constexpr std::size_t kStackBytes = 1024;
constexpr std::size_t kTransportBytes = 512;

// Copies the words at an address, as far as they are readable.
template <std::size_t kBytes>
class Words {
 public:
  explicit Words(Word from) {
    // The system copies a part as a whole or not at all, so a part ends at the end of a page.
    const std::size_t first = std::min(kBytes, kPage - from % kPage);
    const iovec target{words_.data(), kBytes};
    const std::array<iovec, 2> source{{{std::bit_cast<void*>(from), first},
                                       {std::bit_cast<void*>(from + first), kBytes - first}}};
    const ssize_t count = ::process_vm_readv(::getpid(), &target, 1, source.data(), 2, 0);
    size_ = count < 0 ? 0 : static_cast<std::size_t>(count) / kWord;
  }

  std::size_t size() const { return size_; }

  Word operator[](std::size_t index) const { return words_[index]; }

  const Word* at(std::size_t index) const { return &words_[index]; }

 private:
  std::array<Word, kBytes / kWord> words_{};
  std::size_t size_ = 0;
};

bool is_pointer(Word word) {
  return word >= kPage && word % kWord == 0;
}

// Whether the four words at `at` are a std::string of libstdc++ with the text kUnnamed: a pointer
// to the text, its size, and 16 bytes for a short text.
bool is_unnamed(Word at, const Word* words) {
  if (words[0] != at + 2 * kWord || words[1] != kUnnamed.size()) return false;
  return std::memcmp(words + 2, kUnnamed.data(), kUnnamed.size()) == 0;
}

std::optional<Word> pointer_at(Word from) {
  const Words<kWord> word(from);
  if (word.size() != 1 || !is_pointer(word[0])) return std::nullopt;
  return word[0];
}

}  // namespace

std::vector<TransportName> TransportName::find_in(const grpc_channel* channel) {
  std::vector<TransportName> found;
  const Words<kChannelBytes> in_channel(reinterpret_cast<Word>(channel));
  for (std::size_t i = 0; i < in_channel.size(); ++i) {
    if (!is_pointer(in_channel[i])) continue;
    const Words<kStackBytes> in_stack(in_channel[i]);
    for (std::size_t j = 0; j < in_stack.size(); ++j) {
      const Word transport = in_stack[j];
      if (!is_pointer(transport)) continue;
      const Words<kTransportBytes> in_transport(transport);
      for (std::size_t k = 0; k + 4 <= in_transport.size(); ++k) {
        if (is_unnamed(transport + k * kWord, in_transport.at(k)))
          found.push_back(TransportName(i * kWord, j * kWord, k * kWord));
      }
    }
  }
  return found;  // In order.
}

// A search through one channel also finds the name by way of old values in memory. These ways
// differ from channel to channel.
std::vector<TransportName> TransportName::find(std::span<grpc_channel* const> channels) {
  std::vector<TransportName> all = find_in(channels.front());
  for (const grpc_channel* const channel : channels.subspan(1)) {
    const std::vector<TransportName> here = find_in(channel);
    std::vector<TransportName> both;
    std::ranges::set_intersection(all, here, std::back_inserter(both));
    all = std::move(both);
  }
  return all;
}

bool TransportName::set(const grpc_channel* channel, const std::string& name) const {
  const auto stack = pointer_at(reinterpret_cast<Word>(channel) + stack_);
  const auto transport = stack ? pointer_at(*stack + transport_) : std::nullopt;
  if (!transport) return false;
  const Word at = *transport + name_;
  const Words<4 * kWord> words(at);
  if (words.size() != 4 || !is_unnamed(at, words.at(0))) return false;
  *std::bit_cast<std::string*>(at) = name;
  return true;
}

}  // namespace signalbox::actors
