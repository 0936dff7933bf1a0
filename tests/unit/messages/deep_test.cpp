// SPDX-License-Identifier: Apache-2.0
#include "messages/deep.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox {
namespace {

struct Tree {
  std::string name;
  Deep<Tree> child = nullptr;

  friend bool operator==(const Tree&, const Tree&) = default;
};

std::shared_ptr<const Tree> tree(const std::vector<std::string>& names) {
  std::shared_ptr<const Tree> made;
  for (const std::string& name : names)
    made = std::make_shared<const Tree>(Tree{name, made});
  return made;
}

TEST_CASE("deep: equal are values, however they are shared", "[messages][deep]") {
  const auto all = std::vector<std::vector<std::string>>{
      {}, {"leaf"}, {"other"}, {"leaf", "middle"}, {"leaf", "middle", "top"}, {"middle", "leaf"}};
  for (std::size_t left = 0; left < all.size(); ++left) {
    for (std::size_t right = 0; right < all.size(); ++right) {
      CAPTURE(left, right);
      CHECK((Deep<Tree>(tree(all[left])) == Deep<Tree>(tree(all[right]))) == (left == right));
      CHECK(same_value(tree(all[left]), tree(all[right])) == (left == right));
    }
  }
}

TEST_CASE("deep: holds the pointer that it was made of", "[messages][deep]") {
  const auto pointer = tree({"leaf"});
  const Deep<Tree> deep = pointer;
  const std::shared_ptr<const Tree>& again = deep;
  CHECK(again == pointer);
  CHECK(deep.get() == pointer.get());
  CHECK(deep->name == "leaf");
  CHECK((*deep).name == "leaf");
  CHECK(deep != nullptr);
  CHECK(Deep<Tree>() == nullptr);
}

}  // namespace
}  // namespace signalbox
