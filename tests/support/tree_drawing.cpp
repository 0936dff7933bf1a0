// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tree_drawing.hpp"

#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace signalbox::test {
namespace {

struct Drawn {
  std::string policy;
  std::map<std::string, std::unique_ptr<Drawn>> children;
};

// {region="", zone="east", sub_zone=""} ▶ east
std::string label_of(const std::string& name) {
  if (name == "child") return "";
  if (!name.starts_with('{')) return name + ": ";
  std::string set;
  const std::vector<std::string> quoted = absl::StrSplit(name, '"');
  for (std::size_t at = 1; at < quoted.size(); at += 2) {
    if (!quoted[at].empty()) absl::StrAppend(&set, set.empty() ? "" : ".", quoted[at]);
  }
  return set + ": ";
}

void draw(const Drawn& node, const std::string& indent, std::string& out) {
  std::size_t left = node.children.size();
  for (const auto& [name, child] : node.children) {
    const bool last = --left == 0;
    absl::StrAppend(&out, indent, last ? "└ " : "├ ", label_of(name), child->policy, "\n");
    draw(*child, indent + (last ? "  " : "│ "), out);
  }
}

}  // namespace

std::string draw_tree(const std::vector<std::string>& policies) {
  Drawn above;
  for (const std::string& line : policies) {
    const std::size_t space = line.rfind(' ');
    Drawn* at = &above;
    const std::string path = line.substr(0, space);
    for (const auto part : absl::StrSplit(path, '/')) {
      auto& child = at->children[std::string(part)];
      if (child == nullptr) child = std::make_unique<Drawn>();
      at = child.get();
    }
    at->policy = line.substr(space + 1);
  }
  std::string out;
  for (const auto& [name, root] : above.children) {
    absl::StrAppend(&out, root->policy, "\n");
    draw(*root, "", out);
  }
  return out;
}

}  // namespace signalbox::test
