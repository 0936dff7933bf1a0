// SPDX-License-Identifier: Apache-2.0
//
// PriorityModel — gRFC A56 and A115 step by step, as the documents tell them. It shares no code
// with lb/tree/priority; tests compare the policy with it.
//
//   the same events ─▶ [PriorityModel] ─▶ which children run, which timers, what is published
//
// Beyond the documents: a configuration reaches children by messages. It is half applied until each
// running child that it names has answered or died, or ten seconds are over. While a configuration
// is half applied:
//   - newer configurations wait, and only the newest is kept;
//   - children that are due for deletion stay until the next choice;
//   - reports of the child in use are published if the child is READY or IDLE.
//
// Standbys are beyond the documents, too. They are the next children below a child in use that is
// READY or IDLE. They run, and are asked to connect while they are IDLE. When a child that was
// READY is within its failover window, its first READY standby is in use instead.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "messages/connectivity.hpp"
#include "messages/ids.hpp"

namespace signalbox::test {

class PriorityModel {
 public:
  struct Options {
    bool keeps_removed = false;
    bool is_aggregate = false;  ///< The children are clusters. They have one standby at most.
    std::uint32_t standbys = 0;
  };

  explicit PriorityModel(const Options& options) : options_(options) {}

  void update(const std::vector<std::string>& priorities);
  /// The child has processed the last configuration sent to it.
  void answered(const std::string& child);
  void died(const std::string& child);
  void reported(const std::string& child, ConnectivityState state, const std::string& picker);
  /// The timer "failover/p0", "deactivation/p0" or "answers" fires when it is due.
  void fired(const std::string& timer);

  void time_is(Instant now) { now_ = now; }

  std::vector<std::string> running() const;
  /// The instants at which the timers fire.
  std::map<std::string, Instant> timers() const;

  struct Shown {
    ConnectivityState state = ConnectivityState::kConnecting;
    std::string picker;

    friend bool operator==(const Shown&, const Shown&) = default;
  };

  /// The last publication; nullopt: none so far.
  const std::optional<Shown>& shown() const { return shown_; }

  /// The child in use; nullopt: the list was empty at the last choice, or no choice was made yet.
  const std::optional<std::string>& in_use() const { return in_use_; }

  bool half_applied() const { return half_applied_; }

  /// The standbys that were asked to connect since the last call.
  std::set<std::string> take_woken() { return std::exchange(woken_, {}); }

 private:
  struct Child {
    Shown last{ConnectivityState::kConnecting, "queue"};
    bool good_since_failure = false;
    bool was_ready = false;
    std::optional<Instant> failover;
    std::optional<Instant> deletion;
    bool overdue = false;  ///< The child's deletion is due.
    bool owes = false;     ///< The child has not answered its last configuration yet.
    bool dead = false;
  };

  bool named(const std::string& child) const;
  void begin(const std::vector<std::string>& priorities);
  void finish_if_answered();
  void choose();
  Child& activate(std::size_t place);
  /// The place behind the last standby of the child at `place`.
  std::size_t end_of_standbys(std::size_t place) const;
  std::size_t ready_standby(std::size_t lost) const;
  void use(std::size_t place, bool deactivate_lower);
  void deactivate(Child& child) const;

  void show(const Shown& what) { shown_ = what; }

  const Options options_;
  Instant now_{};
  std::vector<std::string> order_;
  std::optional<std::vector<std::string>> next_;
  bool half_applied_ = false;
  std::optional<Instant> patience_;  ///< The end of the wait for answers.
  std::map<std::string, Child> children_;
  std::optional<std::string> in_use_;
  std::optional<Shown> shown_;
  std::set<std::string> woken_;
};

}  // namespace signalbox::test
