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
// A child is drawn with its name, unless the name is "child": many policies give their only child
// this name. A locality is drawn as those parts of its name that are set: "east" for a zone alone.

#pragma once

#include <string>
#include <vector>

namespace signalbox::test {

/// `policies`: path and kind of each policy ("m/orders cds"), parents included. Every line of the
/// result ends in '\n'.
std::string draw_tree(const std::vector<std::string>& policies);

}  // namespace signalbox::test
