// SPDX-License-Identifier: Apache-2.0
//
// tree_drawing — draws a policy tree, so that tests can compare it as text.
//
//   TreeHarness::policies("m") ─▶ draw_tree ─▶   cluster_manager
//                                                └ orders: cds
//                                                  ├ one: cds
//                                                  │ └ …
//                                                  └ two: cds
//
// A child is drawn with its name, unless the name is "child", as an only child's is. A locality is
// drawn as the part of its name that is set.

#pragma once

#include <string>
#include <vector>

namespace signalbox::test {

/// `policies`: "path name" of each policy, parents included. Lines end in '\n'.
std::string draw_tree(const std::vector<std::string>& policies);

}  // namespace signalbox::test
