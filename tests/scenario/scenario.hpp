// SPDX-License-Identifier: Apache-2.0
//
// Scenario — runs the commands of a transcript on a policy tree.
//
//   command ─▶ XdsWorld, TreeHarness ─▶ lines: what happened, in order
//
//   policy NAME POLICY               what its priorities run from the next eds on: round_robin, …
//   eds NAME PRIORITY | PRIORITY …   endpoints, as XdsWorld writes them: east:a,b west*3:c
//   dns NAME ADDRESS                 aggregate NAME LEAF …
//   lost NAME WHY …                  its resource cannot be had     remove NAME
//   apply NAME … [retiring NAME …]   the clusters that the routes name
//   up ADDRESS …   down ADDRESS …    the network
//   advance 10s                      time (ms, s, min)
//   pick NAME                        where its calls go
//   share NAME                       where each of a thousand calls goes

#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace signalbox::test {

class Scenario {
 public:
  /// What came of the command. An unknown command is an answer, too.
  std::vector<std::string> run(const std::string& command);

 private:
  std::vector<std::string> do_command(const std::vector<std::string>& words);
  void apply(const std::vector<std::string>& words);
  std::string share(const std::string& cluster);

  std::map<std::string, LbConfigPtr> policies_;
  XdsWorld world_;
  TreeHarness tree_;
};

}  // namespace signalbox::test
