// SPDX-License-Identifier: Apache-2.0
//
// FakeReclaimer — a Reclaimer (it destroys old snapshots once no call reads them) in virtual time.
//
//   channel actor ─▶ retire(snapshot) ─▶ a random delay, and every reader gone ─▶ destroyed, done()
//   shared_ptr deleter ─▶ retire(tracked) ─▶ destroyed by sweep() once no call uses it
//
// A reader is a simulated call that has read the snapshot and not yet taken its references.

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "actors/reclaimer.hpp"
#include "tests/support/fake_chance.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_faults.hpp"

namespace signalbox::testing {

class FakeReclaimer final : public actors::Reclaimer {
 public:
  FakeReclaimer(FakeClock& clock, FakeChance& chance, FakeFaults& faults)
      : clock_(clock), chance_(chance), faults_(faults) {}

  ~FakeReclaimer() override { end_world(); }

  void retire(std::unique_ptr<const lb::Snapshot> old, std::function<void()> done) override;
  void retire(std::unique_ptr<const Tracked> object) override;

  std::uint64_t begin_read();
  void end_read(std::uint64_t reader);

  /// Destroys retired objects that no call uses any more.
  void sweep();

  /// Whether this snapshot is retired and not yet destroyed.
  bool is_pending(const lb::Snapshot* snapshot) const;

  std::size_t pending_snapshots() const { return snapshots_.size(); }

  std::size_t pending_objects() const { return objects_.size(); }

  /// The simulated world ends: destroys all retired snapshots and objects. A snapshot that is
  /// retired later is destroyed at once.
  void end_world();

 private:
  struct Retired {
    std::unique_ptr<const lb::Snapshot> snapshot;
    std::function<void()> done;
    /// Readers with smaller numbers began before the retirement, and may see the snapshot.
    std::uint64_t readers_before = 0;
    bool delayed = true;
  };

  void delay_over(std::uint64_t number);
  void pass();

  FakeClock& clock_;
  FakeChance& chance_;
  FakeFaults& faults_;
  bool ended_ = false;
  std::uint64_t next_reader_ = 1;
  std::set<std::uint64_t> readers_;
  std::uint64_t first_number_ = 0;  ///< The number of snapshots_.front().
  std::deque<Retired> snapshots_;
  std::vector<std::unique_ptr<const Tracked>> objects_;
};

}  // namespace signalbox::testing
