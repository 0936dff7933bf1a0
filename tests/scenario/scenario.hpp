// SPDX-License-Identifier: Apache-2.0
//
// Scenario — runs the commands of a transcript on a policy tree.
//
//   command ─▶ XdsWorld, TreeHarness ─▶ lines: TreeHarness's log, then the answer of the command
//
//   policy NAME POLICY               from the next eds on: the priorities' policy: round_robin, …
//   limit NAME CALLS                 from the next eds on: at most CALLS calls in flight
//   drop NAME CATEGORY PERCENT       from the next eds on: the share of calls dropped
//   detect NAME                      from the next eds on: if at least three endpoints have ten or
//                                    more calls each, any that fails more than half of its calls
//                                    is ejected (for more than 30 s), unless half of all are
//   idle NAME 10s                    from the next eds on: the time that sessions keep a host
//   keep NAME draining               from the next eds on: sessions also keep DRAINING hosts
//   standby COUNT                    for policies that start from now on: the number of priorities
//                                    after the one in use that stay connected
//   sessions on|off                  whether calls may belong to sessions
//   eds NAME PRIORITY | PRIORITY …   endpoints, as XdsWorld writes them: east:a,b west*3:c
//   dns NAME ADDRESS                 sets a LOGICAL_DNS cluster
//   aggregate NAME LEAF …            sets an aggregate cluster
//   lost NAME WHY …                  the cluster's resource does not exist, for the reason WHY
//   remove NAME                      removes the cluster from the configuration
//   apply NAME … [retiring NAME …]   applies the configuration. The routes name the first clusters;
//                                    only earlier calls hold the retiring ones
//   up ADDRESS …   down ADDRESS …    connections to the address succeed, or break and fail
//   ends ADDRESS …                   the address is READY, and ends connections at once, again and
//                                    again: it fails until `up`
//   bad ADDRESS …   good ADDRESS …   calls to the address fail, or succeed again
//   advance 10s                      moves the clock (ms, s, min)
//   pick NAME                        the endpoints of the cluster's calls
//   share NAME                       the number of calls to each endpoint, of a thousand calls
//   users NAME USER …                the endpoint of each user's calls, hashed by USER
//   visit NAME USER …                one call of each user's session: its endpoint, and why
//   call NAME CALLS                  calls in sequence; the count of each answer
//   hold NAME CALLS                  as call, but the calls run until `end`
//   end                              ends the calls of every `hold`

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

  /// The result of the command, in lines. An unknown command gives a line that says so.
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
  std::map<std::string, std::string> cookies_;  ///< The cookie of each user.
  std::uint64_t calls_ = 0;
};

}  // namespace signalbox::test
