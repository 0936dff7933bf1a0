// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_faults.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace signalbox::testing {
namespace {

constexpr unsigned kActive = 25;  // The probability that a fault is on a seed's menu, in percent.

std::uint64_t hash_of(absl::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

Menu deal_menu(std::uint64_t seed) {
  Menu menu;
  for (const FaultRow& row : fault_table()) {
    FakeChance chance(seed ^ hash_of(row.name) ^ hash_of("is it on the menu"));
    if (chance.percent(kActive)) menu.insert(row.fault);
  }
  return menu;
}

const FaultRow& row_of(Fault fault) {
  return *std::ranges::find_if(fault_table(), [&](const auto& row) { return row.fault == fault; });
}

}  // namespace

const std::vector<FaultRow>& fault_table() {
  constexpr auto kNow = Opportunity::kNow;
  constexpr auto kThere = Opportunity::kThere;
  static const std::vector<FaultRow> table = {
      {Fault::kStreamReset, "stream-reset", 10, kNow, "the ADS stream is reset"},
      {Fault::kStreamRefused, "stream-refused", 25, kThere, "a stream is refused"},
      {Fault::kStreamSilent, "stream-silent", 25, kThere, "half-open: nothing is ever answered"},
      {Fault::kStreamAnswersOnce, "stream-answers-once", 25, kThere, "one response, then the end"},
      {Fault::kStreamLost, "stream-lost", 25, kThere, "the stream breaks instead of a response"},
      {Fault::kServerRestart, "server-restart", 10, kNow, "the control plane is another process"},
      {Fault::kServerSlow, "server-slow", 25, kThere, "a message takes up to six seconds"},
      {Fault::kResponseDropped, "response-dropped", 25, kThere, "sent seconds later instead"},
      {Fault::kResponseRepeated, "response-repeated", 25, kThere, "said again under a new nonce"},
      {Fault::kResponseStale, "response-stale", 25, kThere, "what was before; the newest later"},
      {Fault::kResponsePartial,
       "response-partial",
       25,
       kThere,
       "an RDS or EDS resource is missing"},
      {Fault::kResponseOmits, "response-omits", 25, kThere, "an LDS or CDS resource seems deleted"},
      {Fault::kTypeLate, "type-late", 25, kThere, "EDS before its CDS and the like"},
      {Fault::kBadResource, "bad-resource", 25, kNow, "a resource that is NACKed"},
      {Fault::kGarbageResource, "garbage-resource", 25, kNow, "bytes that are no such message"},
      {Fault::kConfigStorm, "config-storm", 25, kNow, "a dozen changes in one instant"},
      {Fault::kPoisonConfig, "poison-config", 5, kThere, "a policy dies of its configuration"},
      {Fault::kBackendRefuses, "backend-refuses", 25, kNow, "hosts refuse connections, or recover"},
      {Fault::kBackendBlackholed, "backend-blackholed", 25, kNow, "hosts are never heard of again"},
      {Fault::kBackendFlaps, "backend-flaps", 25, kNow, "a host goes down and up, five times"},
      {Fault::kSwizzleClog, "swizzle-clog", 10, kNow, "hosts stop one by one, return at random"},
      {Fault::kConnectionReset, "connection-reset", 25, kNow, "connections are reset"},
      {Fault::kConnectionShort, "connection-short", 25, kThere, "a connection lasts two seconds"},
      {Fault::kHandshakeSlow,
       "handshake-slow",
       25,
       kThere,
       "a handshake takes up to eight seconds"},
      {Fault::kHandshakeReset, "handshake-reset", 25, kThere, "a handshake is reset"},
      {Fault::kSettingsLate,
       "settings-late",
       25,
       kThere,
       "a server speaks up to nineteen seconds late"},
      {Fault::kNamesFail, "names-fail", 25, kThere, "nobody answers for a name"},
      {Fault::kNamesChange, "names-change", 25, kThere, "a name has other addresses"},
      {Fault::kNamesEmpty, "names-empty", 25, kThere, "a name has no address"},
      {Fault::kActorKilled, "actor-killed", 25, kNow, "an actor of any kind dies"},
      {Fault::kActorStarved, "actor-starved", 25, kNow, "an actor runs only when none else can"},
      {Fault::kMessagesLate, "messages-late", 3, kThere, "time goes on though somebody is ready"},
      {Fault::kFrozen, "frozen", 3, kNow, "no actor runs for up to five seconds"},
      {Fault::kSlowReaders, "slow-readers", 25, kThere, "a reader falls asleep in mid-pick"},
      {Fault::kMidPickSwap, "mid-pick-swap", 25, kThere, "the configuration changes in mid-pick"},
      {Fault::kGraceSlow, "grace-slow", 25, kThere, "a grace period takes seconds"},
      {Fault::kConfigOvertaken,
       "config-overtaken",
       25,
       kThere,
       "the next change comes before the last is answered"},
      {Fault::kBackendErrs, "backend-errs", 25, kNow, "a host answers calls with errors"},
      {Fault::kLoadStreamReset,
       "load-stream-reset",
       10,
       kNow,
       "the stream of load reports is reset"},
      {Fault::kLoadStreamSilent,
       "load-stream-silent",
       25,
       kThere,
       "no answer says which load to report"},
      {Fault::kReporterKilled, "reporter-killed", 10, kNow, "the actor of load reports dies"},
      {Fault::kLoadStreamStops,
       "load-stream-stops",
       5,
       kThere,
       "the server of load reports reads nothing more"},
      {Fault::kLoadServerLies, "load-server-lies", 25, kThere, "it asks for nonsense at first"},
      {Fault::kLoadServerLate, "load-server-late", 25, kThere, "it answers after seconds"},
      {Fault::kLoadServerJumps, "load-server-jumps", 25, kThere, "it asks for another interval"},
      {Fault::kReportLies, "report-lies", 25, kThere, "an endpoint reports nonsense as its load"},
      {Fault::kReportLate, "report-late", 25, kThere, "a report comes seconds later"},
      {Fault::kReportJumps, "report-jumps", 25, kThere, "a thousand times the load, or less"},
      {Fault::kReportStops, "report-stops", 10, kThere, "an endpoint reports nothing for a while"},
  };
  return table;
}

absl::optional<Menu> menu_of(absl::string_view names) {
  Menu menu;
  if (names == "none") return menu;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    const auto row =
        std::ranges::find_if(fault_table(), [&](const auto& known) { return known.name == name; });
    if (row == fault_table().end()) return absl::nullopt;
    menu.insert(row->fault);
  }
  return menu;
}

std::string text_of(const Menu& menu) {
  if (menu.empty()) return "none";
  return absl::StrJoin(
      menu, ",", [](std::string* out, Fault fault) { out->append(row_of(fault).name); });
}

FakeFaults::FakeFaults(std::uint64_t seed) : FakeFaults(seed, deal_menu(seed)) {}

FakeFaults::FakeFaults(std::uint64_t seed, Menu menu) : menu_(std::move(menu)) {
  for (const FaultRow& row : fault_table())
    dice_.emplace(row.fault, FakeChance(seed ^ hash_of(row.name)));
}

bool FakeFaults::fires(Fault fault) {
  if (!has(fault) || !dice(fault).percent(row_of(fault).percent)) return false;
  ++fired_[fault];
  return true;
}

std::uint64_t FakeFaults::total() const {
  std::uint64_t total = 0;
  for (const auto& [fault, count] : fired_)
    total += count;
  return total;
}

}  // namespace signalbox::testing
