// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/stage.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <caf/scheduled_actor.hpp>
#include <caf/send.hpp>
#include <cxxabi.h>

#include "actors/protocol/registration.hpp"

namespace signalbox::sim {

using testing::Fault;

namespace {

caf::actor_system_config& configure(caf::actor_system_config& config) {
  config.set("scheduler.policy", caf::atom("testing"));
  config.set("logger.inline-output", true);
  return config;
}

template <typename Message>
const Message* content_of(const caf::type_erased_tuple& message) {
  return message.match_elements<Message>() ? &message.get_as<Message>(0) : nullptr;
}

// The exit reason of kill(). It is abnormal, and differs from the reason of an actor's own
// exception.
constexpr caf::exit_reason kKilled = caf::exit_reason::unreachable;

// With the fault kMessagesLate: the most time by which one step may go on while messages wait.
constexpr Duration kLate = std::chrono::milliseconds(200);

constexpr Duration kBetweenSweeps = std::chrono::seconds(5);

// The policies below override_host that the stage checks. An aggregate's priority policy is above
// override_host, but it gets no endpoints, so "priority" may be in this list.
const std::set<std::string> kBelowOverrideHost = {"priority",
                                                  "wrr_locality",
                                                  "weighted_target",
                                                  "round_robin",
                                                  "pick_first",
                                                  "ring_hash",
                                                  "least_request",
                                                  "random",
                                                  "maglev",
                                                  "random_subsetting",
                                                  "weighted_round_robin"};

}  // namespace

Stage::Stage(FakeClock& clock,
             FakeChance& chance,
             FakeFaults& faults,
             FakeComplaints& complaints,
             Trace& trace)
    : clock_(clock),
      chance_(chance),
      faults_(faults),
      complaints_(complaints),
      trace_(trace),
      system_(configure(config_)),
      coordinator_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
  // The shutdown must not wait for the actors: no thread runs them.
  system_.await_actors_before_shutdown(false);
  coordinator_.clock().current_time = clock_.now();
}

Stage::~Stage() {
  clear();
}

// Kills all actors. Repeats this until none is left, because a killed actor may have just started
// children that the stage did not know.
void Stage::clear() {
  while (!cast_.empty() || !coordinator_.jobs.empty()) {
    coordinator_.clock().cancel_all();
    for (const auto& [id, player] : cast_) {
      const auto actor = caf::actor_cast<caf::strong_actor_ptr>(player.actor);
      if (actor) caf::anon_send_exit(caf::actor_cast<caf::actor>(actor), caf::exit_reason::kill);
    }
    while (!coordinator_.jobs.empty())
      run_message(0);
  }
  coordinator_.clock().cancel_all();
}

bool Stage::step(Instant end) {
  if (clock_.now() < frozen_until_) return wait_frozen(end);
  std::vector<std::size_t> ready = runnable();
  if (ready.empty() && !idle()) {
    // Only the starved actor is ready. If a timer or action is due before its starvation ends, that
    // runs first; otherwise the starvation ends now.
    if (run_due(std::min(end, starved_until_))) return true;
    starved_ = 0;
    ready = runnable();
  }
  if (!ready.empty() && interrupts() && run_due(std::min(end, clock_.now() + kLate))) return true;
  if (ready.empty()) return run_due(end);
  run_message(chance_.one_of(ready));
  return true;
}

bool Stage::wait_frozen(Instant end) {
  const Instant until = std::min(end, frozen_until_);
  if (run_due(until)) return true;
  clock_.advance_to(until);
  coordinator_.clock().current_time = clock_.now();
  return until < end;
}

// Whether the next due actions or timers run now although an actor is ready. Actions that are due
// now may come between the messages of the same instant. With the fault kMessagesLate, time may
// also go on before all messages are handled, as on a busy machine.
bool Stage::interrupts() {
  const std::optional<Instant> due = next_due();
  if (!due) return false;
  if (*due <= clock_.now()) return chance_.percent(15);
  return *due <= clock_.now() + kLate && faults_.fires(Fault::kMessagesLate);
}

// --- messages ---------------------------------------------------------------

std::vector<std::size_t> Stage::runnable() const {
  std::vector<std::size_t> places;
  const bool starving = starved_ != 0 && clock_.now() < starved_until_;
  for (std::size_t i = 0; i < coordinator_.jobs.size(); ++i) {
    if (starving) {
      const auto* actor = dynamic_cast<caf::scheduled_actor*>(coordinator_.jobs[i]);
      if (actor != nullptr && actor->id() == starved_) continue;
    }
    places.push_back(i);
  }
  return places;
}

void Stage::run_message(std::size_t job) {
  auto& jobs = coordinator_.jobs;
  std::swap(jobs.front(), jobs[job]);
  auto* actor = dynamic_cast<caf::scheduled_actor*>(jobs.front());
  if (actor != nullptr) {
    meet(*actor);
    const auto* message = actor->peek_at_next_mailbox_element();
    if (message != nullptr && message->content().size() > 0) {
      trace_.note(clock_.now(), actor->name(), text_of(message->content()), actor->id());
      watch_endpoints(message->content());
      watch_sweeps(*actor, message->content());
      poison(*actor, message->content());
    } else {
      trace_.note(clock_.now(), actor->name(), "begins", actor->id());
    }
  }
  coordinator_.run_once();
}

// If the fault kPoisonConfig fires, kills the policy that is about to get a configuration.
void Stage::poison(caf::scheduled_actor& actor, const caf::type_erased_tuple& message) {
  if (content_of<ConfigUpdated>(message) == nullptr || !faults_.fires(Fault::kPoisonConfig)) return;
  trace_.note(clock_.now(), "world", "poisons the configuration", actor.id());
  ++killed_["policy"];
  caf::anon_send_exit(actor.address(), kKilled);
}

// Checks that no policy below override_host gets a DRAINING endpoint.
void Stage::watch_endpoints(const caf::type_erased_tuple& message) {
  const auto* config = content_of<ConfigUpdated>(message);
  if (config == nullptr || config->endpoints == nullptr) return;
  const std::string policy(policy_name(*config->config));
  if (!kBelowOverrideHost.contains(policy)) return;
  const bool drains = std::ranges::any_of(config->endpoints->priorities, [](const auto& priority) {
    return std::ranges::any_of(priority.localities, [](const auto& locality) {
      return std::ranges::any_of(locality->endpoints, [](const Endpoint& endpoint) {
        return endpoint.health == HealthStatus::kDraining;
      });
    });
  });
  complaints_.require(!drains, "the child never sees who is DRAINING [A55-29]", policy);
}

// Checks that the sweeps of a subchannel map are at least kBetweenSweeps apart. This is not checked
// while messages may be late (kMessagesLate, a frozen or starved actor), because two messages may
// then arrive sooner after each other than they were sent.
void Stage::watch_sweeps(caf::scheduled_actor& actor, const caf::type_erased_tuple& message) {
  if (content_of<SweepAsked>(message) == nullptr) return;
  const Instant troubled = std::max(frozen_until_, starved_until_) + kLate;
  if (faults_.has(Fault::kMessagesLate) || clock_.now() < troubled) {
    last_sweep_.erase(actor.id());
    return;
  }
  const auto [last, is_first] = last_sweep_.try_emplace(actor.id(), clock_.now());
  if (is_first) return;
  complaints_.require(clock_.now() - last->second >= kBetweenSweeps,
                      "sweeps are five seconds apart at least [A75-31]");
  last->second = clock_.now();
}

void Stage::meet(caf::scheduled_actor& actor) {
  if (!absl::StartsWith(actor.name(), "signalbox.") || cast_.contains(actor.id())) return;
  const std::string kind(actor.name() + sizeof("signalbox.") - 1);
  cast_[actor.id()] = {kind, caf::actor_cast<caf::weak_actor_ptr>(actor.ctrl())};
  actor.attach_functor([this, kind, id = actor.id()](const caf::error& reason) {
    cast_.erase(id);
    complaints_.require(reason != caf::sec::runtime_error, "no actor dies of itself", kind);
  });
}

// The text of a message for the trace: its subject and its most important part.
std::string Stage::text_of(const caf::type_erased_tuple& message) {
  const auto type = message.type(0);
  if (type.second == nullptr) return absl::StrCat("system message ", type.first);
  const std::string& name = name_of(*type.second);
  if (const auto* config = content_of<ConfigUpdated>(message)) {
    return absl::StrCat(name, " ", policy_name(*config->config), " g", config->generation);
  }
  if (const auto* child = content_of<ChildStateChanged>(message)) {
    return absl::StrCat(
        name, " ", child->child.str(), " ", to_string(child->state), " g", child->generation);
  }
  if (const auto* applied = content_of<ChildApplied>(message))
    return absl::StrCat(name, " ", applied->child.str(), " g", applied->generation);
  if (const auto* change = content_of<SubchannelStateChanged>(message))
    return absl::StrCat(name, " ", change->address.str(), " ", to_string(change->state));
  if (const auto* acquired = content_of<SubchannelAcquired>(message))
    return absl::StrCat(name, " ", acquired->holder.path.str(), " ", acquired->address.str());
  if (const auto* released = content_of<SubchannelReleased>(message))
    return absl::StrCat(name, " ", released->holder.path.str(), " ", released->address.str());
  if (const auto* settled = content_of<HolderSettled>(message)) {
    return absl::StrCat(name,
                        " ",
                        settled->holder.path.str(),
                        " #",
                        absl::StrJoin(settled->holder.incarnation, "."));
  }
  if (const auto* timer = content_of<TimerFired>(message))
    return absl::StrCat(name, " ", timer->timer.name, " ", timer->timer.generation);
  if (const auto* restart = content_of<protocol::RestartDue>(message))
    return absl::StrCat(name, " ", restart->what);
  if (const auto* told = content_of<ResourcesChanged>(message)) {
    const ResourceKey& key = std::visit(
        [](const auto& first) -> const ResourceKey& { return first.key; }, told->changes.front());
    return absl::StrCat(
        name, " ", told->changes.size(), ": ", to_string(key.type), " ", key.name, " …");
  }
  return name;
}

const std::string& Stage::name_of(const std::type_info& type) {
  std::string& name = names_[&type];
  if (!name.empty()) return name;
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  name = status == 0 ? text : type.name();
  std::free(text);
  return name;
}

// --- time -------------------------------------------------------------------

std::optional<Instant> Stage::next_due() {
  const auto& schedule = coordinator_.clock().schedule();
  std::optional<Instant> due = clock_.next();
  if (!schedule.empty()) {
    const Instant timer(schedule.begin()->first.time_since_epoch());
    if (!due || timer < *due) due = timer;
  }
  return due;
}

// All timers of one instant are released together, so that the dice decide their order, too.
bool Stage::run_due(Instant end) {
  const std::optional<Instant> due = next_due();
  auto& timers = coordinator_.clock();
  if (!due || *due > end) {
    if (coordinator_.jobs.empty() && end > clock_.now()) {
      clock_.advance_to(end);
      timers.current_time = clock_.now();
    }
    return false;
  }
  clock_.advance_to(*due);
  timers.current_time = clock_.now();
  const auto timer_is_due = [&] {
    return !timers.schedule().empty() && timers.schedule().begin()->first <= timers.current_time;
  };
  while (timer_is_due())
    timers.trigger_timeout();
  if (clock_.next() && *clock_.next() <= clock_.now()) {
    clock_.run_next();
  }
  return true;
}

// --- deaths and starvation of actors ------------------------------------------

bool Stage::kill(const std::string& kind, FakeChance& dice) {
  std::vector<caf::actor_id> candidates;
  for (const auto& [id, player] : cast_) {
    if (player.kind == kind) candidates.push_back(id);
  }
  if (candidates.empty()) return false;
  const caf::actor_id victim = dice.one_of(candidates);
  const auto actor = caf::actor_cast<caf::strong_actor_ptr>(cast_.at(victim).actor);
  if (!actor) return false;
  trace_.note(clock_.now(), "world", absl::StrCat("kills a ", kind), victim);
  ++killed_[kind];
  caf::anon_send_exit(caf::actor_cast<caf::actor>(actor), kKilled);
  return true;
}

// Draws a kind first, then an actor of that kind: rare kinds are as likely as frequent ones.
void Stage::starve_somebody(Duration duration, FakeChance& dice) {
  std::map<std::string, std::vector<caf::actor_id>> kinds;
  for (const auto& [id, player] : cast_)
    kinds[player.kind].push_back(id);
  if (kinds.empty()) return;
  auto kind = kinds.begin();
  std::advance(kind, static_cast<std::ptrdiff_t>(dice.below(kinds.size())));
  // Half of the time the oldest actor of the kind. It is usually the highest in the tree, and gets
  // the most messages.
  const std::size_t among = dice.percent(50) ? 1 : kind->second.size();
  starved_ = kind->second[dice.below(among)];
  starved_until_ = clock_.now() + duration;
  trace_.note(clock_.now(), "world", absl::StrCat("starves a ", kind->first), starved_);
}

std::size_t Stage::living(const std::string& kind) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(cast_, [&](const auto& player) { return player.second.kind == kind; }));
}

}  // namespace signalbox::sim
