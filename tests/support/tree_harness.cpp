// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tree_harness.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/policy_registry.hpp"
#include "lb/session/session_args.hpp"
#include "lb/subchannel/subchannel_map_core.hpp"
#include "lb/subchannel/sweep.hpp"
#include "messages/each_address.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::test {

// Subchannel maps with more subchannels or more configured addresses are not checked for their
// invariants after each event, because a check visits all of them.
constexpr std::size_t kCheckedAddresses = 1'000;

namespace {

std::size_t addresses_of(const EndpointsPtr& endpoints) {
  std::size_t count = 0;
  if (endpoints != nullptr) each_address(*endpoints, [&count](const Address&, auto) { ++count; });
  return count;
}

// Whether the policy path `own` is `path` itself, or a path below it.
bool is_within(const PolicyPath& own, const std::string& path) {
  return own.str() == path || own.str().starts_with(path + "/");
}

}  // namespace

struct TreeHarness::Subchannel {
  ConnectivityState state = kIdle;
  Duration connect_timeout{};
  Instant begun{};  ///< The start of the last attempt that a timer ends.
};

struct TreeHarness::Node {
  std::uint64_t id = 0;
  ChildName name;
  PolicyPath path;
  Node* parent = nullptr;
  LbConfigPtr config;
  std::unique_ptr<lb::Policy> core;
  std::map<ChildName, std::unique_ptr<Node>> children;
  std::optional<Publish> published;
  bool holds = false;  ///< Whether the policy ever acquired a subchannel, or kept sessions.
  std::optional<lb::SubchannelMapCore> map;
  std::size_t configured = 0;                 ///< The addresses in the map's configuration.
  std::map<Address, Subchannel> subchannels;  ///< The subchannels of the node's map.
  std::optional<lb::SweepCore> sweeper;       ///< The sweeper of the node's map.

  Holder holder() const { return {path, {id}}; }
};

struct TreeHarness::Letter {
  std::uint64_t node = 0;
  LbEvent event;
};

class TreeHarness::Asks final : public AskTarget {
 public:
  Asks(TreeHarness& tree, std::uint64_t node) : tree_(tree), node_(node) {}

  void tell(const PickAsk& ask) const override { tree_.post(node_, PickAsked{ask}); }

 private:
  TreeHarness& tree_;
  std::uint64_t node_;
};

TreeHarness::TreeHarness(const lb::PolicyOptions& options, std::shared_ptr<Retirement> retirement)
    : options_(options), retirement_(std::move(retirement)) {}

TreeHarness::~TreeHarness() = default;

// --- what a test does ---------------------------------------------------------

void TreeHarness::apply(LbConfigPtr root, XdsConfigPtr xds) {
  if (root_ == nullptr) start(nullptr, ChildName("m"), *root);
  root_->config = root;
  post(root_->id, ConfigUpdated{++generation_, std::move(root), std::move(xds), nullptr});
  run();
}

void TreeHarness::up(const std::string& address) {
  const Address name(address);
  network_[name] = Network::kUp;
  for (const auto& [id, node] : std::map(nodes_)) {
    const auto found = node->subchannels.find(name);
    if (found == node->subchannels.end()) continue;
    if (found->second.state == kConnecting) set_state(*node, name, kReady);
    // Ends the back-off: an attempt may begin at once.
    if (found->second.state == kFailure) set_state(*node, name, kIdle);
  }
  run();
}

void TreeHarness::down(const std::string& address) {
  const Address name(address);
  network_[name] = Network::kDown;
  for (const auto& [id, node] : std::map(nodes_)) {
    const auto found = node->subchannels.find(name);
    if (found == node->subchannels.end()) continue;
    if (found->second.state == kReady) set_state(*node, name, kIdle);
    if (found->second.state == kConnecting) set_state(*node, name, kFailure);
  }
  run();
}

void TreeHarness::end_at_once(const std::string& address) {
  const Address name(address);
  for (const auto& [id, node] : std::map(nodes_)) {
    const auto found = node->subchannels.find(name);
    if (found != node->subchannels.end() && found->second.state == kReady)
      set_state(*node, name, kFailure);
  }
  run();
}

void TreeHarness::silence(const std::string& address) {
  const Address name(address);
  network_[name] = Network::kSilent;
  for (const auto& [id, node] : std::map(nodes_)) {
    const auto found = node->subchannels.find(name);
    if (found == node->subchannels.end()) continue;
    if (found->second.state == kReady) set_state(*node, name, kIdle);
    // Ends the back-off: an attempt may begin at once.
    if (found->second.state == kFailure) set_state(*node, name, kIdle);
  }
  run();
}

void TreeHarness::advance(Duration duration) {
  const Instant until = now_ + duration;
  while (!timers_.empty() && timers_.begin()->first <= until) {
    const auto [due, timer] = *timers_.begin();
    timers_.erase(timers_.begin());
    now_ = due;
    if (!timer.attempt.empty()) {
      time_out(*nodes_.at(timer.node), timer);
    } else if (timer.is_sweepers) {
      tell_sweeper(*nodes_.at(timer.node), TimerFired{timer.timer});
    } else {
      post(timer.node, TimerFired{timer.timer});
    }
    run();
  }
  now_ = until;
}

void TreeHarness::repeat(const std::string& path) {
  for (const auto& [id, node] : std::map(nodes_)) {
    if (!is_within(node->path, path) || !node->published) continue;
    Publish again = *node->published;
    publish(*node, again);
  }
  run();
}

PickResult TreeHarness::ask(const std::string& cluster,
                            std::uint64_t seed,
                            Hash hash,
                            const SessionHint* session) {
  const ClusterName name(cluster);
  PickArgs args;
  args.cluster = &name;
  args.seed = seed;
  args.hash = hash;
  args.session = session;
  PickResult result = root_->published->picker->pick(args);
  if (result.ask) result.ask_target->tell(*result.ask);
  return result;
}

std::string TreeHarness::pick(const std::string& cluster, std::uint64_t seed, Hash hash) {
  const std::string text = to_text(ask(cluster, seed, hash));
  run();
  return text;
}

std::string TreeHarness::visit(const std::string& cluster,
                               std::string& cookie,
                               std::uint64_t seed) {
  const lb::SessionArgs session{.hosts = cookie, .now = now_};
  const PickResult result = ask(cluster, seed, std::nullopt, &session);
  std::string text = absl::StrCat(to_text(result), " (", to_text(result.affinity.result), ")");
  if (result.affinity.hosts != nullptr) cookie = *result.affinity.hosts;
  run();
  return text;
}

TreeHarness::Call TreeHarness::begin(const std::string& cluster, std::uint64_t seed) {
  return begin(ask(cluster, seed));
}

TreeHarness::Call TreeHarness::begin_visit(const std::string& cluster, const std::string& cookie) {
  const lb::SessionArgs session{.hosts = cookie, .now = now_};
  return begin(ask(cluster, 0, std::nullopt, &session));
}

TreeHarness::Call TreeHarness::begin(const PickResult& result) {
  Call call{to_text(result), {}, root_->published->picker, {}};
  if (const auto* complete = std::get_if<Complete>(&result.outcome)) {
    const CallGate* const gate = result.trackers.gate();
    if (gate == nullptr || gate->enter()) {
      call.end = {bad_.contains(complete->connection->address()) ? 14 : 0};
      call.tracking = Tracking(result.trackers);
    } else {
      call.answer = absl::StrCat("drop ", gate->refuse().ToString());
    }
  }
  run();
  return call;
}

std::string TreeHarness::call(const std::string& cluster, std::uint64_t seed) {
  Call call = begin(cluster, seed);
  end(call);
  run();
  return call.answer;
}

const PickerPtr& TreeHarness::picker() const {
  return root_->published->picker;
}

void TreeHarness::answer_badly(const std::string& address, bool badly) {
  badly ? void(bad_.insert(Address(address))) : void(bad_.erase(Address(address)));
}

std::vector<std::string> TreeHarness::reached(const std::string& cluster) {
  std::set<std::string> reached;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = pick(cluster, seed);
    const std::string complete = "complete ";
    reached.insert(text.starts_with(complete) ? text.substr(complete.size()) : text);
  }
  return {reached.begin(), reached.end()};
}

int TreeHarness::connections(const std::string& address) const {
  const auto found = connections_.find(Address(address));
  return found == connections_.end() ? 0 : found->second;
}

std::vector<std::string> TreeHarness::policies(const std::string& path) const {
  std::vector<std::string> found;
  for (const auto& [id, node] : nodes_) {
    if (is_within(node->path, path))
      found.push_back(absl::StrCat(node->path.str(), " ", policy_name(*node->config)));
  }
  std::ranges::sort(found);
  return found;
}

ConnectivityState TreeHarness::state(const std::string& path) const {
  const Node* node = find(path);
  SIGNALBOX_INVARIANT(node != nullptr && node->published, "no such policy: " + path);
  return node->published->state;
}

TreeHarness::Population TreeHarness::population() const {
  Population count;
  count.policies = nodes_.size();
  count.connected = connected().size();
  // Timers named "weights" are not counted: a READY weighted_round_robin always has one.
  count.timers = static_cast<std::size_t>(std::ranges::count_if(
      timers_, [](const auto& entry) { return entry.second.timer.name != "weights"; }));
  for (const auto& [id, node] : nodes_) {
    count.maps += node->map ? 1 : 0;
    count.subchannels += node->subchannels.size();
  }
  return count;
}

std::vector<std::string> TreeHarness::connected() const {
  std::vector<std::string> connected;
  for (const auto& [id, node] : nodes_) {
    for (const auto& [address, subchannel] : node->subchannels) {
      if (subchannel.state == kReady) connected.push_back(address.str());
    }
  }
  std::ranges::sort(connected);
  return connected;
}

std::vector<std::string> TreeHarness::take_log() {
  return std::exchange(log_, {});
}

// --- the stand-in for the actors ------------------------------------------------

TreeHarness::Node* TreeHarness::start(Node* parent, const ChildName& name, const LbConfig& config) {
  auto node = std::make_unique<Node>();
  Node* started = node.get();
  node->id = ++last_node_;
  node->name = name;
  node->parent = parent;
  node->path = PolicyPath(parent == nullptr ? name.str() : parent->path.str() + "/" + name.str());
  node->core = lb::make_policy(
      config,
      {node->path, node->id, std::make_shared<const Asks>(*this, node->id), options_, retirement_});
  nodes_[node->id] = started;
  if (parent == nullptr) {
    root_ = std::move(node);
  } else {
    parent->children[name] = std::move(node);
  }
  log(absl::StrCat("start ", started->path.str(), " ", policy_name(config)));
  return started;
}

void TreeHarness::stop(Node& node) {
  while (!node.children.empty())
    stop(*node.children.begin()->second);
  if (node.holds) tell_map(map_of(node), HolderGone{node.holder(), false});
  log("stop " + node.path.str());
  std::erase_if(timers_, [&](const auto& entry) { return entry.second.node == node.id; });
  nodes_.erase(node.id);
  node.parent->children.erase(ChildName(node.name));
}

void TreeHarness::post(std::uint64_t node, LbEvent event) {
  ++messages_;
  letters_.push_back({node, std::move(event)});
}

void TreeHarness::run() {
  while (!letters_.empty()) {
    const Letter letter = std::move(letters_.front());
    letters_.pop_front();
    const auto found = nodes_.find(letter.node);
    if (found == nodes_.end()) continue;
    Node& node = *found->second;
    if (const auto* update = std::get_if<ConfigUpdated>(&letter.event)) {
      node.config = update->config;
    }
    for (LbEffect& effect : node.core->step(letter.event, now_))
      run(node, effect);
  }
}

void TreeHarness::run(Node& node, LbEffect& effect) {
  const auto child_id = [&](const ChildName& child) { return node.children.at(child)->id; };
  std::visit(
      Overloaded{
          [&](StartChild& it) {
            Node* child = start(&node, it.child, *it.update.config);
            child->config = it.update.config;
            post(child->id, std::move(it.update));
          },
          [&](UpdateChild& it) { post(child_id(it.child), std::move(it.update)); },
          [&](StopChild& it) { stop(*node.children.at(it.child)); },
          [&](ExitIdleChild& it) { post(child_id(it.child), IdleExitRequested{}); },
          [&](StartTimer& it) { timers_.emplace(now_ + it.delay, Timer{node.id, it.timer}); },
          [&](CancelTimer& it) {
            std::erase_if(timers_, [&](const auto& entry) {
              const Timer& timer = entry.second;
              return timer.node == node.id && timer.timer == it.timer && !timer.is_sweepers;
            });
          },
          [&](Publish& it) { publish(node, it); },
          [&](ReportApplied& it) {
            if (node.parent != nullptr) {
              post(node.parent->id, ChildApplied{node.name, it.generation});
            } else {
              log(to_text(effect));
            }
          },
          [&](RebuildSoon&) { post(node.id, RebuildDue{}); },
          [&](ServeSubchannels& it) {
            if (!node.map) node.map.emplace();
            node.configured = addresses_of(it.endpoints);
            tell_map(&node, MapGenerationStarted{it.settings, it.generation, it.endpoints});
          },
          [&](SettleSubchannels& it) { tell_map(&node, MapGenerationApplied{it.generation}); },
          [&](CloseSubchannels&) { close_map(node); },
          [&](AcquireSubchannel& it) {
            node.holds = true;
            tell_map(map_of(node), SubchannelAcquired{node.holder(), it.address});
          },
          [&](ReleaseSubchannel& it) {
            tell_map(map_of(node), SubchannelReleased{node.holder(), it.address});
          },
          [&](Connect& it) { tell_map(map_of(node), SubchannelConnectAsked{it.address}); },
          [&](SetEndpointHealth& it) {
            tell_map(map_of(node), EndpointHealthChanged{it.judge, it.unhealthy});
          },
          [&](TrackEndpoints& it) { tell_map(map_of(node), EndpointsTracked{it.trackers}); },
          [&](KeepSessions& it) {
            node.holds = true;
            tell_map(map_of(node), SessionsKept{node.holder(), it.idle_timeout, it.marks});
          },
          [&](WatchLoad& it) { log(to_text(LbEffect{it})); },
          [&](RequestReresolution&) {
            if (node.parent != nullptr) {
              post(node.parent->id, ChildAskedReresolution{node.name});
            } else {
              ++reresolutions_;
            }
          },
          [&](Observe& it) {
            // Left out of the log: each leaf reports it when it starts, and when its limit changes.
            if (std::holds_alternative<CircuitBreakerSet>(it.observation)) return;
            if (is_for_status(LbEffect{it})) return;
            log(to_text(it.observation));
          },
      },
      effect);
}

void TreeHarness::publish(Node& node, Publish& publish) {
  node.published = publish;
  if (node.parent != nullptr) {
    post(node.parent->id,
         ChildStateChanged{node.name,
                           publish.state,
                           publish.status,
                           publish.picker,
                           publish.generation,
                           publish.hosts});
  } else {
    log(absl::StrCat("publish ", to_string(publish.state), " ", publish.generation));
  }
}

const TreeHarness::Node* TreeHarness::find(const std::string& path) const {
  for (const auto& [id, node] : nodes_) {
    if (node->path.str() == path) return node;
  }
  return nullptr;
}

// --- subchannel maps, and the stand-in for subchannels and network ---------------

TreeHarness::Node* TreeHarness::map_of(Node& node) {
  Node* at = &node;
  while (at != nullptr && !at->map)
    at = at->parent;
  return at;
}

void TreeHarness::tell_map(Node* owner, const SubchannelMapEvent& event) {
  SIGNALBOX_INVARIANT(owner != nullptr, "D1: whoever acquires has a subchannel map above");
  ++messages_;
  for (const SubchannelMapEffect& effect : owner->map->step(event, now_))
    run_map(*owner, effect);
  if (std::max(owner->map->size(), owner->configured) <= kCheckedAddresses)
    owner->map->check_invariants();
}

void TreeHarness::run_map(Node& owner, const SubchannelMapEffect& effect) {
  std::visit(Overloaded{
                 [&](const SpawnSubchannel& it) {
                   owner.subchannels[it.address] = {kIdle, it.settings->connect_timeout};
                 },
                 [&](const StopSubchannel& it) {
                   owner.subchannels.erase(it.address);
                   log(absl::StrCat("subchannel ", it.address.str(), " closed"));
                 },
                 [&](const ConnectSubchannel& it) { connect(owner, it.address); },
                 [](const LimitConnections&) {},  // An address has one connection.
                 [&](const NotifyHolder& it) { post(it.holder.incarnation.back(), it.state); },
                 [&](const NotifyGone& it) {
                   post(it.holder.incarnation.back(), SubchannelGone{it.address});
                 },
                 [&](const ArmSweeper& it) {
                   if (it.idle_timeout) {
                     if (!owner.sweeper) owner.sweeper.emplace();
                     tell_sweeper(owner, IdleTimeoutSet{*it.idle_timeout});
                   } else {
                     end_sweeper(owner);
                   }
                 },
                 [&](const FinishSweep& it) { tell_sweeper(owner, SweepDone{it.next_due}); },
                 [](const StartHealthChecks&) {},  // The harness has no health prober.
                 [](const StopHealthChecks&) {},
                 [&](const Observe& it) {
                   const auto* swept = std::get_if<SessionsSwept>(&it.observation);
                   if (std::holds_alternative<SessionsHeld>(it.observation) ||
                       (swept != nullptr && swept->released > 0))
                     log(to_text(it.observation));
                 },
             },
             effect);
}

void TreeHarness::tell_sweeper(Node& owner, const SweepEvent& event) {
  for (const SweepEffect& effect : owner.sweeper->step(event, now_)) {
    std::visit(Overloaded{
                   [&](const Sweep&) { tell_map(&owner, SweepAsked{}); },
                   [&](const StartTimer& it) {
                     timers_.emplace(now_ + it.delay, Timer{owner.id, it.timer, true});
                   },
               },
               effect);
  }
}

void TreeHarness::end_sweeper(Node& owner) {
  owner.sweeper.reset();
  std::erase_if(timers_, [&](const auto& entry) {
    return entry.second.node == owner.id && entry.second.is_sweepers;
  });
}

void TreeHarness::connect(Node& owner, const Address& address) {
  if (owner.subchannels.at(address).state != kIdle) return;
  set_state(owner, address, kConnecting);
  const Network network = network_[address];
  if (network == Network::kUp) set_state(owner, address, kReady);
  if (network == Network::kDown) set_state(owner, address, kFailure);
  if (network != Network::kSilent || !attempts_end_) return;
  Subchannel& subchannel = owner.subchannels.at(address);
  subchannel.begun = now_;
  // A variable, because GCC 12 with -O3 takes the name in a temporary Timer for uninitialised.
  Timer end;
  end.node = owner.id;
  end.attempt = address;
  timers_.emplace(now_ + subchannel.connect_timeout, std::move(end));
}

void TreeHarness::time_out(Node& owner, const Timer& timer) {
  const auto found = owner.subchannels.find(timer.attempt);
  if (found == owner.subchannels.end() || found->second.state != kConnecting) return;
  // A timer of an older attempt to connect is ignored.
  if (found->second.begun + found->second.connect_timeout != now_) return;
  set_state(owner, timer.attempt, kFailure);
}

void TreeHarness::set_state(Node& owner, const Address& address, ConnectivityState state) {
  owner.subchannels.at(address).state = state;
  log(absl::StrCat("subchannel ", address.str(), " ", to_string(state)));
  SubchannelStateChanged told{address, state, true, absl::OkStatus(), nullptr};
  if (state == kFailure) told.status = absl::UnavailableError("refused");
  if (state == kReady) {
    ++connections_[address];
    told.connection = make_tracked<Connection>(retirement_, address);
  }
  tell_map(&owner, told);
}

void TreeHarness::close_map(Node& owner) {
  for (const auto& [address, subchannel] : owner.subchannels)
    log(absl::StrCat("subchannel ", address.str(), " closed"));
  owner.subchannels.clear();
  end_sweeper(owner);
  owner.map.reset();
}

}  // namespace signalbox::test
