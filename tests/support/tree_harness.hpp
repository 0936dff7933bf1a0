// SPDX-License-Identifier: Apache-2.0
//
// TreeHarness — a whole policy tree in one thread. The policies and subchannel maps are real.
// Simple code stands in for the actors that connect them, for the subchannels, and for the network.
//
//   apply, up, down, advance ─▶ events, first in first out, until none is left
//                            ─▶ log(), pick(), connections(), …
//
// The network: an address is silent until up() or down() names it. While it is silent, attempts to
// connect to it do not end, unless the test has called end_attempts().

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
  /// `retirement`: destroys connections and trackers when no call uses them any more. Null: they
  /// are destroyed with their last owner, so no call may outlive the picker that it read.
  explicit TreeHarness(const lb::PolicyOptions& options = {},
                       std::shared_ptr<Retirement> retirement = nullptr);
  ~TreeHarness();
  TreeHarness(const TreeHarness&) = delete;
  TreeHarness& operator=(const TreeHarness&) = delete;

  /// The options of the policies that start from now on.
  lb::PolicyOptions& options() { return options_; }

  /// Gives the root its next configuration.
  void apply(LbConfigPtr root, XdsConfigPtr xds);

  /// From now on attempts to connect to the address succeed, and those under way do so now.
  void up(const std::string& address);
  /// The address's connections break. Attempts to connect to it fail, including those under way.
  void down(const std::string& address);

  /// The server ends its connections at once, again and again: the address fails until up().
  void end_at_once(const std::string& address);

  /// The address becomes silent: its connections break, as when a keepalive finds the peer gone.
  void silence(const std::string& address);

  /// Attempts to connect to a silent address that begin from now on fail after their cluster's
  /// connect_timeout.
  void end_attempts() { attempts_end_ = true; }

  void advance(Duration duration);

  /// Each policy at `path` and below publishes its last state and picker again, as a restarted
  /// policy does.
  void repeat(const std::string& path);

  /// The hash of a call, for policies that need one; nullopt: a random hash.
  using Hash = std::optional<std::uint64_t>;

  /// The root picker's answer to one pick, as text. The asks of the pick are delivered to the
  /// policies.
  std::string pick(const std::string& cluster, std::uint64_t seed = 0, Hash hash = std::nullopt);

  /// As pick(), for a call of a session: "complete a (hit)". `cookie` is the client's list of
  /// hosts. If the answer has a list, that list replaces it.
  std::string visit(const std::string& cluster, std::string& cookie, std::uint64_t seed = 0);

  /// A call that was begun. It runs only if its pick completed and its circuit breaker has room.
  struct Call {
    std::string answer;
    CallEnd end;       ///< OK, or UNAVAILABLE if the address answers badly.
    PickerPtr picker;  ///< Owns the tracker of the call.
    Tracking tracking;
  };

  /// As pick(), and begins the call; it runs until end().
  Call begin(const std::string& cluster, std::uint64_t seed = 0);

  /// As begin(), for a call of a session.
  Call begin_visit(const std::string& cluster, const std::string& cookie);

  static void end(Call& call) { call.tracking.end(call.end); }

  /// Begins a call and ends it.
  std::string call(const std::string& cluster, std::uint64_t seed = 0);

  /// The root's last published picker, for tests with a router. settle() delivers the asks of the
  /// router's picks.
  const PickerPtr& picker() const;

  void settle() { run(); }

  Instant now() const { return now_; }

  /// While `badly` is true, calls to the address fail. Connections to it stay.
  void answer_badly(const std::string& address, bool badly = true);

  /// The different results of 200 picks of `cluster` with 200 different seeds, sorted. A complete
  /// pick gives its address; any other pick gives the text of pick().
  std::vector<std::string> reached(const std::string& cluster);

  /// The number of connections to the address that were made so far.
  int connections(const std::string& address) const;

  /// The path and the kind of each policy at `path` and below: "m/orders cds".
  std::vector<std::string> policies(const std::string& path) const;

  /// The state that the policy at `path` published last.
  ConnectivityState state(const std::string& path) const;

  int reresolutions() const { return reresolutions_; }

  /// The numbers of living objects. After an empty configuration only the root policy should be
  /// left.
  struct Population {
    std::size_t policies = 0;
    std::size_t subchannels = 0;
    std::size_t connected = 0;
    std::size_t maps = 0;
    std::size_t timers = 0;

    friend bool operator==(const Population&, const Population&) = default;
  };

  Population population() const;

  /// The addresses that have a connection now, once for each connection.
  std::vector<std::string> connected() const;

  /// The number of messages to policies and to subchannel maps that actors would have sent so far.
  std::size_t messages() const { return messages_; }

  /// The lines that were logged since the last call: policies that started or stopped, changes of
  /// subchannels, publications and applied generations of the root, orders to watch load, and most
  /// observations.
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
                 const SessionHint* session = nullptr);
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

  lb::PolicyOptions options_;
  const std::shared_ptr<Retirement> retirement_;
  std::map<std::uint64_t, Node*> nodes_;  ///< Alive nodes, in the order of their start.
  std::unique_ptr<Node> root_;
  std::uint64_t last_node_ = 0;
  std::deque<Letter> letters_;

  struct Timer {
    std::uint64_t node = 0;
    TimerId timer;
    bool is_sweepers = false;  ///< Whether it is the timer of the node's sweeper.
    Address attempt = {};      ///< Not empty: the timer ends an attempt to connect to this address.
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
