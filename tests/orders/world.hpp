// SPDX-License-Identifier: Apache-2.0
//
// World — one target while configurations are applied: the real ChannelCore, the real policy tree,
// letters under way, and calls in flight.
//
//   steps() ─▶ the search chooses one ─▶ take() ─▶ broken(), and at rest broken_at_rest()
//                                    └─▶ key(): the state, for the search to know it again
//
// Cores cannot be copied, so a world cannot either. The search repeats a world's steps instead.
//
// The key of a world is the order in which each core received its letters. A core is equal to
// another if it got the same events (lb/policy.hpp), so worlds with one key are equal. The key also
// has what a core reads besides its letters (which clusters are in use), and what the letters of a
// stopped policy said. A grace or a scan that lets no cluster go is left out of the order: only the
// newest grace counts afterwards, and whether the timer runs.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lb/channel_core.hpp"
#include "tests/orders/calls.hpp"
#include "tests/orders/post.hpp"
#include "tests/orders/story.hpp"
#include "tests/orders/tree.hpp"

namespace signalbox::orders {

/// One thing that can happen next.
struct Step {
  enum class Kind : std::uint8_t {
    kConfigure,  ///< The next configuration reaches the channel.
    kDeliver,    ///< The next letter of `pair` is delivered.
    kConnect,    ///< `attempt` succeeds.
    kGrace,      ///< The channel hears that the oldest retired snapshot has no reader.
    kScan,       ///< The channel's timer fires.
    kRead,       ///< `call` begins, and reads the snapshot.
    kChoose,     ///< `call` takes its use of the cluster, and picks.
    kPickAgain,  ///< `call` waits, and picks in the newest snapshot.
    kEnd,        ///< `call` ends.
  };

  Kind kind = Kind::kDeliver;
  Post::Pair pair = {};
  Tree::Attempt attempt = {};
  std::size_t call = 0;
};

class World {
 public:
  explicit World(const Story& story);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// What can happen next, always in the same order. Empty: the world is at rest.
  std::vector<Step> steps() const;

  /// Precondition: `step` is one of steps(). Throws what a core throws. Then the world has taken
  /// half a step, and nothing may be asked of it.
  void take(const Step& step);

  /// The text of the step in plain words. Precondition: `step` is one of steps().
  std::string describe(const Step& step) const;

  /// Equal keys: equal worlds.
  std::string key() const;

  /// A key of the world that take(step) would lead to. Equal worlds may have several such keys,
  /// different worlds never have the same one.
  std::string key_after(const Step& step) const;

  /// The rule that does not hold, in words; empty: all rules hold.
  std::string broken() const;
  std::string broken_at_rest() const;

 private:
  void take_step(const Step& step);
  void deliver(const Letter& letter);
  void tell_channel(const lb::ChannelEvent& event);
  void run(lb::ChannelEffect& effect);
  void publish(lb::Snapshot snapshot);
  void plant_in(lb::Snapshot& snapshot) const;

  bool may_pass_grace() const;
  bool may_scan() const;
  void add_call_steps(std::vector<Step>& steps) const;

  Step step_of(Step::Kind kind) const;
  std::string token_of(const Step& step) const;
  ActorId group_of(const Step& step) const;
  std::string uses() const;
  void append_looks(std::string& key) const;
  void append_calls(std::string& key) const;
  std::string describe_letter(const Letter& letter) const;

  std::string broken_snapshot(const lb::Snapshot& snapshot) const;
  std::string broken_call(const Call& call) const;

  const Story& story_;
  /// All references that the channel has made, in order. They outlive the calls.
  std::vector<std::shared_ptr<const lb::ClusterRef>> refs_;
  Post post_;
  Tree tree_;
  Calls calls_;
  lb::ChannelCore channel_;
  std::size_t configured_ = 0;  ///< How many configurations have reached the channel.
  Generation ordered_ = 0;      ///< Of the newest ApplyToRoot.
  /// The sequence of each snapshot, from its publication until the channel hears of the grace of
  /// the snapshot before it.
  std::deque<std::uint64_t> graces_;
  std::optional<TimerId> scan_;  ///< The timer of the channel, while it runs.
  /// Something has happened since the timer started that a scan could find.
  bool is_scan_news_ = false;
  std::set<ClusterName> referred_;  ///< The last ReferToClusters.
  std::map<ActorId, std::string> histories_;
};

}  // namespace signalbox::orders
