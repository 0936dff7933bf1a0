// SPDX-License-Identifier: Apache-2.0
//
// Scenario — runs the commands of a transcript on a policy tree.
//
//   command ─▶ XdsWorld, TreeHarness ─▶ lines: what happened, in order
//
//   policy NAME POLICY               what its priorities run from the next eds on: round_robin, …
//   limit NAME CALLS                 from the next eds on: so many in flight
//   drop NAME CATEGORY PERCENT       from the next eds on
//   detect NAME                      from the next eds on: who fails more than half of ten calls is
//                                    ejected for 30 s, of all endpoints half
//   idle NAME 10s                    from the next eds on: how long sessions keep a host
//   keep NAME draining               from the next eds on: DRAINING hosts, too
//   standby COUNT                    from the next start of a policy on: connected priorities
//   sessions on|off                  whether calls may be of one
//   eds NAME PRIORITY | PRIORITY …   endpoints, as XdsWorld writes them: east:a,b west*3:c
//   dns NAME ADDRESS                 aggregate NAME LEAF …
//   lost NAME WHY …                  its resource cannot be had     remove NAME
//   apply NAME … [retiring NAME …]   the clusters that the routes name
//   up ADDRESS …   down ADDRESS …    the network
//   bad ADDRESS …   good ADDRESS …   whether calls to it fail
//   advance 10s                      time (ms, s, min)
//   pick NAME                        where its calls go
//   share NAME                       where each of a thousand calls would go
//   users NAME USER …                where the calls of each go, which are hashed by USER
//   visit NAME USER …                a call of each one's session: where it goes, and why
//   call NAME CALLS                  one after the other; how often which answer came
//   hold NAME CALLS   end            the same, but they run until `end`

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace signalbox::test {

class Scenario {
 public:
  using Words = std::vector<std::string>;

  /// What came of the command. An unknown command is an answer, too.
  Words run(const std::string& command);

 private:
  Words do_command(const Words& words);
  bool do_cluster(const Words& words);
  bool do_world(const Words& words);
  void apply(const Words& words);
  std::string share(const std::string& cluster);
  std::string users(const Words& words);
  std::string visits(const Words& words);
  std::string calls(const Words& words, bool held);

  std::map<std::string, LbConfigPtr> policies_;
  std::map<std::string, ClusterExtras> extras_;
  XdsWorld world_;
  TreeHarness tree_;
  std::vector<TreeHarness::Call> held_;
  std::map<std::string, std::string> cookies_;  ///< Of users.
  std::uint64_t calls_ = 0;
};

}  // namespace signalbox::test
