// SPDX-License-Identifier: Apache-2.0
//
// FakeFaults — the fault menu of one seed, and each fault's own dice.
//
//   seed ─▶ menu: a quarter of the faults ─▶ fires(fault) at each opportunity: 25 % as a rule
//
// Each fault has its own dice, seeded by the seed and the fault's name. A fault that leaves the
// menu, or joins the list, therefore changes no other fault's draws.

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
};

/// When a fault may fire.
enum class Opportunity : std::uint8_t {
  kNow,   ///< From time to time, by itself.
  kThere  ///< At the fakes' opportunities: at each response, each connection, each call.
};

struct FaultRow {
  Fault fault;
  const char* name;
  unsigned percent;  ///< How often it fires when it may.
  Opportunity opportunity;
  const char* what;
};

const std::vector<FaultRow>& fault_table();

using Menu = std::set<Fault>;

/// "a,b,c"; "none" is the empty menu. nullopt: there is no such fault.
absl::optional<Menu> menu_of(absl::string_view names);
std::string text_of(const Menu& menu);

class FakeFaults {
 public:
  /// The seed's own menu.
  explicit FakeFaults(std::uint64_t seed);
  FakeFaults(std::uint64_t seed, Menu menu);

  bool has(Fault fault) const { return !ended_ && menu_.contains(fault); }

  /// Draws whether the fault strikes at this opportunity. Counts the strikes.
  bool fires(Fault fault);

  /// The dice that decide how this fault strikes.
  FakeChance& dice(Fault fault) { return dice_.at(fault); }

  /// No fault fires from now on.
  void end() { ended_ = true; }

  const Menu& menu() const { return menu_; }

  /// How often each fault of the menu has fired.
  const std::map<Fault, std::uint64_t>& fired() const { return fired_; }

  std::uint64_t total() const;

 private:
  Menu menu_;
  std::map<Fault, FakeChance> dice_;
  std::map<Fault, std::uint64_t> fired_;
  bool ended_ = false;
};

}  // namespace signalbox::testing
