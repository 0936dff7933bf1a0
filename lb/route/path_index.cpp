// SPDX-License-Identifier: Apache-2.0
#include "lb/route/path_index.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace signalbox::lb {
namespace {

std::size_t common_length(absl::string_view a, absl::string_view b) {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(differ.first - a.begin());
}

}  // namespace

// Sorted by text, the entries below a node stand side by side, those with its own text first. Nodes
// wait in a list, not on the stack: texts may be nested as deep as there are routes.
class PathIndex::Builder {
 public:
  Builder(PathIndex& index, std::vector<Entry> entries)
      : index_(index), entries_(std::move(entries)) {
    std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
      return std::tie(a.text, a.position) < std::tie(b.text, b.position);
    });
    add_node({0, entries_.size(), 0});
    for (std::size_t node = 0; node < index_.nodes_.size(); ++node)
      fill(node);
  }

 private:
  // The entries of a node, and how much of their texts its parents have.
  struct Task {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t depth = 0;
  };

  void add_node(const Task& task) {
    tasks_.push_back(task);
    index_.nodes_.emplace_back();
    const std::string& text = entries_[task.begin].text;
    index_.first_bytes_ += task.depth < text.size() ? text[task.depth] : '\0';
  }

  void fill(std::size_t place) {
    const Task task = tasks_[place];
    const std::string& text = entries_[task.begin].text;
    const std::size_t depth = common_length(text, entries_[task.end - 1].text);
    Node node;
    node.label = range_of(index_.text_, depth - task.depth);
    index_.text_.append(text, task.depth, depth - task.depth);

    std::size_t next = task.begin;
    while (next < task.end && entries_[next].text.size() == depth)
      ++next;
    node.exacts = add_positions(task.begin, next, true);
    node.prefixes = add_positions(task.begin, next, false);

    node.children.first = static_cast<std::uint32_t>(index_.nodes_.size());
    while (next < task.end) {
      const std::size_t begin = next;
      const char letter = entries_[begin].text[depth];
      while (next < task.end && entries_[next].text[depth] == letter)
        ++next;
      add_node({begin, next, depth});
      ++node.children.size;
    }
    index_.nodes_[place] = node;
  }

  Range add_positions(std::size_t begin, std::size_t end, bool is_exact) {
    Range range = range_of(index_.positions_, 0);
    for (std::size_t i = begin; i < end; ++i) {
      if (entries_[i].is_exact != is_exact) continue;
      index_.positions_.push_back(entries_[i].position);
      ++range.size;
    }
    return range;
  }

  template <typename Container>
  static Range range_of(const Container& container, std::size_t size) {
    return {static_cast<std::uint32_t>(container.size()), static_cast<std::uint32_t>(size)};
  }

  PathIndex& index_;
  std::vector<Entry> entries_;
  std::vector<Task> tasks_;  // By place of the node.
};

PathIndex::PathIndex(std::vector<Entry> entries, bool ignore_case) : ignore_case_(ignore_case) {
  if (entries.empty()) return;
  if (ignore_case) {
    for (Entry& entry : entries)
      absl::AsciiStrToLower(&entry.text);
  }
  Builder(*this, std::move(entries));
}

void PathIndex::collect(absl::string_view path, Candidates& found) const {
  if (nodes_.empty()) return;
  const Node* node = &nodes_.front();
  while (begins_with(path, node->label)) {
    path.remove_prefix(node->label.size);
    add(node->prefixes, found);
    if (path.empty()) return add(node->exacts, found);
    node = child_of(*node, path.front());
    if (node == nullptr) return;
  }
}

bool PathIndex::begins_with(absl::string_view path, const Range& label) const {
  const absl::string_view wanted(text_.data() + label.first, label.size);
  return ignore_case_ ? absl::StartsWithIgnoreCase(path, wanted) : absl::StartsWith(path, wanted);
}

const PathIndex::Node* PathIndex::child_of(const Node& node, char next) const {
  if (node.children.size == 0) return nullptr;
  const char wanted = ignore_case_ ? absl::ascii_tolower(static_cast<unsigned char>(next)) : next;
  const char* const first = first_bytes_.data() + node.children.first;
  const void* const found = std::memchr(first, wanted, node.children.size);
  if (found == nullptr) return nullptr;
  return &nodes_[node.children.first +
                 static_cast<std::size_t>(static_cast<const char*>(found) - first)];
}

void PathIndex::add(const Range& range, Candidates& found) const {
  if (range.size > 0) found.emplace_back(positions_.data() + range.first, range.size);
}

}  // namespace signalbox::lb
