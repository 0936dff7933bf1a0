// SPDX-License-Identifier: Apache-2.0
//
// TreeHarness — a whole policy tree in one thread: the real policies and subchannel maps, and a
// plain stand-in for the actors between them, the subchannels, and the network.
//
//   apply, up, down, advance ─▶ events, first in first out, until nobody has anything to say
//                            ─▶ log(), pick(), connections(), …
//
// The network: an address is silent (attempts never end) until up() or down() says otherwise.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lb/policy.hpp"
#include "messages/subchannel_events.hpp"
#include "tests/support/policy_harness.hpp"

namespace signalbox::test {

class TreeHarness {
 public:
  explicit TreeHarness(const lb::PolicyOptions& options = {});
  ~TreeHarness();
  TreeHarness(const TreeHarness&) = delete;
  TreeHarness& operator=(const TreeHarness&) = delete;

  /// Gives the root its next configuration.
  void apply(LbConfigPtr root, XdsConfigPtr xds);

  /// Attempts to connect to it succeed, and those that wait do.
  void up(const std::string& address);
  /// Its connections break, and attempts fail.
  void down(const std::string& address);

  /// Its connections break, as when a keepalive finds the peer gone, and attempts never end.
  void silence(const std::string& address);

  /// From now on attempts end, and fail, when their cluster's connect_timeout is over.
  void end_attempts() { attempts_end_ = true; }

  void advance(Duration duration);

  /// Each policy at `path` and below says once more what it published last, as one that was
  /// restarted does.
  void repeat(const std::string& path);

  /// Where the call hashes to, for policies that ask: nullopt: by chance.
  using Hash = std::optional<std::uint64_t>;

  /// What the root's picker answers; asks are told.
  std::string pick(const std::string& cluster, std::uint64_t seed = 0, Hash hash = std::nullopt);

  /// As pick(), of a call of a session: "complete a (hit)". `cookie` is the list of hosts that the
  /// client has, which it has changed for the one that the answer brings.
  std::string visit(const std::string& cluster, std::string& cookie, std::uint64_t seed = 0);

  /// A call that runs, unless its pick did not complete or its gate is full.
  struct Call {
    std::string answer;
    CallEnd end;       ///< OK, or UNAVAILABLE if the address answers badly.
    PickerPtr picker;  ///< Who tracks the call lives as long as this.
    Tracking tracking;
  };

  /// As pick(), and the call is made; it runs until end().
  Call begin(const std::string& cluster, std::uint64_t seed = 0);

  /// The same of a call of a session.
  Call begin_visit(const std::string& cluster, const std::string& cookie);

  static void end(Call& call) { call.tracking.end(call.end); }

  /// Begins a call and ends it.
  std::string call(const std::string& cluster, std::uint64_t seed = 0);

  /// What the root published last, for picks of a router's; settle() lets their asks be heard.
  const PickerPtr& picker() const;

  void settle() { run(); }

  Instant now() const { return now_; }

  /// Calls to the address fail from now on, or succeed again. Its connection is none the worse.
  void answer_badly(const std::string& address, bool badly = true);

  /// The addresses that picks of `cluster` reach, over many seeds, in order.
  std::vector<std::string> reached(const std::string& cluster);

  /// How many connections to the address were ever made.
  int connections(const std::string& address) const;

  /// The paths of all policies below `path` (inclusive), with their names: "m/orders cds".
  std::vector<std::string> policies(const std::string& path) const;

  /// The state that the policy at `path` published last.
  ConnectivityState state(const std::string& path) const;

  int reresolutions() const { return reresolutions_; }

  /// What is there now, and should be gone when the configuration is empty.
  struct Population {
    std::size_t policies = 0;
    std::size_t subchannels = 0;
    std::size_t connected = 0;
    std::size_t maps = 0;
    std::size_t timers = 0;

    friend bool operator==(const Population&, const Population&) = default;
  };

  Population population() const;

  /// The addresses that have a connection now, as often as they have one.
  std::vector<std::string> connected() const;

  /// How many messages actors would have sent so far: to policies, and to subchannel maps.
  std::size_t messages() const { return messages_; }

  /// What happened since the last call, one line each.
  std::vector<std::string> take_log();

 private:
  enum class Network { kSilent, kUp, kDown };
  struct Node;
  struct Subchannel;
  struct Letter;
  struct Timer;
  class Asks;

  PickResult ask(const std::string& cluster,
                 std::uint64_t seed,
                 Hash hash = std::nullopt,
                 const SessionArgs* session = nullptr);
  Call begin(const PickResult& result);
  Node* start(Node* parent, const ChildName& name, const LbConfig& config);
  void stop(Node& node);
  void post(std::uint64_t node, LbEvent event);
  void run();
  void run(Node& node, LbEffect& effect);
  void publish(Node& node, Publish& publish);
  void tell_map(Node* owner, const SubchannelMapEvent& event);
  void run_map(Node& owner, const SubchannelMapEffect& effect);
  void tell_sweeper(Node& owner, const SweepEvent& event);
  void end_sweeper(Node& owner);
  void connect(Node& owner, const Address& address);
  void time_out(Node& owner, const Timer& timer);
  void set_state(Node& owner, const Address& address, ConnectivityState state);
  void close_map(Node& owner);
  static Node* map_of(Node& node);
  const Node* find(const std::string& path) const;

  void log(std::string line) { log_.push_back(std::move(line)); }

  const lb::PolicyOptions options_;
  std::map<std::uint64_t, Node*> nodes_;  ///< Alive, in the order of their start.
  std::unique_ptr<Node> root_;
  std::uint64_t last_node_ = 0;
  std::deque<Letter> letters_;

  struct Timer {
    std::uint64_t node = 0;
    TimerId timer;
    bool is_sweepers = false;  ///< That of the node's map.
    Address attempt = {};      ///< Not empty: an attempt of the node's map is over.
  };

  std::multimap<Instant, Timer> timers_;
  Instant now_{};
  Generation generation_ = 0;
  std::map<Address, Network> network_;
  std::map<Address, int> connections_;
  std::set<Address> bad_;
  bool attempts_end_ = false;
  int reresolutions_ = 0;
  std::size_t messages_ = 0;
  std::vector<std::string> log_;
};

}  // namespace signalbox::test
