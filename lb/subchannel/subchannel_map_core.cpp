// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/subchannel_map_core.hpp"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

#include "lb/shrink.hpp"
#include "messages/each_address.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

EndpointState as_endpoint_state(ConnectivityState state) {
  switch (state) {
    case ConnectivityState::kReady:
      return EndpointState::kReady;
    case ConnectivityState::kConnecting:
      return EndpointState::kConnecting;
    case ConnectivityState::kTransientFailure:
      return EndpointState::kTransientFailure;
    case ConnectivityState::kIdle:
      break;
  }
  return EndpointState::kIdle;
}

std::size_t index(EndpointState state) {
  return static_cast<std::size_t>(state);
}

std::size_t index(HealthJudge judge) {
  return static_cast<std::size_t>(judge);
}

// The addresses that only one of the two tables has, or for which they have different reasons.
std::vector<Address> differences(const UnhealthyEndpoints* before, const UnhealthyEndpoints* now) {
  static const UnhealthyEndpoints kNone;
  const UnhealthyEndpoints& left = before == nullptr ? kNone : *before;
  const UnhealthyEndpoints& right = now == nullptr ? kNone : *now;
  std::vector<Address> changed;
  for (const auto& [address, why] : left) {
    const auto found = right.find(address);
    if (found == right.end() || found->second != why) changed.push_back(address);
  }
  for (const auto& [address, why] : right) {
    if (!left.contains(address)) changed.push_back(address);
  }
  return changed;
}

Instant later(Instant from, Duration wait) {
  return wait > Instant::max() - from ? Instant::max() : from + wait;
}

CallTrackerPtr tracker_in(const TrackEndpoints::Table* table, const Address& address) {
  if (table == nullptr) return nullptr;
  const auto found = table->find(address);
  return found == table->end() ? nullptr : found->second;
}

Address with_port(const Address& address, std::uint32_t port) {
  return Address(absl::StrCat(address.str().substr(0, address.str().rfind(':') + 1), port));
}

// The health checks of the address; nullopt: it is not probed.
std::optional<StartHealthChecks> probes_of(const SubchannelSettings& settings,
                                           const Address& address) {
  if (settings.health_checks == nullptr) return std::nullopt;
  StartHealthChecks probes{
      address, settings.health_checks, address, settings.cluster, settings.tls, settings.authority};
  if (settings.probe_exceptions == nullptr) return probes;
  const auto found = settings.probe_exceptions->find(address);
  if (found == settings.probe_exceptions->end()) return probes;
  if (found->second.is_exempt) return std::nullopt;
  if (found->second.port != 0) probes.probed = with_port(address, found->second.port);
  return probes;
}

bool same_probes(const std::optional<StartHealthChecks>& left,
                 const std::optional<StartHealthChecks>& right) {
  if (!left.has_value() || !right.has_value()) return left.has_value() == right.has_value();
  return left->probed == right->probed && left->cluster == right->cluster &&
         same_checks(left->checks, right->checks) && same_tls(left->tls, right->tls);
}

}  // namespace

SubchannelMapEffects SubchannelMapCore::step(const SubchannelMapEvent& event, Instant now) {
  now_ = now;
  changed_addresses_.clear();
  SubchannelMapEffects effects;
  std::visit([&](const auto& it) { on(it, effects); }, event);
  retire_unheld(effects);
  shrink_if_sparse(entries_);
  observe_counts(effects);
  return effects;
}

// --- events from holders ---

void SubchannelMapCore::on(const SubchannelAcquired& event, SubchannelMapEffects& effects) {
  Party* party = meet(event.holder);
  if (party == nullptr) return;
  const SessionHost* const for_sessions = session_host(event.address);
  if (is_keeper(*party)) {
    // The keeper (the policy that keeps sessions, I9) gets a hold only on addresses of its table.
    // Null: the table no longer has this address (A75-38).
    if (for_sessions == nullptr) return;
    const auto held = entries_.find(event.address);
    if (held != entries_.end() && !held->second.holds.empty() &&
        held->second.holds.front() != party)
      return effects.push_back(NotifyHolder{event.holder, report_of(event.address, held->second)});
  }
  const auto [found, is_new] = entries_.try_emplace(event.address);
  Entry& entry = found->second;
  if (is_new) {
    entry.raw.address = event.address;
    entry.since = now_;
    entry.priority = take_priority(event.address);
    count(entry, +1);
    ++changed_.added;
    recount(event.address, entry);
    effects.push_back(SpawnSubchannel{event.address, settings_});
    begin_probes(event.address, entry, effects);
  }
  const bool retaken = party->orphaned.erase(event.address) > 0;
  if (party->live.insert(event.address).second && !retaken) {
    const auto path_of = [](const Party* holder) -> const PolicyPath& { return holder->path; };
    entry.holds.insert(std::ranges::upper_bound(entry.holds, party->path, {}, path_of), party);
  }
  if (entry.lingers_in.has_value()) {
    lingering_.erase({*entry.lingers_in, event.address});
    entry.lingers_in.reset();
  }
  if (for_sessions != nullptr && !is_keeper(*party)) {
    end_hold(event.address, *keeper_->party);
    if (is_new) tell_keeper_of(event.address, effects);
  }
  effects.push_back(NotifyHolder{event.holder, report_of(event.address, entry)});
}

void SubchannelMapCore::on(const SubchannelReleased& event, SubchannelMapEffects& /*effects*/) {
  Party* party = meet(event.holder);
  if (party != nullptr && party->live.erase(event.address) > 0) unhold(event.address, *party);
}

void SubchannelMapCore::on(const SubchannelConnectAsked& event, SubchannelMapEffects& effects) {
  if (!entries_.contains(event.address)) return;
  const std::int64_t failing =
      counts_[index(EndpointState::kConnecting)] + counts_[index(EndpointState::kTransientFailure)];
  effects.push_back(ConnectSubchannel{event.address, failing < kMostInHurry});
}

void SubchannelMapCore::on(const HolderSettled& event, SubchannelMapEffects& effects) {
  Party* party = meet(event.holder);
  if (party == nullptr) return;
  const bool has_no_use_for_it = is_keeper(*party) && keeper_->incarnation < party->incarnation;
  if (has_no_use_for_it) dismiss_keeper(effects);
  release_orphans(*party);
}

void SubchannelMapCore::on(const HolderGone& event, SubchannelMapEffects& effects) {
  Party& party = parties_[event.holder.path];
  party.path = event.holder.path;
  if (event.holder.incarnation < party.incarnation) return;
  const bool first_report = party.present || event.holder.incarnation > party.incarnation;
  if (first_report) {
    orphan_all(party);
    party.incarnation = event.holder.incarnation;
    party.present = false;
  }
  if (event.died) return;
  if (is_keeper(party)) dismiss_keeper(effects);
  release_orphans(party);
}

// --- generations ---

void SubchannelMapCore::on(const MapGenerationStarted& event, SubchannelMapEffects& effects) {
  if (event.generation < started_) return;
  started_ = event.generation;
  // Only new subchannels get the new settings. Existing ones keep theirs, except for TLS, the
  // number of connections, and health checks (I7, I10 and I12 of subchannel_map_core.hpp).
  const SubchannelSettingsPtr before =
      std::exchange(settings_, std::make_shared<const SubchannelSettings>(event.settings));
  record_priorities(event.endpoints);
  if (!same_tls(before->tls, settings_->tls)) {
    replace_all(effects);
  } else if (before->max_connections != settings_->max_connections) {
    for (const Address& address : addresses())
      effects.push_back(LimitConnections{address, settings_->max_connections});
  }
  probe_anew(*before, effects);
}

void SubchannelMapCore::on(const MapGenerationApplied& event, SubchannelMapEffects& effects) {
  applied_ = std::max(applied_, std::min(event.generation, started_));
  for (auto& [path, party] : parties_) {
    if (party.gone_in < applied_) release_orphans(party);
  }
  forget_departed(effects);
  while (!lingering_.empty() && lingering_.begin()->first <= applied_) {
    const Address address = lingering_.begin()->second;
    if (!take_for_sessions(address)) stop(address, effects);
  }
}

// --- health, trackers and states of endpoints ---

void SubchannelMapCore::on(const EndpointHealthChanged& event, SubchannelMapEffects& effects) {
  const auto before = std::exchange(unhealthy_[index(event.judge)], event.unhealthy);
  for (const Address& address : differences(before.get(), event.unhealthy.get())) {
    const auto found = entries_.find(address);
    if (found == entries_.end()) continue;
    recount(address, found->second);
    notify(address, found->second, effects);
  }
}

void SubchannelMapCore::on(const HealthChecked& event, SubchannelMapEffects& effects) {
  const auto found = entries_.find(event.address);
  if (found == entries_.end() || !found->second.is_probed) return;
  Entry& entry = found->second;
  if (std::exchange(entry.probed, event.status) == event.status) return;
  recount(event.address, entry);
  notify(event.address, entry, effects);
}

// Only reports of READY addresses carry trackers, so only READY addresses with a new tracker are
// reported.
void SubchannelMapCore::on(const EndpointsTracked& event, SubchannelMapEffects& effects) {
  const auto before = std::exchange(trackers_, event.trackers);
  std::vector<Address> changed;
  for (const auto& [address, entry] : entries_) {
    if (entry.raw.state != ConnectivityState::kReady) continue;
    if (tracker_in(before.get(), address) != tracker_in(trackers_.get(), address))
      changed.push_back(address);
  }
  std::ranges::sort(changed);  // I5: the order must not depend on the hash table.
  for (const Address& address : changed)
    notify(address, entries_.at(address), effects);
}

void SubchannelMapCore::on(const SubchannelStateChanged& event, SubchannelMapEffects& effects) {
  const auto found = entries_.find(event.address);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.raw = event;
  recount(event.address, entry);
  notify(event.address, entry, effects);
}

// The reports that the dead actor could not send (I13 of subchannel_map_core.hpp).
void SubchannelMapCore::on(const SubchannelDied& event, SubchannelMapEffects& effects) {
  const auto found = entries_.find(event.address);
  if (found == entries_.end()) return;
  SubchannelStateChanged report;
  report.address = event.address;
  if (found->second.raw.state == ConnectivityState::kReady) on(report, effects);
  report.state = ConnectivityState::kTransientFailure;
  report.status = event.why;
  on(report, effects);
}

// --- sessions (I9) ---

void SubchannelMapCore::on(const SessionsKept& event, SubchannelMapEffects& effects) {
  Party* party = meet(event.keeper);
  if (party == nullptr) return;
  if (event.marks == nullptr) {
    if (is_keeper(*party)) dismiss_keeper(effects);
    return;
  }
  const std::optional<Keeper> before = std::exchange(
      keeper_, Keeper{party, event.keeper.incarnation, event.idle_timeout, event.marks});
  if (before) {
    for (const auto& [address, host] : *event.marks) {
      const auto known = before->marks->find(address);
      if (known != before->marks->end() && known->second.mark != host.mark)
        host.mark->inherit(*known->second.mark);
    }
    if (before->party != party) end_holds(*before->party, [](const Address&) { return true; });
    recount_all(*before->marks);
  }
  end_holds(*party, [&](const Address& address) {
    return session_host(address) == nullptr || entries_.at(address).holds.size() > 1;
  });
  party->live.merge(party->orphaned);  // The keeper takes its orphaned holds again.
  recount_all(*event.marks);
  const bool knows_them =
      before && before->party == party && before->incarnation == event.keeper.incarnation;
  tell_keeper(knows_them ? before->marks.get() : nullptr, effects);
  effects.push_back(ArmSweeper{event.idle_timeout});
}

void SubchannelMapCore::on(const SweepAsked& /*event*/, SubchannelMapEffects& effects) {
  if (!keeper_) return;
  const std::int64_t before = held_for_sessions();
  end_holds(*keeper_->party,
            [&](const Address& address) { return !is_in_use(*session_host(address)); });
  const auto released = static_cast<std::uint64_t>(before - held_for_sessions());
  Instant next_due = later(now_, keeper_->idle_timeout);
  for (const auto& [address, host] : *keeper_->marks) {
    if (is_in_use(host))
      next_due = std::min(next_due, later(host.mark->last_used(), keeper_->idle_timeout));
  }
  effects.push_back(Observe{SessionsSwept{settings_->cluster, released}});
  effects.push_back(FinishSweep{next_due});
}

void SubchannelMapCore::dismiss_keeper(SubchannelMapEffects& effects) {
  const Keeper keeper = *std::exchange(keeper_, std::nullopt);
  end_holds(*keeper.party, [](const Address&) { return true; });
  recount_all(*keeper.marks);
  effects.push_back(ArmSweeper{});
}

// Reports to the keeper (the policy that keeps sessions, I9) the states of the addresses that are
// new in its table. `known`: the previous table of the same run of its actor; null: there is none.
// With a previous table, addresses without a subchannel are reported too, as gone: an earlier
// report about them may still be on its way to the keeper.
void SubchannelMapCore::tell_keeper(const SessionMarks* known,
                                    SubchannelMapEffects& effects) const {
  std::vector<Address> news;
  for (const auto& [address, host] : *keeper_->marks) {
    if (known != nullptr ? !known->contains(address) : entries_.contains(address))
      news.push_back(address);
  }
  std::ranges::sort(news);  // I5: the order must not depend on the hash table.
  for (const Address& address : news)
    tell_keeper_of(address, effects);
}

void SubchannelMapCore::tell_keeper_of(const Address& address,
                                       SubchannelMapEffects& effects) const {
  const Party& party = *keeper_->party;
  if (!party.present) return;
  const Holder holder{party.path, party.incarnation};
  const auto found = entries_.find(address);
  if (found == entries_.end()) {
    effects.push_back(NotifyGone{holder, address});
  } else {
    effects.push_back(NotifyHolder{holder, report_of(address, found->second)});
  }
}

void SubchannelMapCore::end_hold(const Address& address, Party& party) {
  if (party.live.erase(address) + party.orphaned.erase(address) > 0) unhold(address, party);
}

void SubchannelMapCore::end_holds(Party& party, absl::FunctionRef<bool(const Address&)> is_over) {
  std::vector<Address> over;
  for (const auto* holds : {&party.live, &party.orphaned})
    std::ranges::copy_if(*holds, std::back_inserter(over), is_over);
  for (const Address& address : over)
    end_hold(address, party);
}

const SessionHost* SubchannelMapCore::session_host(const Address& address) const {
  if (!keeper_) return nullptr;
  const auto found = keeper_->marks->find(address);
  return found == keeper_->marks->end() ? nullptr : &found->second;
}

bool SubchannelMapCore::is_in_use(const SessionHost& host) const {
  return host.mark->used_after(now_ - keeper_->idle_timeout);
}

// Lets the keeper (the policy that keeps sessions, I9) hold the address, if the keeper's table has
// it and a session used it within the idle timeout. Returns whether the keeper holds the address
// now. Precondition: no holder has a hold on the address.
bool SubchannelMapCore::take_for_sessions(const Address& address) {
  const SessionHost* const host = session_host(address);
  if (host == nullptr || !is_in_use(*host)) return false;
  Entry& entry = entries_.at(address);
  Party& party = *keeper_->party;
  (party.present ? party.live : party.orphaned).insert(address);
  entry.holds.push_back(&party);
  if (entry.lingers_in.has_value()) lingering_.erase({*entry.lingers_in, address});
  entry.lingers_in.reset();
  return true;
}

std::int64_t SubchannelMapCore::held_for_sessions() const {
  if (!keeper_) return 0;
  return static_cast<std::int64_t>(keeper_->party->live.size() + keeper_->party->orphaned.size());
}

// --- records of holders ---

// The record of the holder (a policy), if this incarnation (run of the policy's actor) may act.
// Null: a later incarnation is known, or this one has ended.
SubchannelMapCore::Party* SubchannelMapCore::meet(const Holder& holder) {
  const auto [found, is_new] = parties_.try_emplace(holder.path);
  Party& party = found->second;
  if (is_new) {
    party.path = holder.path;
    party.incarnation = holder.incarnation;
  }
  if (holder.incarnation < party.incarnation) return nullptr;
  if (holder.incarnation > party.incarnation) {
    // `present`: the newer incarnation acts before the map has heard that the older one died.
    if (party.present) orphan_all(party);
    party.incarnation = holder.incarnation;
    party.present = true;
  }
  return party.present ? &party : nullptr;
}

void SubchannelMapCore::orphan_all(Party& party) {
  party.orphaned.merge(party.live);
  party.gone_in = started_;
}

void SubchannelMapCore::release_orphans(Party& party) {
  for (const Address& address : std::exchange(party.orphaned, {}))
    unhold(address, party);
}

void SubchannelMapCore::unhold(const Address& address, const Party& party) {
  const auto found = entries_.find(address);
  SIGNALBOX_INVARIANT(found != entries_.end(), "I1: what is held has an entry");
  auto& holds = found->second.holds;
  holds.erase(std::ranges::remove(holds, &party).begin(), holds.end());
  if (holds.empty()) unheld_.push_back(address);
}

// Forgets holders that ended before the last applied generation: no event of theirs can still
// arrive.
void SubchannelMapCore::forget_departed(SubchannelMapEffects& effects) {
  const auto is_past = [&](const Party& party) {
    return !party.present && party.gone_in < applied_ && party.orphaned.empty();
  };
  if (keeper_ && is_past(*keeper_->party)) dismiss_keeper(effects);
  std::erase_if(parties_, [&](const auto& item) { return is_past(item.second); });
}

// --- entries ---

void SubchannelMapCore::retire_unheld(SubchannelMapEffects& effects) {
  for (const Address& address : std::exchange(unheld_, {})) {
    const auto found = entries_.find(address);
    if (found == entries_.end() || !found->second.holds.empty()) continue;
    if (take_for_sessions(address)) continue;
    if (started_ > applied_) {
      found->second.lingers_in = started_;
      lingering_.emplace(started_, address);
    } else {
      stop(address, effects);
    }
  }
}

void SubchannelMapCore::stop(const Address& address, SubchannelMapEffects& effects) {
  const auto found = entries_.find(address);
  SIGNALBOX_INVARIANT(found != entries_.end() && found->second.holds.empty(),
                      "I1: only a subchannel without a hold is stopped");
  if (found->second.lingers_in.has_value()) lingering_.erase({*found->second.lingers_in, address});
  count(found->second, -1);
  ++changed_.removed;
  changed_addresses_.push_back(address);
  if (found->second.is_probed) effects.push_back(StopHealthChecks{address});
  effects.push_back(StopSubchannel{address});
  if (found->second.priority != kNoPriority) absent_.emplace(address, found->second.priority);
  entries_.erase(found);
  if (session_host(address) != nullptr) tell_keeper_of(address, effects);
}

std::vector<Address> SubchannelMapCore::addresses() const {
  std::vector<Address> all;
  for (const auto& [address, entry] : entries_)
    all.push_back(address);
  std::ranges::sort(all);  // I5: the order must not depend on the hash table.
  return all;
}

// Replaces every subchannel by an IDLE one (I7 of subchannel_map_core.hpp). Holders get an IDLE
// report, as if the server had closed the connection, even if the subchannel was IDLE before. A
// request to connect that was on its way to the old subchannel is lost, and the report makes the
// holder repeat it.
void SubchannelMapCore::replace_all(SubchannelMapEffects& effects) {
  for (const Address& address : addresses()) {
    Entry& entry = entries_.at(address);
    effects.push_back(StopSubchannel{address});
    effects.push_back(SpawnSubchannel{address, settings_});
    entry.raw = SubchannelStateChanged{};
    entry.raw.address = address;
    recount(address, entry);
    notify(address, entry, effects);
  }
}

void SubchannelMapCore::begin_probes(const Address& address,
                                     Entry& entry,
                                     SubchannelMapEffects& effects) const {
  auto probes = probes_of(*settings_, address);
  entry.is_probed = probes.has_value();
  if (probes.has_value()) effects.push_back(*std::move(probes));
}

// After new settings: starts, changes or ends the probes of each address for which the old and the
// new settings have different probes (I10 of subchannel_map_core.hpp).
void SubchannelMapCore::probe_anew(const SubchannelSettings& before,
                                   SubchannelMapEffects& effects) {
  const bool is_as_before = same_checks(before.health_checks, settings_->health_checks) &&
                            same_exceptions(before.probe_exceptions, settings_->probe_exceptions) &&
                            same_tls(before.tls, settings_->tls);
  if (is_as_before) return;
  for (const Address& address : addresses()) {
    Entry& entry = entries_.at(address);
    if (same_probes(probes_of(before, address), probes_of(*settings_, address))) continue;
    const bool was_probed = entry.is_probed;
    begin_probes(address, entry, effects);
    if (entry.is_probed || !was_probed) continue;
    effects.push_back(StopHealthChecks{address});
    if (std::exchange(entry.probed, absl::OkStatus()).ok()) continue;
    recount(address, entry);
    notify(address, entry, effects);
  }
}

// --- reports to holders, counts ---

void SubchannelMapCore::notify(const Address& address,
                               const Entry& entry,
                               SubchannelMapEffects& effects) const {
  const bool is_kept = session_host(address) != nullptr;
  if (is_kept) tell_keeper_of(address, effects);
  for (const Party* party : entry.holds) {
    if (party->live.contains(address) && !(is_kept && is_keeper(*party))) {
      effects.push_back(
          NotifyHolder{Holder{party->path, party->incarnation}, report_of(address, entry)});
    }
  }
}

SubchannelStateChanged SubchannelMapCore::report_of(const Address& address,
                                                    const Entry& entry) const {
  SubchannelStateChanged change = entry.raw;
  if (change.state == ConnectivityState::kReady)
    change.tracker = tracker_in(trackers_.get(), address);
  const absl::Status* verdict = verdict_on(address, entry);
  if (verdict == nullptr) return change;
  change.healthy = false;
  if (change.state != ConnectivityState::kTransientFailure) change.status = *verdict;
  return change;
}

// Why `judge` (outlier detection or health checks) finds the address unfit; null: it does not.
const absl::Status* SubchannelMapCore::verdict_of(HealthJudge judge,
                                                  const Address& address,
                                                  const Entry& entry) const {
  if (judge == HealthJudge::kHealthChecks && !entry.probed.ok()) return &entry.probed;
  const auto& table = unhealthy_[index(judge)];
  if (table == nullptr) return nullptr;
  const auto found = table->find(address);
  return found == table->end() ? nullptr : &found->second;
}

// Why the address is unfit: by outlier detection, else by health checks; null: it is fit.
const absl::Status* SubchannelMapCore::verdict_on(const Address& address,
                                                  const Entry& entry) const {
  const absl::Status* const ejection = verdict_of(HealthJudge::kOutlierDetection, address, entry);
  if (ejection != nullptr) return ejection;
  return verdict_of(HealthJudge::kHealthChecks, address, entry);
}

void SubchannelMapCore::recount(const Address& address, Entry& entry) {
  changed_addresses_.push_back(address);
  const EndpointState state = state_of(address, entry);
  if (state == entry.counted) return;
  if (state == EndpointState::kEjected) ++entry.ejections;
  count(entry, -1);
  entry.counted = state;
  entry.since = now_;
  count(entry, +1);
}

void SubchannelMapCore::count(const Entry& entry, std::int64_t amount) {
  counts_[index(entry.counted)] += amount;
  counts_of_[entry.priority][index(entry.counted)] += amount;
}

// Calls `see` for each address of the configuration, in the order of the priorities. Unhealthy
// endpoints count too, because some policies connect to them.
void SubchannelMapCore::each_address(
    absl::FunctionRef<void(const Address&, PriorityNumber)> see) const {
  if (endpoints_ == nullptr) return;
  static constexpr std::size_t kLast = kNoPriority - 1;
  signalbox::each_address(*endpoints_, [see](const Address& address, std::size_t priority) {
    see(address, static_cast<PriorityNumber>(std::min(priority, kLast)));
  });
}

// Records in which priority each address is (I11 of subchannel_map_core.hpp).
void SubchannelMapCore::record_priorities(const EndpointsPtr& endpoints) {
  if (endpoints == endpoints_) return;
  endpoints_ = endpoints;
  absent_.clear();
  ++recorded_;
  each_address([this](const Address& address, PriorityNumber priority) {
    const auto found = entries_.find(address);
    if (found == entries_.end()) {
      absent_.emplace(address, priority);
    } else if (std::exchange(found->second.recorded, recorded_) != recorded_) {
      set_priority(found->second, priority);
    }
  });
  for (auto& [address, entry] : entries_) {
    if (entry.recorded != recorded_) set_priority(entry, kNoPriority);
  }
}

void SubchannelMapCore::set_priority(Entry& entry, PriorityNumber priority) {
  if (entry.priority == priority) return;
  count(entry, -1);
  entry.priority = priority;
  count(entry, +1);
}

// The priority of an address that is about to get an entry.
SubchannelMapCore::PriorityNumber SubchannelMapCore::take_priority(const Address& address) {
  const auto found = absent_.find(address);
  if (found == absent_.end()) return kNoPriority;
  const PriorityNumber priority = found->second;
  absent_.erase(found);
  return priority;
}

std::vector<std::pair<Address, std::optional<SubchannelSeen>>> SubchannelMapCore::take_changes() {
  std::vector<std::pair<Address, std::optional<SubchannelSeen>>> changes;
  changes.reserve(changed_addresses_.size());
  for (Address& address : std::exchange(changed_addresses_, {})) {
    const auto found = entries_.find(address);
    std::optional<SubchannelSeen> seen;
    if (found != entries_.end()) {
      const Entry& entry = found->second;
      const SubchannelStateChanged report = report_of(address, entry);
      seen = SubchannelSeen{entry.counted,
                            entry.raw.state,
                            entry.since,
                            report.status,
                            entry.ejections,
                            entry.raw.connection};
    }
    changes.emplace_back(std::move(address), std::move(seen));
  }
  return changes;
}

void SubchannelMapCore::recount_all(const SessionMarks& marks) {
  for (const auto& [address, host] : marks) {
    const auto found = entries_.find(address);
    if (found == entries_.end()) continue;
    const EndpointState before = found->second.counted;
    recount(address, found->second);
    // recount() has listed the address as changed. An address in the same state is unlisted.
    if (found->second.counted == before) changed_addresses_.pop_back();
  }
}

EndpointState SubchannelMapCore::state_of(const Address& address, const Entry& entry) const {
  if (verdict_of(HealthJudge::kOutlierDetection, address, entry) != nullptr)
    return EndpointState::kEjected;
  if (verdict_of(HealthJudge::kHealthChecks, address, entry) != nullptr)
    return EndpointState::kUnhealthy;
  const SessionHost* const host = session_host(address);
  if (host != nullptr && host->draining) return EndpointState::kDraining;
  return as_endpoint_state(entry.raw.state);
}

void SubchannelMapCore::observe_counts(SubchannelMapEffects& effects) {
  const std::int64_t held = held_for_sessions();
  if (held != held_observed_) {
    effects.push_back(
        Observe{SessionsHeld{settings_->cluster, held, std::exchange(held_observed_, held)}});
  }
  if (changed_.added != 0 || changed_.removed != 0) {
    changed_.cluster = settings_->cluster;
    effects.push_back(Observe{std::exchange(changed_, {})});
  }
  // If the configuration has no endpoints, zeros are observed, so that metrics show the cluster.
  const bool is_empty = endpoints_ != nullptr && absent_.empty() && entries_.empty();
  if (is_empty && observed_.empty()) {
    effects.push_back(Observe{EndpointsCounted{settings_->cluster, {}, {}}});
    observed_[kNoPriority] = {};
  }
  for (const auto& [priority, counts] : counts_of_) {
    const auto known = observed_.find(priority);
    if (known != observed_.end() && known->second == counts) continue;
    EndpointCounts& before = observed_[priority];
    effects.push_back(Observe{EndpointsCounted{
        settings_->cluster,
        counts,
        std::exchange(before, counts),
        priority == kNoPriority ? std::nullopt : std::optional<std::uint32_t>(priority)}});
  }
}

// --- invariants ---

void SubchannelMapCore::check_absent(
    const absl::flat_hash_map<Address, PriorityNumber>& priorities) const {
  std::size_t absent = 0;
  for (const auto& [address, priority] : priorities) {
    if (entries_.contains(address)) continue;
    ++absent;
    const auto found = absent_.find(address);
    SIGNALBOX_INVARIANT(found != absent_.end() && found->second == priority,
                        "I11: the first priority of an address without an entry");
  }
  SIGNALBOX_INVARIANT(absent == absent_.size(), "I11: absent addresses have no entry");
}

void SubchannelMapCore::check_invariants() const {
  std::size_t holds = 0;
  std::size_t lingering = 0;
  EndpointCounts counts{};
  std::map<PriorityNumber, EndpointCounts> counts_of;
  absl::flat_hash_map<Address, PriorityNumber> priorities;
  each_address([&priorities](const Address& address, PriorityNumber priority) {
    priorities.emplace(address, priority);
  });
  for (const auto& [address, entry] : entries_) {
    SIGNALBOX_INVARIANT(entry.holds.empty() == entry.lingers_in.has_value(),
                        "I1: an entry is held, or it lingers");
    if (entry.lingers_in.has_value()) {
      ++lingering;
      SIGNALBOX_INVARIANT(
          *entry.lingers_in > applied_ && lingering_.contains({*entry.lingers_in, address}),
          "I3: what lingers waits for a generation in progress");
    }
    for (std::size_t at = 0; at < entry.holds.size(); ++at) {
      const Party& party = *entry.holds[at];
      SIGNALBOX_INVARIANT(at == 0 || entry.holds[at - 1]->path < party.path,
                          "I2, I5: one hold per path, in order of path");
      SIGNALBOX_INVARIANT(party.live.contains(address) != party.orphaned.contains(address),
                          "I2: a hold is live or orphaned");
    }
    holds += entry.holds.size();
    ++counts[index(entry.counted)];
    ++counts_of[entry.priority][index(entry.counted)];
    const auto named = priorities.find(address);
    SIGNALBOX_INVARIANT(entry.priority == (named == priorities.end() ? kNoPriority : named->second),
                        "I11: the first priority");
    SIGNALBOX_INVARIANT(entry.is_probed == probes_of(*settings_, address).has_value() &&
                            (entry.is_probed || entry.probed.ok()),
                        "I10: which addresses are probed, and with which result");
  }
  check_absent(priorities);
  for (const auto& [path, party] : parties_) {
    SIGNALBOX_INVARIANT(party.present || party.live.empty(),
                        "I4: the holds of a party that is gone are orphaned");
    SIGNALBOX_INVARIANT(party.orphaned.empty() || party.gone_in >= applied_,
                        "I4: orphaned holds end with a later generation");
    SIGNALBOX_INVARIANT(holds >= party.live.size() + party.orphaned.size(),
                        "I1: what is held has an entry");
    holds -= party.live.size() + party.orphaned.size();
  }
  SIGNALBOX_INVARIANT(holds == 0, "I1: every hold belongs to a party");
  check_keeper();
  SIGNALBOX_INVARIANT(lingering == lingering_.size(), "I3: every listed subchannel lingers");
  SIGNALBOX_INVARIANT(counts == counts_, "the counts are those of the entries");
  for (const auto& [priority, shown] : counts_of_) {
    SIGNALBOX_INVARIANT(shown == counts_of[priority], "I11: counts are those of the priority");
  }
}

void SubchannelMapCore::check_keeper() const {
  if (!keeper_) return;
  const auto known = parties_.find(keeper_->party->path);
  SIGNALBOX_INVARIANT(known != parties_.end() && &known->second == keeper_->party,
                      "I9: the keeper is a holder that is known");
  for (const auto* holds : {&keeper_->party->live, &keeper_->party->orphaned}) {
    for (const Address& address : *holds) {
      SIGNALBOX_INVARIANT(session_host(address) != nullptr, "I9: it holds but what it keeps");
      SIGNALBOX_INVARIANT(entries_.at(address).holds.size() == 1,
                          "I9: owned by the keeper, or by others, never by both");
    }
  }
}

}  // namespace signalbox::lb
