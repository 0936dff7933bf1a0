// SPDX-License-Identifier: Apache-2.0
//
// FakeFaults — the menu of one seed: the kinds of faults that may fire. Each kind has random
// numbers of its own.
//
//   seed ─▶ menu: each fault with 25 % ─▶ fires(fault): with the percentage of its FaultRow
//
// The random numbers of a fault depend on the seed and the fault's name alone. So another menu, or
// a new kind of fault, changes no draws of the other faults.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

#include "tests/support/fake_chance.hpp"

namespace signalbox::testing {

enum class Fault : std::uint8_t {
  kStreamReset,
  kStreamRefused,
  kStreamSilent,
  kStreamAnswersOnce,
  kStreamLost,
  kServerRestart,
  kServerSlow,
  kResponseDropped,
  kResponseRepeated,
  kResponseStale,
  kResponsePartial,
  kResponseOmits,
  kTypeLate,
  kBadResource,
  kGarbageResource,
  kConfigStorm,
  kPoisonConfig,
  kBackendRefuses,
  kBackendBlackholed,
  kBackendFlaps,
  kSwizzleClog,
  kConnectionReset,
  kConnectionShort,
  kHandshakeSlow,
  kHandshakeReset,
  kSettingsLate,
  kNamesFail,
  kNamesChange,
  kNamesEmpty,
  kActorKilled,
  kActorStarved,
  kMessagesLate,
  kFrozen,
  kSlowReaders,
  kMidPickSwap,
  kGraceSlow,
  kConfigOvertaken,
  kBackendErrs,
  kLoadStreamReset,
  kLoadStreamSilent,
  kReporterKilled,
  kLoadStreamStops,
  kLoadServerLies,
  kLoadServerLate,
  kLoadServerJumps,
  kReportLies,
  kReportLate,
  kReportJumps,
  kReportStops,
};

/// The occasions on which a fault may fire.
enum class Opportunity : std::uint8_t {
  kNow,   ///< At random times, by a timer of tests/sim/faults.
  kThere  ///< Each time that a fake, or the simulation, reaches a place where it can happen.
};

struct FaultRow {
  Fault fault;
  const char* name;
  unsigned percent;  ///< The probability that the fault fires when it is asked, in percent.
  Opportunity opportunity;
  const char* what;
};

const std::vector<FaultRow>& fault_table();

using Menu = std::set<Fault>;

/// The menu of a list "a,b,c" of faults; "none" is the empty menu. nullopt: the list names an
/// unknown fault.
absl::optional<Menu> menu_of(absl::string_view names);
std::string text_of(const Menu& menu);

class FakeFaults {
 public:
  /// The seed chooses the menu.
  explicit FakeFaults(std::uint64_t seed);
  FakeFaults(std::uint64_t seed, Menu menu);

  bool has(Fault fault) const { return !ended_ && menu_.contains(fault); }

  /// Draws whether the fault fires now. If it does, counts it.
  bool fires(Fault fault);

  /// The random numbers of this fault: fires() draws from them, and so do its details, for example
  /// a delay.
  FakeChance& dice(Fault fault) { return dice_.at(fault); }

  /// No fault fires from now on.
  void end() { ended_ = true; }

  const Menu& menu() const { return menu_; }

  /// How often each fault has fired. A fault that never fired has no entry.
  const std::map<Fault, std::uint64_t>& fired() const { return fired_; }

  std::uint64_t total() const;

 private:
  Menu menu_;
  std::map<Fault, FakeChance> dice_;
  std::map<Fault, std::uint64_t> fired_;
  bool ended_ = false;
};

}  // namespace signalbox::testing
