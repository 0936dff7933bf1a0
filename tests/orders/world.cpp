// SPDX-License-Identifier: Apache-2.0
#include "tests/orders/world.hpp"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/pick/pickers.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"
#include "tests/support/scripted_picker.hpp"

namespace signalbox::orders {
namespace {

// The content of a letter, as far as the root can tell, when its sender may have been stopped.
std::string content_of(const Letter& letter) {
  const auto* event = std::get_if<LbEvent>(&letter.content);
  if (event == nullptr) return "";
  if (const auto* applied = std::get_if<ChildApplied>(event))
    return absl::StrCat("=", applied->generation, ";");
  const auto* changed = std::get_if<ChildStateChanged>(event);
  if (changed == nullptr) return "";
  const PickResult result = changed->picker->pick({});
  const auto* complete = std::get_if<Complete>(&result.outcome);
  return absl::StrCat("!", complete == nullptr ? "-" : complete->connection->address().str(), ";");
}

// A picker that knows only this cluster.
PickerPtr picker_of(const ClusterName& cluster, PickerPtr picker) {
  PickerPtr unknown = lb::make_drop_picker(absl::InternalError("planted"));
  return testing::answering([cluster, picker = std::move(picker), unknown](const PickArgs& args) {
    return (*args.cluster == cluster ? picker : unknown)->pick(args);
  });
}

}  // namespace

World::World(const Story& story)
    : story_(story),
      post_(story.mailboxes),
      tree_(post_, story.plant),
      calls_(story),
      channel_(
          [this](const ClusterName& cluster) {
            refs_.push_back(std::make_shared<const lb::ClusterRef>(cluster, nullptr));
            return refs_.back();
          },
          lb::Snapshot{}) {}

// --- what can happen --------------------------------------------------------------

Step World::step_of(Step::Kind kind) const {
  Step step;
  step.kind = kind;
  return step;
}

// The reclaimer waits for the readers of a retired snapshot, and of those retired before.
bool World::may_pass_grace() const {
  if (graces_.empty() || story_.plant == Plant::kGraceIsLost) return false;
  return story_.plant == Plant::kGraceIgnoresReaders || !calls_.is_older_read(graces_.front());
}

// A scan that finds what the scan before found starts the timer again and changes nothing else, so
// it is left out. Otherwise the timer could fire for ever while a call runs.
bool World::may_scan() const {
  return scan_.has_value() && is_scan_news_;
}

std::vector<Step> World::steps() const {
  std::vector<Step> steps;
  for (const Post::Pair& pair : post_.pairs()) {
    steps.push_back(step_of(Step::Kind::kDeliver));
    steps.back().pair = pair;
  }
  if (configured_ < story_.configurations.size()) steps.push_back(step_of(Step::Kind::kConfigure));
  for (const Tree::Attempt& attempt : tree_.attempts()) {
    steps.push_back(step_of(Step::Kind::kConnect));
    steps.back().attempt = attempt;
  }
  if (may_pass_grace()) steps.push_back(step_of(Step::Kind::kGrace));
  if (may_scan()) steps.push_back(step_of(Step::Kind::kScan));
  add_call_steps(steps);
  return steps;
}

void World::add_call_steps(std::vector<Step>& steps) const {
  const auto add = [&](bool may, Step::Kind kind, std::size_t call) {
    if (!may) return;
    steps.push_back(step_of(kind));
    steps.back().call = call;
  };
  for (std::size_t call = 0; call < calls_.all().size(); ++call) {
    add(calls_.may_read(call), Step::Kind::kRead, call);
    add(calls_.may_choose(call), Step::Kind::kChoose, call);
    add(calls_.may_pick_again(call), Step::Kind::kPickAgain, call);
    add(calls_.may_end(call), Step::Kind::kEnd, call);
  }
}

// --- steps --------------------------------------------------------------------------

void World::take(const Step& step) {
  const std::string token = token_of(step);
  const Generation before = ordered_;
  const bool is_look = step.kind == Step::Kind::kGrace || step.kind == Step::Kind::kScan;
  const ActorId group = token.empty() ? kChannel : group_of(step);
  take_step(step);
  if (!is_look || ordered_ != before) histories_[group] += token;
}

void World::take_step(const Step& step) {
  switch (step.kind) {
    case Step::Kind::kConfigure: {
      const Configuration& next = story_.configurations[configured_++];
      const bool is_last = configured_ == story_.configurations.size();
      if (is_last && story_.plant == Plant::kLastConfigurationIsLost) return;
      return tell_channel(lb::XdsConfigArrived{next.xds});
    }
    case Step::Kind::kDeliver:
      return deliver(post_.take(step.pair));
    case Step::Kind::kConnect:
      return tree_.connect(step.attempt);
    case Step::Kind::kGrace: {
      const std::uint64_t sequence = graces_.front();
      graces_.pop_front();
      return tell_channel(lb::SnapshotGracePassed{sequence - 1});
    }
    case Step::Kind::kScan:
      return tell_channel(TimerFired{*std::exchange(scan_, std::nullopt)});
    case Step::Kind::kRead:
      return calls_.read(step.call);
    case Step::Kind::kChoose:
      return calls_.choose(step.call);
    case Step::Kind::kPickAgain:
      return calls_.pick_again(step.call);
    case Step::Kind::kEnd:
      is_scan_news_ = true;
      return calls_.end(step.call);
  }
}

void World::deliver(const Letter& letter) {
  if (letter.to != kChannel) return tree_.deliver(letter);
  const auto& event = std::get<LbEvent>(letter.content);
  if (const auto* changed = std::get_if<ChildStateChanged>(&event)) {
    const bool is_lost = story_.plant == Plant::kReadyIsLost;
    if (is_lost && changed->state == ConnectivityState::kReady) return;
    const bool newer = story_.plant == Plant::kAnswerIsTakenForNewer;
    const Generation generation = newer ? ordered_ : changed->generation;
    tell_channel(lb::RootPublished{changed->state, changed->picker, generation});
  } else {
    tell_channel(RebuildDue{});
  }
}

void World::tell_channel(const lb::ChannelEvent& event) {
  is_scan_news_ = true;
  for (lb::ChannelEffect& effect : channel_.step(event, kNow))
    run(effect);
}

void World::run(lb::ChannelEffect& effect) {
  std::visit(Overloaded{
                 [&](lb::ApplyToRoot& it) {
                   ordered_ = it.update.generation;
                   post_.send({kChannel, kRoot, LbEvent{std::move(it.update)}});
                 },
                 [&](lb::PublishSnapshot& it) { publish(std::move(it.snapshot)); },
                 [&](lb::ReferToClusters& it) {
                   if (story_.plant != Plant::kWatcherForgetsNothing) referred_.clear();
                   referred_.merge(it.clusters);
                 },
                 [&](RebuildSoon&) { post_.send({kChannel, kChannel, LbEvent{RebuildDue{}}}); },
                 [&](StartTimer& it) {
                   scan_ = it.timer;
                   is_scan_news_ = false;
                 },
                 [](lb::ExitIdleRoot&) {},
             },
             effect);
}

void World::publish(lb::Snapshot snapshot) {
  plant_in(snapshot);
  const SnapshotPtr& last = calls_.newest();
  SIGNALBOX_INVARIANT(last == nullptr || snapshot.sequence > last->sequence,
                      "the sequence rises with each publication");
  SIGNALBOX_INVARIANT(last == nullptr || snapshot.generation >= last->generation,
                      "the generation of publications never falls");
  SIGNALBOX_INVARIANT(last == nullptr || last->selector == nullptr || snapshot.selector != nullptr,
                      "a target that has had routes keeps routes");
  graces_.push_back(snapshot.sequence);
  calls_.publish(std::move(snapshot));
}

void World::plant_in(lb::Snapshot& snapshot) const {
  if (const SnapshotPtr& last = calls_.newest()) {
    if (story_.plant == Plant::kSequenceStays) snapshot.sequence = last->sequence;
    if (story_.plant == Plant::kGenerationIsLost) snapshot.generation = 0;
    if (story_.plant == Plant::kRoutesAreLost) snapshot.selector = nullptr;
  }
  if (snapshot.selector == nullptr) return;
  if (story_.plant == Plant::kPickerForgets)
    snapshot.picker = picker_of(choice_of(snapshot).name(), std::move(snapshot.picker));
  if (story_.plant == Plant::kReferencesAreCopied) {
    lb::ClusterRefs copies;
    for (const auto& [name, ref] : *snapshot.clusters)
      copies.emplace(name, std::make_shared<const lb::ClusterRef>(name, nullptr));
    snapshot.clusters = std::make_shared<const lb::ClusterRefs>(std::move(copies));
  }
}

// --- keys -----------------------------------------------------------------------------

// The actor that has the step in its order. Precondition: token_of(step) is not empty.
ActorId World::group_of(const Step& step) const {
  if (step.kind == Step::Kind::kDeliver) return post_.group_of(step.pair.second);
  if (step.kind == Step::Kind::kConnect) return post_.group_of(map_of(step.attempt.cluster));
  return kChannel;
}

// What the step adds to the order of its actor; empty: it is a step of a call. How many graces are
// still to come says which were heard before.
std::string World::token_of(const Step& step) const {
  switch (step.kind) {
    case Step::Kind::kConfigure:
      return "C";
    case Step::Kind::kDeliver: {
      std::string token(1, static_cast<char>('a' + step.pair.first));
      const bool may_be_stopped = step.pair.second == kRoot && step.pair.first != kRoot;
      if (may_be_stopped) token += content_of(post_.next(step.pair));
      return token;
    }
    case Step::Kind::kConnect:
      return absl::StrCat("+", step.attempt.address.str(), ";");
    case Step::Kind::kGrace:
      return absl::StrCat("G", graces_.size(), ":", uses());
    case Step::Kind::kScan:
      return absl::StrCat("T", graces_.size(), ":", uses());
    default:
      return "";
  }
}

// Which references calls hold, as the channel sees them.
std::string World::uses() const {
  std::string bits;
  for (const auto& ref : refs_)
    bits += ref->in_use() ? '1' : '0';
  return bits;
}

std::string World::key() const {
  std::string key(1, is_scan_news_ ? '1' : '0');
  append_looks(key);
  for (const auto& [actor, history] : histories_) {
    const bool is_of_cluster = actor != kChannel && actor != kRoot;
    if (is_of_cluster && !tree_.is_running(cluster_of(actor))) continue;
    absl::StrAppend(&key, "|", actor, ":", history);
  }
  append_calls(key);
  return key;
}

// A step of the channel decides itself what is_scan_news_ is afterwards.
std::string World::key_after(const Step& step) const {
  const std::string token = token_of(step);
  const ActorId group = token.empty() ? kRoot : group_of(step);
  std::string key(1, group == kChannel ? 'c' : is_scan_news_ ? '1' : '0');
  append_looks(key);
  bool is_known = token.empty();
  for (const auto& [actor, history] : histories_) {
    absl::StrAppend(&key, "|", actor, ":", history);
    if (actor == group && !is_known) key += token;
    is_known = is_known || actor == group;
  }
  if (!is_known) absl::StrAppend(&key, "|", group, ":", token);
  append_calls(key);
  if (token.empty()) absl::StrAppend(&key, "#", step.call);
  return key;
}

// What the channel remembers of graces and of its timer, when they let no cluster go.
void World::append_looks(std::string& key) const {
  absl::StrAppend(&key, graces_.size(), scan_.has_value() ? "t" : "");
}

// All that decides what a call will do. A waiting call's last sequence matters only as far as there
// is a newer one.
void World::append_calls(std::string& key) const {
  for (std::size_t number = 0; number < calls_.all().size(); ++number) {
    const Call& call = calls_.all()[number];
    absl::StrAppend(&key, "/", static_cast<int>(call.phase));
    if (call.phase == CallPhase::kReading) absl::StrAppend(&key, "@", call.reading->sequence);
    if (calls_.may_pick_again(number)) key += "n";
    if (call.ref == nullptr) continue;
    std::size_t place = 0;
    while (refs_[place].get() != call.ref)
      ++place;
    absl::StrAppend(&key, "r", place);
  }
}

}  // namespace signalbox::orders
