// SPDX-License-Identifier: Apache-2.0
#include "lb/channel_core.hpp"

#include <algorithm>
#include <utility>

#include "messages/lb_config.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {

ChannelCore::ChannelCore(MakeRef make_ref,
                         const Snapshot& last,
                         std::uint64_t channel_id,
                         FaultOptions faults)
    : make_ref_(std::move(make_ref)),
      channel_id_(channel_id),
      faults_(std::move(faults)),
      generation_(last.generation),
      sequence_(last.sequence),
      predecessor_serves_(last.generation != 0),
      xds_(std::make_shared<const XdsConfig>()),
      notes_(last.notes) {
  if (last.clusters == nullptr) return;
  refs_ = *last.clusters;
  for (const auto& [name, ref] : refs_)
    kept_[name] = {ref, last.sequence};
  record_refs();
}

ChannelEffects ChannelCore::step(const ChannelEvent& event, Instant now) {
  now_ = now;
  std::visit([this](const auto& what) { handle(what); }, event);
  return std::exchange(effects_, {});
}

void ChannelCore::handle(const XdsConfigArrived& event) {
  notes_ = event.notes;
  const XdsConfigPtr before = std::exchange(arrived_, event.config);
  if (before != nullptr && before == event.config) {
    if (is_serving()) publish_soon();
    return;
  }
  xds_ = with_kept_clusters(event.config);
  Routes next;
  next.clusters = clusters_of(*xds_);
  for (const ClusterName& name : next.clusters) {
    const auto [kept, added] = kept_.try_emplace(name);
    if (added) kept->second.ref = make_ref_(name);
    refs_[name] = kept->second.ref;
  }
  record_refs();
  next.selector = make_config_selector(*xds_, refs_, channel_id_, faults_);
  next.origin = event.origin;
  next.arrived = now_;
  begin(std::move(next));
}

// New calls fail as soon as the root of the policy tree has answered the configuration that begin()
// sends. Clusters of running calls stay until those calls have ended.
void ChannelCore::handle(const XdsConfigLost& event) {
  arrived_ = nullptr;
  // Only the node ID of the notes is kept. The errors of calls that were routed before need it.
  // The text of event.status already includes the other notes.
  if (notes_ != nullptr)
    notes_ = std::make_shared<const ResolutionNotes>(ResolutionNotes{notes_->node, "", {}});
  Routes next;
  next.failure = event.status;
  begin(std::move(next));
}

void ChannelCore::record_refs() {
  published_refs_ = std::make_shared<const ClusterRefs>(refs_);
}

void ChannelCore::begin(Routes next) {
  next.generation = generation_ + 1;
  pending_ = std::move(next);
  refer();
  apply();
}

void ChannelCore::refer() {
  std::set<ClusterName> names;
  for (const auto& [name, unused] : kept_)
    names.insert(name);
  effects_.emplace_back(ReferToClusters{std::move(names)});
}

// Sends the policy tree all clusters that calls may use: those of the newest selector, and those
// that calls of earlier selectors may still use. cluster_manager, the root, makes one picker for
// all of them in the same step, so its answer waits for no child.
void ChannelCore::apply() {
  ++generation_;
  const Routes& newest = pending_ ? *pending_ : current_;
  ClusterManagerConfig config;
  for (const auto& [name, unused] : kept_) {
    ClusterManagerConfig::Child child;
    child.config = make_lb_config(CdsConfig{name});
    child.retiring = !newest.clusters.contains(name);
    config.children.emplace(name, std::move(child));
  }
  ConfigUpdated update;
  update.generation = generation_;
  update.config = make_lb_config(std::move(config));
  update.xds = xds_;
  effects_.emplace_back(ApplyToRoot{std::move(update)});
}

// A selector is published only with a picker of the selector's generation or a later one (A31-7).
// The picker that answers the pending selector, and a change of the published state, are published
// at once. Another picker waits for the end of a burst of events. Three kinds of pickers are not
// published. A picker of an older generation may lack clusters that the selector names. A restarted
// root is IDLE or CONNECTING at first, and the last picker is better. After a restart of the
// channel's actor, the snapshot from before serves until the root answers the new selector (C1 and
// C3 of channel_core.hpp).
void ChannelCore::handle(const RootPublished& event) {
  if (event.generation < current_.generation) return;
  const bool answers_pending = pending_ && event.generation >= pending_->generation;
  const bool beginning =
      event.state == ConnectivityState::kIdle || event.state == ConnectivityState::kConnecting;
  if (root_reviving_ && beginning && !answers_pending) return;
  root_reviving_ = false;
  const bool edge = root_.picker == nullptr || root_.state != event.state;
  root_ = event;
  if (answers_pending) {
    predecessor_serves_ = false;
    const Routes old = std::exchange(current_, *std::exchange(pending_, std::nullopt));
    publish();
    record_applied();
    retire_clusters(old);
    return;
  }
  if (predecessor_serves_) return;
  if (edge)
    publish();
  else
    publish_soon();
}

void ChannelCore::publish_soon() {
  if (!std::exchange(rebuild_pending_, true)) effects_.emplace_back(RebuildSoon{});
}

void ChannelCore::handle(const RebuildDue&) {
  if (std::exchange(rebuild_pending_, false)) publish();
}

void ChannelCore::handle(const RootDied&) {
  root_reviving_ = true;
}

// No configuration is left to start the root with. If no picker serves, calls fail (C4 of
// channel_core.hpp). The next configuration starts the root again, and the first picker that
// answers it ends this failure.
void ChannelCore::handle(const RootGivenUp&) {
  if (predecessor_serves_ || is_serving()) return;
  const bool is_lost = pending_ && !pending_->failure.ok();
  current_.failure = is_lost ? pending_->failure
                             : absl::UnavailableError(
                                   "the configuration could not be applied: the policy tree died "
                                   "of it, and is started again with the next one");
  publish();
}

void ChannelCore::publish() {
  rebuild_pending_ = false;
  Snapshot snapshot;
  snapshot.generation = current_.generation;
  snapshot.selector = current_.selector;
  snapshot.picker = root_.picker;
  snapshot.failure = current_.failure;
  snapshot.clusters = published_refs_;
  snapshot.notes = notes_;
  snapshot.sequence = ++sequence_;
  snapshot.record_sessions();
  const ConnectivityState state =
      current_.failure.ok() ? root_.state : ConnectivityState::kTransientFailure;
  effects_.emplace_back(PublishSnapshot{std::move(snapshot), state});
}

// Adds ConfigApplied to the snapshot that was just published, the first of its configuration. If
// the configuration was lost, there is nothing to add.
void ChannelCore::record_applied() {
  if (current_.selector == nullptr) return;
  ConfigApplied applied{current_.origin, now_ - current_.arrived, std::nullopt};
  if (const auto& since = applied.origin.response_at) applied.propagation = now_ - *since;
  std::get<PublishSnapshot>(effects_.back()).applied = std::move(applied);
}

// Records until when calls can choose the clusters that only the old selector names. The snapshot
// that was just published lacks that selector, but some picks may still read the snapshot before.
void ChannelCore::retire_clusters(const Routes& old) {
  for (const ClusterName& name : old.clusters) {
    if (!current_.clusters.contains(name)) kept_.at(name).selectable_until = sequence_ - 1;
  }
}

void ChannelCore::handle(const SnapshotGracePassed& event) {
  grace_passed_ = std::max(grace_passed_, event.sequence);
  drop_unreferenced();
}

void ChannelCore::handle(const TimerFired& event) {
  if (event.timer.generation != scan_timer_) return;
  scan_pending_ = false;
  drop_unreferenced();
}

// Whether no call can choose the cluster any more, because no selector that a pick may still read
// names it. Once this is true, the number of calls that hold the ClusterRef can only fall, so the
// cluster may be removed when that number is 0.
bool ChannelCore::may_go(const ClusterName& name, const Kept& kept) const {
  const bool wanted =
      current_.clusters.contains(name) || (pending_ && pending_->clusters.contains(name));
  return !wanted && kept.selectable_until <= grace_passed_;
}

void ChannelCore::drop_unreferenced() {
  std::vector<ClusterName> going;
  bool look_again = false;
  for (const auto& [name, kept] : kept_) {
    if (!may_go(name, kept)) continue;
    if (kept.ref->in_use()) {
      look_again = true;
    } else {
      going.push_back(name);
    }
  }
  for (const ClusterName& name : going) {
    kept_.erase(name);
    refs_.erase(name);
  }
  if (look_again && !std::exchange(scan_pending_, true)) {
    effects_.emplace_back(StartTimer{TimerId{"scan", ++scan_timer_}, kScanInterval});
  }
  if (going.empty()) return;
  record_refs();
  std::set<ClusterName> left;
  for (const auto& [name, unused] : kept_)
    left.insert(name);
  effects_.emplace_back(ReferToClusters{std::move(left)});
  apply();
}

void ChannelCore::handle(const IdleExitRequested&) {
  effects_.emplace_back(ExitIdleRoot{});
}

// The watcher may have made `arrived` before it received ReferToClusters, so clusters that the
// channel keeps (kept_) may be missing. Returns `arrived` with their last known configurations. A
// restarted actor knows none.
XdsConfigPtr ChannelCore::with_kept_clusters(const XdsConfigPtr& arrived) const {
  std::shared_ptr<XdsConfig> completed;
  const auto carry_over = [&](const ClusterName& name) {
    const auto last = xds_->clusters.find(name);
    if (arrived->clusters.contains(name) || last == xds_->clusters.end()) return;
    if (completed == nullptr) completed = std::make_shared<XdsConfig>(*arrived);
    completed->clusters.insert(*last);
    if (!last->second.ok()) return;
    const auto* aggregate = std::get_if<AggregateLeaves>(&(*last->second)->children);
    if (aggregate == nullptr) return;
    for (const ClusterName& leaf : aggregate->leaves) {
      const auto known = xds_->clusters.find(leaf);
      if (known != xds_->clusters.end()) completed->clusters.insert(*known);
    }
  };
  for (const auto& [name, unused] : kept_)
    carry_over(name);
  return completed == nullptr ? arrived : XdsConfigPtr(std::move(completed));
}

}  // namespace signalbox::lb
