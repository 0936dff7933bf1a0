// SPDX-License-Identifier: Apache-2.0
//
// The shells, one or two at a time, in virtual time. Many tests check what a shell does when an
// actor that it depends on dies.

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <caf/scheduler/test_coordinator.hpp>
#include <catch2/catch.hpp>

#include "actors/channel_actor.hpp"
#include "actors/dump_reply.hpp"
#include "actors/io/ads_transport.hpp"
#include "actors/io/connector.hpp"
#include "actors/io/name_lookup.hpp"
#include "actors/policy_birth.hpp"
#include "actors/protocol/channel.hpp"
#include "actors/protocol/policy.hpp"
#include "actors/protocol/subchannel_map.hpp"
#include "actors/protocol/watcher.hpp"
#include "actors/protocol/xds_client.hpp"
#include "actors/reclaimer.hpp"
#include "actors/subchannel_map_actor.hpp"
#include "actors/supervisor_actor.hpp"
#include "actors/watcher_actor.hpp"
#include "actors/xds_client_actor.hpp"
#include "lb/pick/stream_lanes.hpp"
#include "messages/counting/load_book.hpp"
#include "messages/overloaded.hpp"
#include "metrics/exporter.hpp"
#include "metrics/instruments.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "signalbox/envoy/service/load_stats/v3/lrs.pb.h"
#include "tests/support/decode_at_once.hpp"
#include "tests/support/decode_response.hpp"
#include "tests/support/fake_prober.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/xds_resources.hpp"
#include "xds/type_url.hpp"

namespace signalbox::actors::shells_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class IgnoreRetired final : public Reclaimer {
 public:
  void retire(std::unique_ptr<const lb::Snapshot>, std::function<void()>) override {}

  void retire(std::unique_ptr<const Tracked>) override {}
};

// Frees retired snapshots at once, because no thread of these tests reads snapshots.
class ReclaimAtOnce final : public Reclaimer {
 public:
  void retire(std::unique_ptr<const lb::Snapshot> old, std::function<void()> done) override {
    old.reset();
    done();
  }

  void retire(std::unique_ptr<const Tracked> object) override { object.reset(); }
};

class Unheard final : public PublicationListener {
 public:
  void published(std::uint64_t, ConnectivityState) override {}
};

// Throws in the first attempts to connect, which kills the subchannel actors. Later attempts wait;
// the test may answer the newest of them.
class DeadlyConnector final : public Connector {
 public:
  std::unique_ptr<Attempt> connect(const Peer& peer, Duration, Events events) override {
    if (++asked < harmless) throw std::runtime_error("deadly");
    waiting = std::move(events);
    is_alone = peer.sole_user != UserId();
    return nullptr;
  }

  Events waiting;
  bool is_alone = false;  ///< Whether the newest of them shares no connection.
  int asked = 0;
  int harmless = 50;
};

// Keeps the events of each attempt until the test answers, and counts the attempts that subchannels
// hold. The test gets the lanes of a subchannel with several connections.
class CountingConnector final : public Connector {
 public:
  std::unique_ptr<Attempt> connect(const Peer&, Duration, Events events) override {
    asked.push_back(std::move(events));
    return std::make_unique<Held>(held);
  }

  ConnectionPtr with_lanes(const ConnectionPtr& first,
                           std::shared_ptr<const lb::StreamLanes> offered) override {
    lanes = std::move(offered);
    if (on_lanes) on_lanes();
    return first;
  }

  std::vector<Events> asked;
  std::shared_ptr<const lb::StreamLanes> lanes;
  std::function<void()> on_lanes;  ///< Runs when there are lanes, before any picker has them.
  int held = 0;

 private:
  struct Held final : Attempt {
    explicit Held(int& count) : counted(count) { ++counted; }

    ~Held() override { --counted; }

    int& counted;
  };
};

// Connects at once.
class ReadyConnector final : public Connector {
 public:
  std::unique_ptr<Attempt> connect(const Peer& peer, Duration, Events events) override {
    events.connected(std::make_shared<const Connection>(peer.address));
    return nullptr;
  }
};

// A transport of streams. The test sends their events, but each request counts as written at once.
class ScriptedTransport final : public AdsTransport {
 public:
  explicit ScriptedTransport(std::string name = "server") : name_(std::move(name)) {}

  std::unique_ptr<Stream> open(Events events) override {
    streams.push_back(std::move(events));
    return std::make_unique<Ear>(*this, streams.size() - 1);
  }

  const std::string& server() const override { return name_; }

  std::vector<Events> streams;
  std::vector<std::string> sent;  ///< The requests that were sent on all streams.
  std::size_t ended = 0;          ///< Streams that the client has released.
  int reads = 0;                  ///< How often the next message was asked for, on all streams.

 private:
  struct Ear final : Stream {
    Ear(ScriptedTransport& transport, std::size_t its_number) : to(transport), number(its_number) {}

    ~Ear() override { ++to.ended; }

    void send(std::string bytes) override {
      to.sent.push_back(std::move(bytes));
      to.streams[number].written();
    }

    void read_next() override { ++to.reads; }

    ScriptedTransport& to;
    std::size_t number;
  };

  const std::string name_;
};

class ScriptedLookup final : public NameLookup {
 public:
  absl::StatusOr<std::vector<Address>> resolve(const DnsName&) override {
    ++asked;
    return std::vector<Address>{Address("127.0.0.1:80")};
  }

  int asked = 0;
};

// Records the messages that a stand-in for a neighbouring actor gets.
struct Heard {
  std::vector<ResourceChanged> resources;
  std::vector<AmbientErrorChanged> ambient;
  std::vector<EmitConfig> configs;
  std::vector<EmitError> errors;
};

using Responses = std::map<std::string, xds::DecodedResponse>;

caf::actor_system_config& testing(caf::actor_system_config& config) {
  config.set("scheduler.policy", caf::atom("testing"));
  return config;
}

// Stands in for a policy: holds subchannels, and wants each connected whenever it is IDLE.
protocol::BehaviorOf<protocol::SubchannelObserver> hold_many(
    protocol::SubchannelObserver::pointer self, protocol::SubchannelMapActor map, int count) {
  for (int i = 0; i < count; ++i) {
    const Address address("127.0.0.1:" + std::to_string(80 + i));
    protocol::send(self, map, SubchannelAcquired{Holder{PolicyPath("p"), {1}}, address});
  }
  return {
      [self, map](const SubchannelStateChanged& event) {
        if (event.state != ConnectivityState::kIdle) return;
        protocol::send(self, map, SubchannelConnectAsked{event.address});
      },
      [](const SubchannelGone&) {},
  };
}

protocol::BehaviorOf<protocol::SubchannelObserver> hold(protocol::SubchannelObserver::pointer self,
                                                        protocol::SubchannelMapActor map) {
  return hold_many(self, std::move(map), 1);
}

// Records the reports about one subchannel, and never wants it connected.
protocol::BehaviorOf<protocol::SubchannelObserver> watch(
    protocol::SubchannelObserver::pointer self,
    protocol::SubchannelMapActor map,
    std::shared_ptr<std::vector<ConnectivityState>> reports) {
  protocol::send(
      self, map, SubchannelAcquired{Holder{PolicyPath("w"), {1}}, Address("127.0.0.1:80")});
  return {
      [reports](const SubchannelStateChanged& event) { reports->push_back(event.state); },
      [](const SubchannelGone&) {},
  };
}

class Shells {
 public:
  explicit Shells(xds::ClientOptions client = {})
      : system_(testing(config_)),
        coordinator_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
    system_.await_actors_before_shutdown(false);
    Environment made;
    made.connector = connector;
    made.ads_transports = {transport, second};
    made.load_transports = {load_transport, nullptr};
    made.policy.load_book = book;
    made.client = std::move(client);
    made.health_prober = prober;
    made.name_lookup = lookup;
    made.reclaimer = std::make_shared<IgnoreRetired>();
    made.instruments = std::make_shared<metrics::Instruments>();
    made.detached_lookups = false;
    made.detached_streams = false;
    // The bytes "poison" kill the actor that reads them.
    xds::ResponseDecoder decode =
        xds::decode_at_once([decoded = responses, doing = meanwhile](
                                absl::string_view bytes) -> absl::StatusOr<xds::DecodedResponse> {
          if (bytes == "poison") throw std::runtime_error("poison");
          if (const auto first = doing->find(std::string(bytes)); first != doing->end())
            first->second();
          if (const auto known = decoded->find(std::string(bytes)); known != decoded->end())
            return known->second;
          return xds::DecodedResponse{};  // A response without listeners.
        });
    made.make_decoder = [decode = std::move(decode), in_parts = parts](ServerId) {
      return [decode, in_parts](const std::string& bytes) -> xds::Decoding {
        const auto known = in_parts->find(bytes);
        return
            [whole = decode(bytes), left = known == in_parts->end() ? 1 : known->second]() mutable
                -> std::optional<absl::StatusOr<xds::DecodedResponse>> {
              if (--left > 0) return std::nullopt;
              return whole();
            };
      };
    };
    environment = std::make_shared<const Environment>(std::move(made));
  }

  ~Shells() {
    for (const caf::actor& actor : neighbours)
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    run();
    coordinator_.clock().cancel_all();
  }

  caf::actor_system& system() { return system_; }

  /// The number of delayed messages. Each keeps the memory of its receiver.
  std::size_t delayed() { return coordinator_.clock().schedule().size(); }

  std::size_t living() { return system_.registry().running(); }

  void run() { coordinator_.run(); }

  /// Advances the clock by `time`, in steps of 50 ms, and runs what becomes due after each step.
  void pass(Duration time) {
    const Duration step = std::chrono::milliseconds(50);
    for (Duration passed{}; passed < time; passed += step) {
      coordinator_.advance_time(step);
      run();
    }
  }

  template <typename Handle>
  Handle keep(Handle actor) {
    neighbours.push_back(caf::actor_cast<caf::actor>(actor));
    return actor;
  }

  protocol::PolicyActor spawn_policy_at(std::string path,
                                        LbConfig config,
                                        protocol::PolicyParent parent = {},
                                        protocol::SubchannelMapActor map = {}) {
    PolicyBirth birth;
    birth.config = make_lb_config(std::move(config));
    birth.name = ChildName("child");
    birth.path = PolicyPath(std::move(path));
    birth.parent = std::move(parent);
    birth.subchannels = std::move(map);
    return keep(spawn_policy(system(), environment, std::move(birth)));
  }

  /// Spawns a subchannel map, and a holder of one subchannel that wants it connected.
  protocol::SubchannelMapActor spawn_held_map() {
    auto map = keep(spawn_subchannel_map(system(), environment));
    hold_one_of(map);
    return map;
  }

  void hold_one_of(const protocol::SubchannelMapActor& map) { keep(system().spawn(hold, map)); }

  /// Kills the actor of this kind that acts next.
  void kill_next(const std::string& name) {
    while (true) {
      for (caf::resumable* job : coordinator_.jobs) {
        auto* actor = dynamic_cast<caf::scheduled_actor*>(job);
        if (actor == nullptr || actor->name() != name) continue;
        caf::anon_send_exit(actor->address(), caf::exit_reason::kill);
        return run();
      }
      REQUIRE(coordinator_.try_run_once());
    }
  }

  std::string metrics() const { return metrics::Exporter(environment->instruments).text(); }

  std::shared_ptr<ScriptedTransport> transport = std::make_shared<ScriptedTransport>();
  std::shared_ptr<ScriptedTransport> second = std::make_shared<ScriptedTransport>("second");
  std::shared_ptr<ScriptedTransport> load_transport =
      std::make_shared<ScriptedTransport>("of loads");
  std::shared_ptr<LoadBook> book = std::make_shared<LoadBook>(std::set<ServerId>{0});
  std::shared_ptr<DeadlyConnector> connector = std::make_shared<DeadlyConnector>();
  std::shared_ptr<ScriptedLookup> lookup = std::make_shared<ScriptedLookup>();
  std::shared_ptr<test::FakeProber> prober = std::make_shared<test::FakeProber>();
  /// What the decoder returns, by the bytes of a response.
  std::shared_ptr<Responses> responses = std::make_shared<Responses>();
  /// The number of parts in which a response is decoded, by its bytes; default: one.
  std::shared_ptr<std::map<std::string, int>> parts =
      std::make_shared<std::map<std::string, int>>();
  /// Called while a response is decoded, by its bytes.
  std::shared_ptr<std::map<std::string, std::function<void()>>> meanwhile =
      std::make_shared<std::map<std::string, std::function<void()>>>();
  EnvironmentPtr environment;
  std::vector<caf::actor> neighbours;

 private:
  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& coordinator_;
};

// Watches resources of an xds_client and records their changes.
protocol::BehaviorOf<protocol::ResourceObserver> observe_all(
    protocol::ResourceObserver::pointer self,
    protocol::XdsClientActor client,
    WatchesChanged wanted,
    std::shared_ptr<Heard> heard) {
  wanted.watcher = self->id();
  protocol::send(self, client, std::move(wanted));
  return {
      [heard](const ResourcesChanged& event) {
        const Overloaded keep{
            [&](const ResourceChanged& change) { heard->resources.push_back(change); },
            [&](const AmbientErrorChanged& change) { heard->ambient.push_back(change); },
        };
        for (const auto& change : event.changes)
          std::visit(keep, change);
      },
  };
}

protocol::BehaviorOf<protocol::ResourceObserver> observe(protocol::ResourceObserver::pointer self,
                                                         protocol::XdsClientActor client,
                                                         ResourceKey key,
                                                         std::shared_ptr<Heard> heard) {
  return observe_all(
      self, std::move(client), WatchesChanged{0, {Watch{std::move(key)}}}, std::move(heard));
}

// Stands in for an xds_client. Answers each watch at once: with all versions of the resource in
// `resources`, or with "does not exist".
protocol::BehaviorOf<protocol::XdsClientActor> serve(
    protocol::XdsClientActor::pointer self,
    std::map<ResourceKey, std::vector<Resource>> resources) {
  return {
      [self, resources = std::move(resources)](const WatchesChanged& event) {
        const auto watcher = caf::actor_cast<protocol::ResourceObserver>(self->current_sender());
        const auto tell = [&](const ResourceKey& key, absl::StatusOr<Resource> resource) {
          ResourcesChanged told;
          told.changes.emplace_back(ResourceChanged{key, std::move(resource)});
          protocol::send(self, watcher, std::move(told));
        };
        for (const auto& change : event.changes) {
          const auto* watch = std::get_if<Watch>(&change);
          if (watch == nullptr) continue;
          const auto found = resources.find(watch->key);
          if (found == resources.end()) {
            tell(watch->key, absl::NotFoundError("does not exist"));
            continue;
          }
          for (const Resource& resource : found->second)
            tell(watch->key, resource);
        }
      },
      [](const WatcherGone&) {},
      [](const ResourcesReceived&) {},
      [](const SubscriptionSent&) {},
      [](const ServerStatusChanged&) {},
      [](const TimerFired&) {},
      [](const protocol::RestartDue&) {},
      [](const protocol::DumpRequested&) {},
  };
}

// Stands in for override_host: keeps sessions, and holds the subchannel of one marked address.
protocol::BehaviorOf<protocol::SubchannelObserver> keep_sessions(
    protocol::SubchannelObserver::pointer self,
    protocol::SubchannelMapActor map,
    SessionsKept order) {
  order.keeper = Holder{PolicyPath("k"), {1}};
  protocol::send(self, map, order);
  protocol::send(self, map, SubchannelAcquired{order.keeper, order.marks->begin()->first});
  return {
      [](const SubchannelStateChanged&) {},
      [](const SubchannelGone&) {},
  };
}

// Stands in for a channel: records configurations and errors.
protocol::BehaviorOf<protocol::ConfigListener> listen(protocol::ConfigListener::pointer,
                                                      std::shared_ptr<Heard> heard) {
  return {
      [heard](const EmitConfig& event) { heard->configs.push_back(event); },
      [heard](const EmitError& event) { heard->errors.push_back(event); },
  };
}

std::shared_ptr<const ChannelPort> port() {
  ChannelPort made;
  made.target = "xds:///orders";
  made.listener_resource = "orders";
  made.authority = "orders.example";
  return std::make_shared<const ChannelPort>(std::move(made));
}

const ResourceKey kListener{ResourceType::kListener, "orders"};

xds::ClientOptions two_servers() {
  xds::ClientOptions options;
  options.servers = {{.name = "first"}, {.name = "second"}};
  options.default_servers = {0, 1};
  return options;
}

ResourcesReceived one_listener() {
  ResourcesReceived listeners{ResourceType::kListener, "1", {}, {}};
  listeners.resources.push_back(
      {"orders", Resource{tests::inline_listener("orders", tests::routes_to("r", {}))}});
  return listeners;
}

// A request as "LDS orders other".
std::string describe_request(const std::string& bytes) {
  envoy::service::discovery::v3::DiscoveryRequest request;
  REQUIRE(request.ParseFromString(bytes));
  const auto type = xds::resource_type_of(request.type_url());
  REQUIRE(type);
  return absl::StrCat(to_string(*type), " ", absl::StrJoin(request.resource_names(), " "));
}

std::set<std::string> asked_for(const ScriptedTransport& transport) {
  std::set<std::string> requests;
  for (const std::string& bytes : transport.sent)
    requests.insert(describe_request(bytes));
  return requests;
}

std::string last_asked_for(const ScriptedTransport& transport) {
  return describe_request(transport.sent.back());
}

std::shared_ptr<CountingConnector> give_counting_connector(Shells& shells) {
  auto connector = std::make_shared<CountingConnector>();
  auto environment = std::make_shared<Environment>(*shells.environment);
  environment->connector = connector;
  shells.environment = std::move(environment);
  return connector;
}

}  // namespace

TEST_CASE("xds_client: nothing is found not to exist while the stream is being restarted",
          "[actors][xds_client][A57]") {
  Shells shells;
  const auto heard = std::make_shared<Heard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, client, kListener, heard));
  shells.run();
  REQUIRE(shells.transport->streams.size() == 1);
  shells.transport->streams[0].opened();
  shells.run();
  shells.pass(seconds(5));
  shells.transport->streams[0].received("poison");
  shells.run();
  shells.pass(seconds(60));
  CHECK(shells.transport->streams.size() == 2);
  CHECK(heard->resources.empty());

  shells.transport->streams[1].opened();
  shells.run();
  shells.pass(seconds(14));
  CHECK(heard->resources.empty());
  shells.pass(seconds(2));
  REQUIRE(heard->resources.size() == 1);
  CHECK(absl::IsNotFound(heard->resources[0].resource.status()));
}

TEST_CASE("xds_client: a server that is silent is heard when it speaks, however late",
          "[actors][xds_client][A57][A88][S8][S9]") {
  const bool is_transient = GENERATE(false, true);
  xds::ClientOptions options;
  options.servers[0].resource_timer_is_transient_error = is_transient;
  Shells shells(std::move(options));
  *shells.responses = {{"LDS", {one_listener(), "1", ""}}};
  const auto heard = std::make_shared<Heard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, client, kListener, heard));
  shells.run();
  shells.pass(seconds(60));  // Without a connection the timer of the resource does not run.
  CHECK(heard->resources.empty());
  shells.transport->streams.at(0).opened();
  shells.run();
  shells.pass(seconds(is_transient ? 30 : 15) - milliseconds(50));
  CHECK(heard->resources.empty());
  shells.pass(milliseconds(50));
  REQUIRE(heard->resources.size() == 1);
  CHECK(heard->resources[0].resource.status().code() ==
        (is_transient ? absl::StatusCode::kUnavailable : absl::StatusCode::kNotFound));

  shells.pass(seconds(30));
  shells.transport->streams[0].received("LDS");
  shells.run();
  REQUIRE(heard->resources.size() == 2);
  CHECK(heard->resources[1].resource.ok());
  // The server sends nothing for ten minutes, and known resources stay.
  shells.pass(seconds(600));
  CHECK(heard->resources.size() == 2);
  CHECK(heard->ambient.empty());
  CHECK(shells.transport->streams.size() == 1);
}

TEST_CASE("xds_client: a lost server is replaced by the next, until it is back",
          "[actors][xds_client][A71]") {
  Shells shells(two_servers());
  const ResourcesReceived listeners = one_listener();
  *shells.responses = {{"LDS", {listeners, "1", ""}}};
  const auto heard = std::make_shared<Heard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, client, kListener, heard));
  shells.run();
  REQUIRE(shells.transport->streams.size() == 1);
  CHECK(shells.second->streams.empty());
  shells.transport->streams[0].closed(absl::UnavailableError("refused"));
  shells.run();
  REQUIRE(shells.second->streams.size() == 1);
  shells.second->streams[0].opened();
  shells.second->streams[0].received("LDS");
  shells.run();
  REQUIRE(heard->resources.size() == 1);
  CHECK(heard->resources[0].resource.ok());
  CHECK(heard->ambient.empty());

  shells.pass(seconds(2));
  REQUIRE(shells.transport->streams.size() == 2);
  shells.transport->streams[1].opened();
  shells.transport->streams[1].received("LDS");
  shells.run();
  CHECK(shells.second->ended == 1);
  CHECK(heard->resources.size() == 1);
  CHECK(heard->ambient.empty());
  // The second server is needed again soon after it was left. Its stream waits all the same, so
  // that no server gets many streams in a short time.
  shells.transport->streams[1].closed(absl::UnavailableError("lost"));
  shells.run();
  shells.keep(
      shells.system().spawn(observe, client, ResourceKey{ResourceType::kListener, "other"}, heard));
  shells.pass(milliseconds(1300));  // The stream was short, so the next one waits for the back-off.
  REQUIRE(shells.transport->streams.size() == 3);
  shells.transport->streams[2].closed(absl::UnavailableError("refused"));
  shells.run();
  shells.pass(milliseconds(600));
  CHECK(shells.second->streams.size() == 1);
  shells.pass(milliseconds(200));  // The second server was left more than two seconds ago.
  CHECK(shells.second->streams.size() == 2);
}

TEST_CASE("xds_client: a server that was left is told anew what is wanted, and nothing of before",
          "[actors][xds_client][A71]") {
  Shells shells(two_servers());
  ResourcesReceived clusters{ResourceType::kCluster, "1", {}, {}};
  clusters.resources.push_back({"c", Resource{tests::eds_cluster("c", "e")}});
  *shells.responses = {{"LDS", {one_listener(), "1", ""}}, {"CDS", {clusters, "1", ""}}};
  const auto heard = std::make_shared<Heard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, client, kListener, heard));
  const auto mortal = shells.system().spawn(observe, client, tests::cds("c"), heard);
  shells.run();
  shells.transport->streams.at(0).closed(absl::UnavailableError("refused"));
  shells.run();
  REQUIRE(shells.second->streams.size() == 1);
  shells.second->streams[0].opened();
  shells.run();
  CHECK(asked_for(*shells.second) == std::set<std::string>{"LDS orders", "CDS c"});
  shells.pass(seconds(2));
  shells.transport->streams.at(1).opened();
  shells.transport->streams.at(1).received("LDS");
  shells.transport->streams.at(1).received("CDS");
  shells.run();
  CHECK(shells.second->ended == 1);

  caf::anon_send_exit(mortal, caf::exit_reason::kill);
  shells.run();
  CHECK(last_asked_for(*shells.transport) == "CDS ");  // The cluster's only watcher has died.
  shells.second->sent.clear();
  shells.transport->streams.at(1).closed(absl::UnavailableError("lost"));
  shells.keep(
      shells.system().spawn(observe, client, ResourceKey{ResourceType::kListener, "other"}, heard));
  shells.run();
  shells.pass(seconds(3));
  shells.transport->streams.at(2).closed(absl::UnavailableError("refused"));
  shells.run();
  shells.pass(seconds(3));
  REQUIRE(shells.second->streams.size() == 2);
  shells.second->streams[1].opened();
  shells.run();
  CHECK(asked_for(*shells.second) == std::set<std::string>{"LDS orders other"});
}

TEST_CASE("xds_client: a stream whose actor dies waits ever longer, until a quiet minute",
          "[actors][xds_client][B8]") {
  Shells shells;
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, client, kListener, std::make_shared<Heard>()));
  shells.run();
  // The valid response before "poison", which kills the stream's actor, does not shorten the delay.
  const auto time_to_restart = [&] {
    const std::size_t before = shells.transport->streams.size();
    shells.transport->streams.back().opened();
    shells.transport->streams.back().received("response");
    shells.transport->streams.back().received("poison");
    shells.run();
    Duration time{};
    for (; shells.transport->streams.size() == before && time < seconds(20);
         time += milliseconds(50))
      shells.pass(milliseconds(50));
    return time;
  };
  CHECK(time_to_restart() == seconds(2));
  CHECK(time_to_restart() == seconds(4));
  CHECK(time_to_restart() == seconds(8));
  shells.pass(seconds(60));
  CHECK(time_to_restart() == seconds(2));
}

TEST_CASE("xds_client: a server that is left while its stream is dead is forgotten",
          "[actors][xds_client][A71][A78]") {
  Shells shells(two_servers());
  const ResourcesReceived listeners = one_listener();
  *shells.responses = {{"LDS", {listeners, "1", ""}}};
  const auto heard = std::make_shared<Heard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, client, kListener, heard));
  shells.run();
  shells.transport->streams[0].closed(absl::UnavailableError("refused"));
  shells.run();
  shells.second->streams.at(0).opened();
  shells.run();
  shells.pass(milliseconds(1400));
  REQUIRE(shells.transport->streams.size() == 2);
  shells.second->streams[0].received("poison");
  shells.run();
  shells.transport->streams[1].opened();
  shells.transport->streams[1].received("LDS");
  shells.run();
  CHECK(heard->resources.size() == 1);
  shells.pass(seconds(30));
  CHECK(shells.second->streams.size() == 1);
  const std::string metrics = shells.metrics();
  INFO(metrics);
  CHECK_FALSE(absl::StrContains(metrics, "xds_connected{xds_server=\"second\"}"));
}

TEST_CASE("xds_client: a failed server is left with its last watcher, and the next begins anew",
          "[actors][xds_client][A57][A78]") {
  Shells shells;
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  const auto& streams = shells.transport->streams;
  const auto connected = [&] {
    const std::string metrics = shells.metrics();
    const std::size_t begin = metrics.find("\nsignalbox_xds_connected{");
    if (begin == std::string::npos) return std::string("none");
    return metrics.substr(metrics.find("} ", begin) + 2, 1);
  };
  const auto watch = [&] {
    const auto mortal =
        shells.system().spawn(observe, client, kListener, std::make_shared<Heard>());
    shells.run();
    return mortal;
  };
  const auto first = watch();
  streams.at(0).closed(absl::UnavailableError("refused"));
  shells.run();
  CHECK(connected() == "0");
  caf::anon_send_exit(first, caf::exit_reason::kill);
  shells.run();
  CHECK(connected() == "none");
  // Another comes and goes before the next stream may start.
  caf::anon_send_exit(watch(), caf::exit_reason::kill);
  shells.run();
  shells.pass(seconds(3));
  CHECK(streams.size() == 1);
  CHECK(connected() == "none");

  const auto heard = std::make_shared<Heard>();
  shells.keep(shells.system().spawn(observe, client, kListener, heard));
  shells.run();
  CHECK(streams.size() == 2);
  CHECK(connected() == "1");
  CHECK(heard->resources.empty());
}

// The stream is ordered to end while it decodes a response. The results of that response come too
// late and are dropped.
TEST_CASE("xds_client: a server that is left while its stream decodes is forgotten",
          "[actors][xds_client][A71][A78]") {
  Shells shells(two_servers());
  *shells.responses = {{"LDS", {one_listener(), "1", ""}}, {"late", {one_listener(), "1", ""}}};
  const auto heard = std::make_shared<Heard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, client, kListener, heard));
  shells.run();
  const auto is_shown = [&] {
    return absl::StrContains(shells.metrics(), "xds_connected{xds_server=\"second\"}");
  };
  shells.transport->streams[0].closed(absl::UnavailableError("refused"));
  shells.run();
  shells.second->streams.at(0).opened();
  shells.run();
  CHECK(is_shown());
  shells.pass(milliseconds(1400));
  REQUIRE(shells.transport->streams.size() == 2);
  (*shells.meanwhile)["late"] = [&] {
    shells.transport->streams[1].opened();
    shells.transport->streams[1].received("LDS");
    shells.run();
    CHECK_FALSE(is_shown());
  };
  shells.second->streams[0].received("late");
  shells.run();
  CHECK(shells.second->ended == 1);
  CHECK(heard->resources.size() == 1);
  INFO(shells.metrics());
  CHECK_FALSE(is_shown());
}

TEST_CASE("xds_client: while one server's long response is decoded, another's update is applied",
          "[actors][xds_client][A47]") {
  xds::ClientOptions options;
  options.servers = {{.name = "first"}, {.name = "second"}};
  options.authorities = {{"other", {1}}};
  Shells shells(std::move(options));
  const std::string name = "xdstp://other/envoy.config.listener.v3.Listener/invoices";
  const auto listeners = [](const std::string& of) {
    ResourcesReceived received{ResourceType::kListener, "1", {}, {}};
    received.resources.push_back(
        {of, Resource{tests::inline_listener(of, tests::routes_to("r", {}))}});
    return received;
  };
  *shells.responses = {{"long", {listeners("orders"), "1", ""}},
                       {"short", {listeners(name), "1", ""}}};
  (*shells.parts)["long"] = 50;
  const auto orders = std::make_shared<Heard>();
  const auto invoices = std::make_shared<Heard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, client, kListener, orders));
  shells.keep(
      shells.system().spawn(observe, client, ResourceKey{ResourceType::kListener, name}, invoices));
  shells.run();
  shells.transport->streams.at(0).opened();
  shells.second->streams.at(0).opened();
  shells.run();

  shells.transport->streams[0].received("long");
  shells.run();
  shells.second->streams[0].received("short");
  shells.run();
  CHECK(invoices->resources.size() == 1);
  CHECK(orders->resources.empty());
  // A server's next response is not read before its previous response is decoded.
  CHECK(shells.transport->reads == 0);
  CHECK(shells.second->reads == 1);
  shells.pass(seconds(5));
  CHECK(orders->resources.size() == 1);
  CHECK(shells.transport->reads == 1);
}

TEST_CASE("xds_client: the gauges of a dead client do not stay", "[actors][xds_client][A40][A78]") {
  Shells shells(two_servers());
  const ResourcesReceived listeners = one_listener();
  ResourcesReceived bad{ResourceType::kListener, "1", {}, {}};
  bad.resources.push_back({"orders", absl::InvalidArgumentError("bad")});
  *shells.responses = {{"LDS", {listeners, "1", ""}}, {"BAD", {bad, "1", "bad"}}};
  const auto heard = std::make_shared<Heard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, client, kListener, heard));
  shells.run();
  shells.transport->streams[0].closed(absl::UnavailableError("refused"));
  shells.run();
  shells.second->streams.at(0).opened();
  shells.second->streams.at(0).received("BAD");
  shells.run();
  caf::anon_send_exit(client, caf::exit_reason::kill);
  shells.run();
  const auto again = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, again, kListener, heard));
  shells.run();
  shells.transport->streams.back().opened();
  shells.transport->streams.back().received("LDS");
  shells.run();
  const std::string metrics = shells.metrics();
  INFO(metrics);
  CHECK(absl::StrContains(
      metrics, "signalbox_xds_resources{resource_type=\"LDS\",cache_state=\"acked\"} 1"));
  CHECK_FALSE(absl::StrContains(
      metrics, "signalbox_xds_resources{resource_type=\"LDS\",cache_state=\"nacked\"} 1"));
  CHECK_FALSE(absl::StrContains(metrics, "xds_connected{xds_server=\"second\"}"));
}

TEST_CASE("xds_client: of a thousand with one bad, 999 serve, and all say which one is bad",
          "[actors][xds_client][A46][S10]") {
  envoy::service::discovery::v3::DiscoveryResponse response;
  response.set_version_info("7");
  response.set_nonce("n");
  response.set_type_url(std::string(xds::kClusterTypeUrl));
  WatchesChanged wanted;
  for (int i = 0; i < 1000; ++i) {
    envoy::config::cluster::v3::Cluster cluster;
    cluster.set_name(absl::StrCat("c", i));
    if (i != 500) {
      cluster.set_type(envoy::config::cluster::v3::Cluster::EDS);
      cluster.mutable_eds_cluster_config()->mutable_eds_config()->mutable_self();
    }
    auto* any = response.add_resources();
    any->set_type_url(std::string(xds::kClusterTypeUrl));
    any->set_value(cluster.SerializeAsString());
    wanted.changes.emplace_back(Watch{tests::cds(cluster.name())});
  }
  Shells shells;
  *shells.responses = {{"CDS", *xds::decode_response(response.SerializeAsString())}};
  const auto heard = std::make_shared<Heard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe_all, client, wanted, heard));
  shells.run();
  shells.transport->streams.at(0).opened();
  shells.transport->streams.at(0).received("CDS");
  shells.run();

  CHECK(std::ranges::count_if(heard->resources, [](const ResourceChanged& change) {
          return change.resource.ok();
        }) == 999);
  envoy::service::discovery::v3::DiscoveryRequest nack;
  REQUIRE(nack.ParseFromString(shells.transport->sent.back()));
  CHECK(nack.response_nonce() == "n");
  CHECK(nack.version_info().empty());
  CHECK(absl::StrContains(nack.error_detail().message(), "\"c500\""));
  CHECK_FALSE(absl::StrContains(nack.error_detail().message(), "\"c501\""));

  const auto reply = std::make_shared<DumpReply>();
  auto answer = reply->future();
  protocol::post(client, protocol::DumpRequested{reply});
  shells.run();
  const auto dump = answer.get();
  REQUIRE(dump.ok());
  REQUIRE(dump->resources.size() == 1000);
  for (const ResourceState& state : dump->resources) {
    const bool is_bad = state.key.name == "c500";
    CHECK(state.status == (is_bad ? ResourceStatus::kNacked : ResourceStatus::kAcked));
    CHECK((state.bytes == nullptr) == is_bad);
  }
  const std::string metrics = shells.metrics();
  for (const char* line :
       {"signalbox_xds_resources{resource_type=\"CDS\",cache_state=\"acked\"} 999",
        "signalbox_xds_resources{resource_type=\"CDS\",cache_state=\"nacked\"} 1",
        "signalbox_config_rejected_total{reason=\"semantic\"} 1",
        "signalbox_config_rejected_total{reason=\"limit\"} 0"}) {
    INFO(metrics);
    CHECK(absl::StrContains(metrics, line));
  }
}

TEST_CASE("xds_watcher: a thousand clusters cost one request for each type, and one ACK",
          "[actors][xds_watcher][scale]") {
  Shells shells;
  std::vector<std::string> names;
  ResourcesReceived clusters{ResourceType::kCluster, "1", {}, {}};
  ResourcesReceived endpoints{ResourceType::kEndpoints, "1", {}, {}};
  for (int i = 0; i < 1000; ++i) {
    const std::string name = absl::StrCat("c", i);
    names.push_back(name);
    clusters.resources.push_back({name, Resource{tests::eds_cluster(name, name)}});
    endpoints.resources.push_back(
        {name, Resource{tests::endpoints({{tests::locality("l", {name})}})}});
  }
  ResourcesReceived listeners{ResourceType::kListener, "1", {}, {}};
  listeners.resources.push_back(
      {"orders", Resource{tests::inline_listener("orders", tests::routes_to("r", names))}});
  *shells.responses = {
      {"LDS", {listeners, "1", ""}}, {"CDS", {clusters, "2", ""}}, {"EDS", {endpoints, "3", ""}}};

  const auto heard = std::make_shared<Heard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  const auto listener = shells.keep(shells.system().spawn(listen, heard));
  shells.keep(spawn_watcher(shells.system(), shells.environment, port(), client, listener));
  shells.run();
  shells.transport->streams.at(0).opened();
  shells.run();
  CHECK(shells.transport->sent.size() == 1);
  for (const char* response : {"LDS", "CDS", "EDS"}) {
    shells.transport->streams.at(0).received(response);
    shells.run();
  }
  CHECK(shells.transport->sent.size() == 6);
  REQUIRE(heard->configs.size() == 1);
  CHECK(heard->configs[0].config->clusters.size() == 1000);
}

TEST_CASE("xds_watcher: a look-up has an actor for as long as it lasts, and no longer",
          "[actors][xds_watcher][dns]") {
  Shells shells;
  const auto heard = std::make_shared<Heard>();
  const std::map<ResourceKey, std::vector<Resource>> resources{
      {tests::lds("orders"), {tests::inline_listener("orders", tests::routes_to("r", {"d"}))}},
      {tests::cds("d"), {tests::dns_cluster("d", "host:80")}}};
  const auto client = shells.keep(shells.system().spawn(serve, resources));
  const auto listener = shells.keep(shells.system().spawn(listen, heard));
  const auto watcher =
      shells.keep(spawn_watcher(shells.system(), shells.environment, port(), client, listener));
  const std::size_t before = shells.living();
  shells.run();
  shells.pass(seconds(1));
  CHECK(shells.lookup->asked == 1);
  CHECK(heard->configs.size() == 1);
  CHECK(shells.living() == before);

  shells.pass(seconds(60));
  protocol::post(watcher, ReresolutionRequested{});
  shells.run();
  shells.pass(seconds(1));
  CHECK(shells.lookup->asked == 2);
  CHECK(shells.living() == before);
}

TEST_CASE("xds_watcher: a look-up that is under way answers for a name that is wanted again",
          "[actors][xds_watcher][dns][A37-15]") {
  Shells shells;
  const auto heard = std::make_shared<Heard>();
  // The cluster changes from DNS to EDS and back to DNS before the look-up has run.
  const std::map<ResourceKey, std::vector<Resource>> resources{
      {tests::lds("orders"), {tests::inline_listener("orders", tests::routes_to("r", {"d"}))}},
      {tests::cds("d"),
       {tests::dns_cluster("d", "host:80"),
        tests::eds_cluster("d", "e"),
        tests::dns_cluster("d", "host:80")}},
      {tests::eds("e"), {tests::endpoints({})}}};
  const auto client = shells.keep(shells.system().spawn(serve, resources));
  const auto listener = shells.keep(shells.system().spawn(listen, heard));
  shells.keep(spawn_watcher(shells.system(), shells.environment, port(), client, listener));
  const std::size_t before = shells.living();
  shells.run();
  CHECK(shells.lookup->asked == 1);
  CHECK(shells.living() == before);
  REQUIRE_FALSE(heard->configs.empty());
  const auto& found = heard->configs.back().config->clusters.at(ClusterName("d"));
  REQUIRE(found.ok());
  const auto& leaf = std::get<LeafEndpoints>((*found)->children);
  REQUIRE(leaf.endpoints != nullptr);
  CHECK(leaf.endpoints->priorities[0].localities[0]->endpoints[0].addresses[0].str() ==
        "127.0.0.1:80");
}

TEST_CASE("xds_watcher: what a missing cluster does to its aggregate is the environment's to say",
          "[actors][xds_watcher][A37-13][D2]") {
  const bool fails = GENERATE(false, true);
  Shells shells;
  Environment changed = *shells.environment;
  changed.missing_leaf = fails ? xds::MissingLeaf::kFailAggregate : xds::MissingLeaf::kSkip;
  shells.environment = std::make_shared<const Environment>(std::move(changed));
  const auto heard = std::make_shared<Heard>();
  const std::map<ResourceKey, std::vector<Resource>> resources{
      {tests::lds("orders"), {tests::inline_listener("orders", tests::routes_to("r", {"agg"}))}},
      {tests::cds("agg"), {tests::aggregate("agg", {"there", "missing"})}},
      {tests::cds("there"), {tests::eds_cluster("there", "e")}},
      {tests::eds("e"), {tests::endpoints({{tests::locality("l", {"1"})}})}}};
  const auto client = shells.keep(shells.system().spawn(serve, resources));
  const auto listener = shells.keep(shells.system().spawn(listen, heard));
  shells.keep(spawn_watcher(shells.system(), shells.environment, port(), client, listener));
  shells.run();
  REQUIRE(heard->configs.size() == 1);
  CHECK(heard->configs[0].config->clusters.at(ClusterName("agg")).ok() == !fails);
}

TEST_CASE("xds_watcher: another xds_client that has nothing takes nothing away",
          "[actors][xds_watcher][A88]") {
  Shells shells;
  const auto heard = std::make_shared<Heard>();
  const std::map<ResourceKey, std::vector<Resource>> resources{
      {tests::lds("orders"), {tests::inline_listener("orders", tests::routes_to("r", {}))}}};
  const auto client = shells.keep(shells.system().spawn(serve, resources));
  const auto listener = shells.keep(shells.system().spawn(listen, heard));
  const auto watcher =
      shells.keep(spawn_watcher(shells.system(), shells.environment, port(), client, listener));
  shells.run();
  REQUIRE(heard->configs.size() == 1);
  const auto other = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  protocol::post(watcher, protocol::XdsClientReplaced{caf::actor_cast<caf::actor>(other)});
  shells.run();
  shells.transport->streams.at(0).closed(absl::UnavailableError("refused"));
  shells.run();
  shells.pass(seconds(60));
  CHECK(heard->errors.empty());
  REQUIRE(heard->configs.size() == 2);
  CHECK(heard->configs[1].config == heard->configs[0].config);
  CHECK(absl::StrContains(heard->configs[1].notes->target, "refused"));
}

TEST_CASE("channel: the series of a cluster that it no longer refers to end a minute later",
          "[actors][channel][metrics]") {
  Instant now{std::chrono::hours(1)};
  Shells shells;
  Environment made = *shells.environment;
  made.reclaimer = std::make_shared<ReclaimAtOnce>();
  made.instruments = std::make_shared<metrics::Instruments>([&now] { return now; });
  shells.environment = std::make_shared<const Environment>(std::move(made));
  const auto has_series = [&] { return absl::StrContains(shells.metrics(), "cluster=\"c\""); };
  const auto client_with = [&](const std::vector<std::string>& clusters) {
    const auto routes = tests::routes_to("r", clusters);
    const std::map<ResourceKey, std::vector<Resource>> resources{
        {tests::lds("orders"), {tests::inline_listener("orders", routes)}}};
    return shells.keep(shells.system().spawn(serve, resources));
  };
  ChannelPort its = *port();
  its.cell = std::make_shared<lb::SnapshotCell>();
  its.listener = std::make_shared<Unheard>();
  const auto channel =
      shells.keep(spawn_channel(shells.system(),
                                shells.environment,
                                std::make_shared<const ChannelPort>(std::move(its)),
                                client_with({"c"})));
  shells.run();
  REQUIRE(has_series());
  now += seconds(61);
  REQUIRE(has_series());

  const auto other = client_with({});
  protocol::post(channel, protocol::XdsClientReplaced{caf::actor_cast<caf::actor>(other)});
  shells.pass(seconds(1));  // The watcher lets changes settle before it passes them on.
  CHECK(has_series());      // A scrape can still read the last values of the cluster.
  now += seconds(61);
  CHECK_FALSE(has_series());
}

namespace {

// The responses LDS, CDS and EDS for one cluster with these endpoints.
Responses one_cluster(const std::vector<std::string>& addresses) {
  ResourcesReceived listeners{ResourceType::kListener, "7", {}, {}};
  listeners.resources.push_back(
      {"orders", Resource{tests::inline_listener("orders", tests::routes_to("r", {"c"}))}});
  ResourcesReceived clusters{ResourceType::kCluster, "7", {}, {}};
  clusters.resources.push_back({"c", Resource{tests::eds_cluster("c", "e")}});
  ResourcesReceived endpoints{ResourceType::kEndpoints, "7", {}, {}};
  endpoints.resources.push_back(
      {"e", Resource{tests::endpoints({{tests::locality("l", addresses)}})}});
  return {
      {"LDS", {listeners, "1", ""}}, {"CDS", {clusters, "2", ""}}, {"EDS", {endpoints, "3", ""}}};
}

}  // namespace

TEST_CASE("channel: says when a target is first served, and when picks saw a configuration",
          "[actors][channel][metrics]") {
  Shells shells;
  std::vector<LogLine> log;
  Environment made = *shells.environment;
  made.reclaimer = std::make_shared<ReclaimAtOnce>();
  made.connector = std::make_shared<ReadyConnector>();
  // Keeps the lines that a runtime logs by default.
  made.log = [&](const LogLine& line) {
    if (line.level >= LogLevel::kNotice) log.push_back(line);
  };
  shells.environment = std::make_shared<const Environment>(std::move(made));
  *shells.responses = one_cluster({"a:1", "b:1"});
  ResourcesReceived fewer{ResourceType::kEndpoints, "8", {}, {}};
  fewer.resources.push_back({"e", Resource{tests::endpoints({{tests::locality("l", {"a:1"})}})}});
  shells.responses->insert({"EDS again", {fewer, "4", ""}});
  ChannelPort its = *port();
  its.cell = std::make_shared<lb::SnapshotCell>();
  its.listener = std::make_shared<Unheard>();
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(spawn_channel(
      shells.system(), shells.environment, std::make_shared<const ChannelPort>(its), client));
  shells.run();
  shells.transport->streams.at(0).opened();
  shells.run();
  const std::string count = "signalbox_config_propagation_seconds_count{target=\"xds:///orders\"} ";
  for (const char* response : {"LDS", "CDS", "EDS"}) {
    CHECK_FALSE(absl::StrContains(shells.metrics(), count));
    CHECK(log.empty());
    shells.transport->streams.at(0).received(response);
    shells.pass(milliseconds(100));
  }
  CHECK(log ==
        std::vector<LogLine>{{LogLevel::kNotice,
                              LogKind::kConfigApplied,
                              "xds:///orders: connected: 2 endpoints in 1 locality, version 7"}});
  CHECK(absl::StrContains(shells.metrics(), count + "1"));
  REQUIRE(its.applied->newest_last().size() == 1);
  const AppliedConfig first = its.applied->newest_last()[0];
  CHECK(first.versions == ResourceVersions{"7", "", "7", "7"});
  CHECK(first.received);
  CHECK(*first.received <= first.served);

  shells.transport->streams.at(0).received("EDS again");
  shells.pass(seconds(1));
  CHECK(log.size() == 1);
  CHECK(absl::StrContains(shells.metrics(), count + "2"));
  REQUIRE(its.applied->newest_last().size() == 2);
  CHECK(its.applied->newest_last()[1].versions == ResourceVersions{"7", "", "7", "8"});
  CHECK(its.applied->newest_last()[1].generation > first.generation);
  const std::string metrics = shells.metrics();
  for (const char* line :
       {"signalbox_config_last_applied_timestamp_seconds{target=\"xds:///orders\"} ",
        "signalbox_config_apply_duration_seconds_count{target=\"xds:///orders\"} 2",
        "signalbox_xds_response_bytes_count{resource_type=\"EDS\"} 2",
        "signalbox_xds_response_bytes_sum{resource_type=\"LDS\"} 3",
        "signalbox_xds_streams_total{xds_server=\"server\",end=\"error\"} 0"}) {
    INFO(line);
    CHECK(absl::StrContains(metrics, line));
  }
  shells.transport->streams.at(0).closed(absl::UnavailableError("reset"));
  shells.run();
  CHECK(absl::StrContains(shells.metrics(),
                          "signalbox_xds_streams_total{xds_server=\"server\",end=\"error\"} 1"));
}

// While a line is written, the other actors run, as they do beside a log that blocks its thread.
TEST_CASE("policy: picks know of a lost connection before the log says so",
          "[actors][policy][channel]") {
  Shells shells;
  const auto connector = give_counting_connector(shells);
  ChannelPort its = *port();
  its.cell = std::make_shared<lb::SnapshotCell>();
  its.listener = std::make_shared<Unheard>();
  const auto sequence = [&] { return lb::SnapshotCell::Reader(*its.cell)->sequence; };
  std::vector<std::uint64_t> when_written;
  Environment made = *shells.environment;
  made.reclaimer = std::make_shared<ReclaimAtOnce>();
  made.log = [&](const LogLine& line) {
    if (line.kind != LogKind::kPriority) return;
    shells.run();
    when_written.push_back(sequence());
  };
  shells.environment = std::make_shared<const Environment>(std::move(made));
  *shells.responses = one_cluster({"a:1"});
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(spawn_channel(
      shells.system(), shells.environment, std::make_shared<const ChannelPort>(its), client));
  shells.run();
  shells.transport->streams.at(0).opened();
  for (const char* response : {"LDS", "CDS", "EDS"}) {
    shells.run();
    shells.transport->streams.at(0).received(response);
    shells.pass(milliseconds(100));
  }
  REQUIRE(connector->asked.size() == 1);
  connector->asked[0].connected(std::make_shared<const Connection>(Address("a:1")));
  shells.run();
  REQUIRE(when_written.empty());
  const std::uint64_t before = sequence();

  connector->asked[0].closed(absl::UnavailableError("reset"));
  shells.run();
  REQUIRE(when_written.size() == 1);
  CHECK(when_written[0] > before);
}

TEST_CASE("workload: one message in sixteen of each actor is measured, the first included",
          "[actors][metrics]") {
  Shells shells;
  shells.connector->harmless = 0;
  const auto map = shells.keep(spawn_subchannel_map(shells.system(), shells.environment));
  const auto shown = [&](const std::string& name) {
    const std::string metrics = shells.metrics();
    const std::string begin = "signalbox_actor_" + name + "{actor=\"subchannel_map\"} ";
    const auto at = metrics.find(begin);
    return at == std::string::npos ? -1 : std::stod(metrics.substr(at + begin.size()));
  };
  shells.run();
  CHECK(shown("handle_duration_seconds_count") == 0);
  for (Generation generation = 1; generation <= 18; ++generation)
    protocol::post(map, MapGenerationStarted{{ClusterName("orders")}, generation});
  shells.run();
  const double messages = shown("messages_total");
  CHECK(messages == 18);
  CHECK(shown("handle_duration_seconds_count") == 2);
  // Only every sixteenth message is measured: 1 and 17, but not 19.
  protocol::post(map, MapGenerationStarted{{ClusterName("orders")}, 19});
  shells.run();
  CHECK(shown("handle_duration_seconds_count") == 2);
  CHECK(shown("mailbox_messages") == 0);
}

TEST_CASE("workload: a long mailbox shows", "[actors][metrics]") {
  Shells shells;
  const auto map = shells.keep(spawn_subchannel_map(shells.system(), shells.environment));
  shells.run();
  for (Generation generation = 1; generation <= 40; ++generation)
    protocol::post(map, MapGenerationStarted{{ClusterName("orders")}, generation});
  shells.run();
  const std::string metrics = shells.metrics();
  const std::string begin = "signalbox_actor_mailbox_messages{actor=\"subchannel_map\"} ";
  const auto at = metrics.find(begin);
  REQUIRE(at != std::string::npos);
  const double longest = std::stod(metrics.substr(at + begin.size()));
  CHECK(longest >= 20);
  CHECK(longest < 40);
}

TEST_CASE("policy: the gauges of an aggregate's priorities end with the policy",
          "[actors][policy][metrics][A56]") {
  Shells shells;
  const auto routed = shells.environment->instruments->hold_cluster(ClusterName("orders"));
  PriorityConfig config;
  config.cluster = ClusterName("orders");
  const auto parent = shells.spawn_policy_at("m/orders", CdsConfig{ClusterName("orders")});
  const auto policy = shells.spawn_policy_at("m/orders/child", config, parent);
  protocol::post(policy, ConfigUpdated{1, make_lb_config(config), nullptr, nullptr});
  shells.run();
  REQUIRE(absl::StrContains(shells.metrics(), "signalbox_priority_active{cluster=\"orders\"} -1"));

  protocol::stop(policy);
  shells.run();
  CHECK_FALSE(absl::StrContains(shells.metrics(), "signalbox_priority_active{cluster=\"orders\"}"));
}

TEST_CASE("subchannel_map: the gauges of its cluster stay for as long as it does",
          "[actors][subchannel_map][metrics]") {
  Shells shells;
  shells.connector->harmless = 0;
  const auto map = shells.keep(spawn_subchannel_map(shells.system(), shells.environment));
  protocol::post(map, MapGenerationStarted{{ClusterName("orders")}, 1});
  shells.hold_one_of(map);
  shells.run();
  const std::string gauge = "signalbox_endpoints{cluster=\"orders\",state=\"connecting\"} 1";
  REQUIRE(absl::StrContains(shells.metrics(), gauge));
  shells.environment->instruments->hold_cluster(ClusterName("orders")).reset();
  CHECK(absl::StrContains(shells.metrics(), gauge));

  protocol::stop(map);
  shells.run();
  CHECK_FALSE(absl::StrContains(shells.metrics(), "signalbox_endpoints{"));
}

TEST_CASE("subchannel_map: a dead subchannel that nobody holds any more does not come back",
          "[actors][subchannel_map]") {
  Shells shells;
  const auto map = shells.spawn_held_map();
  shells.run();
  CHECK(shells.connector->asked == 1);
  const std::size_t living = shells.living();  // The subchannel died when it tried to connect.
  protocol::post(map, SubchannelReleased{Holder{PolicyPath("p"), {1}}, Address("127.0.0.1:80")});
  shells.pass(seconds(1));
  CHECK(shells.living() == living);
}

TEST_CASE("subchannel_map: a subchannel that dies again and again is restarted ever later",
          "[actors][subchannel_map]") {
  Shells shells;
  shells.spawn_held_map();
  shells.run();
  CHECK(shells.connector->asked == 1);
  shells.pass(seconds(1));
  CHECK(shells.connector->asked == 4);  // Restarts after 0.1, 0.3 and 0.7 s.
}

TEST_CASE("subchannel_map: a subchannel that lived for a minute is restarted soon again",
          "[actors][subchannel_map]") {
  Shells shells;
  shells.connector->harmless = 4;
  shells.spawn_held_map();
  shells.run();
  shells.pass(seconds(65));
  const int before = shells.connector->asked;
  shells.connector->harmless = 1000;
  shells.connector->waiting.failed(absl::UnavailableError("refused"));
  shells.run();
  for (int i = 0; i < 100 && shells.connector->asked == before; ++i)
    shells.pass(milliseconds(50));
  shells.pass(milliseconds(350));
  CHECK(shells.connector->asked == before + 3);  // Attempts at once, after 0.1 s and after 0.3 s.
}

TEST_CASE("subchannel_map: a restarted subchannel has the newest number of connections",
          "[actors][subchannel_map][A105-4]") {
  const bool with_tls = GENERATE(false, true);
  const std::uint32_t newest = GENERATE(1U, 2U);
  CAPTURE(with_tls, newest);
  Shells shells;
  DeadlyConnector& connector = *shells.connector;
  connector.harmless = 0;
  SubchannelSettings settings;
  settings.max_connections = newest;
  const auto map = shells.keep(spawn_subchannel_map(shells.system(), shells.environment));
  protocol::post(map, MapGenerationStarted{settings, 1});
  shells.hold_one_of(map);
  shells.run();
  CHECK(connector.is_alone == (newest > 1));
  settings.max_connections = 3 - newest;
  protocol::post(map, MapGenerationStarted{settings, 2});
  shells.run();
  settings.max_connections = newest;
  if (with_tls) settings.tls = std::make_shared<const UpstreamTls>();
  protocol::post(map, MapGenerationStarted{settings, 3});
  connector.harmless = 1000;
  if (!with_tls) connector.waiting.failed(absl::UnavailableError("refused"));
  const int before = connector.asked;
  for (int i = 0; i < 100 && connector.asked == before; ++i)
    shells.pass(milliseconds(50));
  REQUIRE(connector.asked > before);  // The actor died when it tried to connect.
  connector.harmless = 0;
  connector.is_alone = newest == 1;
  shells.pass(seconds(1));
  CHECK(connector.is_alone == (newest > 1));
}

TEST_CASE("subchannel_map: a READY subchannel that dies is IDLE first, and then failed",
          "[actors][subchannel_map][A62]") {
  Shells shells;
  DeadlyConnector& connector = *shells.connector;
  connector.harmless = 0;
  const auto map = shells.spawn_held_map();
  shells.run();
  connector.waiting.connected(std::make_shared<const Connection>(Address("127.0.0.1:80")));
  shells.run();
  const auto reports = std::make_shared<std::vector<ConnectivityState>>();
  shells.keep(shells.system().spawn(watch, map, reports));
  shells.run();
  REQUIRE(*reports == std::vector{ConnectivityState::kReady});

  reports->clear();
  SubchannelSettings settings;
  settings.max_connections = 2;
  protocol::post(map, MapGenerationStarted{settings, 1});  // A message for the subchannel.
  shells.kill_next("signalbox.subchannel");
  CHECK(*reports == std::vector{ConnectivityState::kIdle, ConnectivityState::kTransientFailure});

  reports->clear();
  shells.pass(seconds(1));
  CHECK(*reports == std::vector{ConnectivityState::kIdle, ConnectivityState::kConnecting});
}

TEST_CASE("health_checker: lives beside its subchannel, and says whether that is fit",
          "[actors][health_checker][subchannel_map]") {
  Shells shells;
  shells.connector->harmless = 0;
  const std::string here = "127.0.0.1:80";
  const auto with_checks = [](Duration interval) {
    const HealthCheck check{
        .probe = HealthCheck::Tcp{}, .timeout = seconds(1), .interval = interval};
    return std::make_shared<const std::vector<HealthCheck>>(1, check);
  };
  const auto start = [&](Generation generation, HealthChecksPtr checks, ProbeException how = {}) {
    auto exceptions =
        std::make_shared<const ProbeExceptions>(ProbeExceptions{{Address("127.0.0.1:80"), how}});
    return MapGenerationStarted{{.cluster = ClusterName("orders"),
                                 .health_checks = std::move(checks),
                                 .probe_exceptions = std::move(exceptions)},
                                generation};
  };
  const auto map = shells.keep(spawn_subchannel_map(shells.system(), shells.environment));
  const auto shows = [&](const std::string& line) {
    return absl::StrContains(shells.metrics(), "signalbox_" + line + "\n");
  };
  const auto is_unhealthy = [&] {
    return shows("endpoints{cluster=\"orders\",state=\"unhealthy\"} 1");
  };
  protocol::post(map, start(1, with_checks(seconds(5))));
  shells.run();
  const std::size_t before = shells.living();
  shells.hold_one_of(map);
  shells.run();
  CHECK(shells.living() == before + 3);  // The holder, the subchannel, the checker.
  REQUIRE(shells.prober->under_way(here) == 1);
  CHECK_FALSE(is_unhealthy());
  shells.prober->answer(here, ProbeOutcome::kFailed);
  shells.run();
  REQUIRE(is_unhealthy());
  CHECK(shows("health_probes_total{cluster=\"orders\",result=\"failure\"} 1"));

  SECTION("probe by probe, an interval apart") {
    shells.pass(milliseconds(4950));
    CHECK(shells.prober->begun == 1);
    shells.pass(milliseconds(50));
    CHECK(shells.prober->begun == 2);
    shells.prober->answer(here, ProbeOutcome::kPassed);
    shells.run();
    CHECK_FALSE(is_unhealthy());
    CHECK(shows("health_probes_total{cluster=\"orders\",result=\"success\"} 1"));
  }
  SECTION("one that dies is made anew, and what it said holds meanwhile") {
    shells.pass(seconds(5));
    shells.prober->answer(here, ProbeOutcome::kFailed);
    shells.kill_next("signalbox.health_checker");
    CHECK(shells.living() == before + 2);
    CHECK(absl::StrContains(shells.metrics(),
                            "signalbox_actor_deaths_total{actor=\"health_checker\""));
    CHECK(is_unhealthy());
    shells.pass(milliseconds(100));
    CHECK(shells.living() == before + 3);
    shells.prober->answer(here, ProbeOutcome::kPassed);
    shells.run();
    CHECK_FALSE(is_unhealthy());
  }
  SECTION("it ends with the last hold") {
    protocol::post(map, MapGenerationApplied{1});
    protocol::post(map, SubchannelReleased{Holder{PolicyPath("p"), {1}}, Address(here)});
    shells.run();
    CHECK(shells.living() == before + 1);
    CHECK(shells.prober->prepared(here) == 0);
  }
  SECTION("it ends with the map") {
    protocol::stop(map);
    shells.run();
    CHECK(shells.prober->prepared(here) == 0);
  }
  SECTION("it ends where nothing is to be checked any more, and the endpoint is fit") {
    protocol::post(map, start(2, nullptr));
    shells.run();
    CHECK(shells.living() == before + 2);
    CHECK(shells.prober->prepared(here) == 0);
    CHECK_FALSE(is_unhealthy());
  }
  SECTION("the same settings leave it alone") {
    protocol::post(map, start(2, with_checks(seconds(5))));
    shells.run();
    CHECK(shells.prober->begun == 1);
  }
  SECTION("with other settings it begins anew, and what was said holds until it says more") {
    protocol::post(map, start(2, with_checks(seconds(7))));
    shells.run();
    CHECK(shells.living() == before + 3);
    CHECK(shells.prober->begun == 2);
    CHECK(is_unhealthy());
    shells.prober->answer(here, ProbeOutcome::kPassed);
    shells.run();
    CHECK_FALSE(is_unhealthy());
  }
  SECTION("it may be probed at another port") {
    protocol::post(map, start(2, with_checks(seconds(5)), {.is_exempt = false, .port = 81}));
    shells.run();
    CHECK(shells.prober->prepared(here) == 0);
    CHECK(shells.prober->under_way("127.0.0.1:81") == 1);
    shells.prober->answer("127.0.0.1:81", ProbeOutcome::kPassed);
    shells.run();
    CHECK_FALSE(is_unhealthy());
  }
}

TEST_CASE("health_checker: one that dies at birth comes back", "[actors][health_checker]") {
  Shells shells;
  shells.connector->harmless = 0;
  shells.prober->deadly = 2;
  const auto map = shells.keep(spawn_subchannel_map(shells.system(), shells.environment));
  const HealthCheck check{
      .probe = HealthCheck::Tcp{}, .timeout = seconds(1), .interval = seconds(5)};
  const MapGenerationStarted order{
      {.cluster = ClusterName("orders"),
       .health_checks = std::make_shared<const std::vector<HealthCheck>>(1, check)},
      1};
  protocol::post(map, order);
  shells.hold_one_of(map);
  shells.run();
  CHECK(shells.prober->begun == 0);
  shells.pass(seconds(1));
  CHECK(shells.prober->begun == 1);
}

TEST_CASE("sweeper: sweeps are asked for while sessions are kept, whatever becomes of it",
          "[actors][sweeper][subchannel_map][A75-29][A75-40]") {
  Shells shells;
  const auto map = shells.keep(spawn_subchannel_map(shells.system(), shells.environment));
  protocol::post(map, MapGenerationStarted{{ClusterName("orders")}, 1});
  protocol::post(map, MapGenerationApplied{1});
  shells.run();
  const std::size_t before = shells.living();
  auto marks = std::make_shared<SessionMarks>();
  (*marks)[Address("127.0.0.1:80")].mark = std::make_shared<const SessionMark>();
  const SessionsKept order{Holder{PolicyPath("k"), {1}}, seconds(10), marks};
  const auto keeper = shells.keep(shells.system().spawn(keep_sessions, map, order));
  shells.run();
  REQUIRE(shells.living() == before + 3);  // The keeper, the subchannel, the sweeper.
  const auto shows = [&](const std::string& line) {
    return absl::StrContains(shells.metrics(), "signalbox_" + line + "\n");
  };
  REQUIRE(shows("affinity_subchannels_held{cluster=\"orders\"} 1"));

  SECTION("what no session uses is released when the idle timeout has passed") {
    shells.pass(milliseconds(9950));
    CHECK(shells.living() == before + 3);
    shells.pass(milliseconds(50));
    CHECK(shells.living() == before + 2);
    CHECK(shows("affinity_subchannels_held{cluster=\"orders\"} 0"));
    CHECK(shows("affinity_sweeps_total{cluster=\"orders\"} 1"));
    CHECK(shows("affinity_released_total{cluster=\"orders\"} 1"));
    // The three messages are the idle timeout, the timer and the answer of the map.
    CHECK(shows("actor_messages_total{actor=\"sweeper\"} 3"));
    shells.pass(seconds(10));
    CHECK(shows("affinity_sweeps_total{cluster=\"orders\"} 2"));
  }
  SECTION("one that dies is made anew, and armed") {
    shells.pass(seconds(5));
    caf::anon_send(map, order);
    shells.kill_next("signalbox.sweeper");
    CHECK(shells.living() == before + 2);
    CHECK(absl::StrContains(shells.metrics(), "signalbox_actor_deaths_total{actor=\"sweeper\""));
    shells.pass(milliseconds(100));
    CHECK(shells.living() == before + 3);
    shells.pass(milliseconds(9950));
    CHECK(shells.living() == before + 3);
    shells.pass(milliseconds(50));
    CHECK(shows("affinity_sweeps_total{cluster=\"orders\"} 1"));
    CHECK(shows("affinity_released_total{cluster=\"orders\"} 1"));
  }
  SECTION("one that died is not made anew where sessions end meanwhile") {
    caf::anon_send(map, order);
    shells.kill_next("signalbox.sweeper");
    caf::anon_send(map, SessionsKept{order.keeper, seconds(10), nullptr});
    shells.pass(seconds(1));
    CHECK(shells.living() == before + 1);
  }
  SECTION("it ends with the sessions, and what was kept for them, too") {
    caf::anon_send(map, SessionsKept{order.keeper, seconds(10), nullptr});
    shells.run();
    CHECK(shells.living() == before + 1);
    CHECK(shows("affinity_subchannels_held{cluster=\"orders\"} 0"));
    shells.pass(seconds(20));
    CHECK_FALSE(shows("affinity_sweeps_total{cluster=\"orders\"} 1"));
    caf::anon_send(map, order);
    shells.run();
    CHECK(shells.living() == before + 2);  // There is a new sweeper for the new sessions.
    shells.pass(seconds(10));
    CHECK(shows("affinity_sweeps_total{cluster=\"orders\"} 1"));
  }
  SECTION("it ends with the keeper") {
    protocol::stop(keeper);
    shells.run();
    CHECK(shells.living() == before);
  }
  SECTION("it ends with the map") {
    protocol::stop(map);
    shells.run();
    CHECK(shells.living() == before);
    CHECK_FALSE(absl::StrContains(shells.metrics(), "signalbox_affinity_subchannels_held{"));
  }
}

TEST_CASE("subchannel: in back-off it holds nothing of the connector's",
          "[actors][subchannel][scale]") {
  Shells shells;
  const auto connector = give_counting_connector(shells);
  shells.spawn_held_map();
  shells.run();
  REQUIRE(connector->asked.size() == 1);
  CHECK(connector->held == 1);

  connector->asked[0].failed(absl::UnavailableError("refused"));
  shells.run();
  CHECK(connector->held == 0);

  shells.pass(seconds(2));
  CHECK(connector->asked.size() == 2);
  CHECK(connector->held == 1);
}

TEST_CASE("subchannel: a connection is counted before a call can use it",
          "[actors][subchannel][metrics]") {
  Shells shells;
  const auto connector = give_counting_connector(shells);
  std::string counted;
  connector->on_lanes = [&] { counted = shells.metrics(); };
  const auto map = shells.keep(spawn_subchannel_map(shells.system(), shells.environment));
  SubchannelSettings settings;
  settings.max_connections = 2;
  protocol::post(map, MapGenerationStarted{settings, 1});
  shells.hold_one_of(map);
  shells.run();
  REQUIRE(connector->asked.size() == 1);

  connector->asked[0].connected(std::make_shared<const Connection>(Address("127.0.0.1:80"), 1));
  shells.run();
  INFO(counted);
  CHECK(absl::StrContains(counted, "signalbox_connections_open{cluster=\"\"} 1"));
}

TEST_CASE("subchannel: a call that waits gets the stream of a call that took none",
          "[actors][subchannel][A105-10][A105-16]") {
  Shells shells;
  const auto connector = give_counting_connector(shells);
  const auto map = shells.spawn_held_map();
  shells.run();
  REQUIRE(connector->asked.size() == 1);
  const auto connection = std::make_shared<const Connection>(Address("127.0.0.1:80"), 1);
  connector->asked[0].connected(connection);
  shells.run();
  REQUIRE(connector->lanes == nullptr);

  // Another target has a call on the connection when this one may have another connection.
  std::optional<Use> other(std::in_place, *connection);
  SubchannelSettings settings;
  settings.max_connections = 2;
  protocol::post(map, MapGenerationStarted{settings, 1});
  shells.run();
  REQUIRE(connector->lanes != nullptr);
  int woken = 0;
  const auto wait = connector->lanes->wait([&woken] { ++woken; });
  shells.run();
  REQUIRE(connector->asked.size() == 2);  // Never answered.
  shells.pass(milliseconds(500));
  CHECK(woken == 0);

  // The back-off of the second attempt does not end the search.
  const bool in_back_off = GENERATE(false, true);
  if (in_back_off) connector->asked[1].failed(absl::UnavailableError("refused"));
  shells.pass(milliseconds(100));
  other.reset();
  shells.pass(milliseconds(100));
  CHECK(woken == 1);
  CHECK(wait->is_over());

  // Nothing is asked any more, and the back-off ends when it should.
  CHECK(shells.delayed() == (in_back_off ? 1 : 0));
  const auto second = connector->lanes->wait([] {});
  shells.pass(seconds(2));
  CHECK(connector->asked.size() == (in_back_off ? 3 : 2));
}

// --- load reports ----------------------------------------------------------------

namespace {

using envoy::service::load_stats::v3::LoadStatsRequest;
using envoy::service::load_stats::v3::LoadStatsResponse;

std::string every_second() {
  LoadStatsResponse response;
  response.set_send_all_clusters(true);
  response.mutable_load_reporting_interval()->set_seconds(1);
  return response.SerializeAsString();
}

// The sum of successful calls in the load reports that were sent, from number `first` on.
std::uint64_t reported(const ScriptedTransport& transport, std::size_t first = 0) {
  std::uint64_t succeeded = 0;
  for (std::size_t i = first; i < transport.sent.size(); ++i) {
    LoadStatsRequest request;
    REQUIRE(request.ParseFromString(transport.sent[i]));
    for (const auto& cluster : request.cluster_stats()) {
      for (const auto& locality : cluster.upstream_locality_stats())
        succeeded += locality.total_successful_requests();
    }
  }
  return succeeded;
}

void count_calls(const ClusterCountsPtr& counts, int calls) {
  const auto locality = counts->locality({.region = "r", .zone = "z", .sub_zone = ""});
  for (int i = 0; i < calls; ++i) {
    locality->begun();
    locality->ended(/*succeeded=*/true);
  }
}

}  // namespace

TEST_CASE("load_reporter: there is one, with a stream, while the book has clusters in use",
          "[actors][load_reporter][C1][C3]") {
  Shells shells;
  shells.keep(spawn_supervisor(shells.system(), shells.environment));
  shells.pass(seconds(1));
  const ScriptedTransport& server = *shells.load_transport;
  CHECK(server.streams.empty());
  const std::size_t before = shells.living();

  auto counts = shells.book->open(0, ClusterName("c"), "eds", Instant{});
  shells.run();
  CHECK(shells.living() == before + 1);
  REQUIRE(server.streams.size() == 1);
  server.streams[0].opened();
  server.streams[0].received(every_second());
  shells.pass(seconds(3));
  // Two messages were sent: the first request, which has the node, and a report without load.
  CHECK(server.sent.size() == 2);
  CHECK(server.reads == 1);

  count_calls(counts, 3);
  shells.pass(seconds(2));
  CHECK(reported(server) == 3);
  count_calls(counts, 2);
  counts = nullptr;  // The cluster leaves the configuration. Its last report is still sent.
  shells.pass(seconds(3));
  CHECK(reported(server) == 5);
  CHECK(server.ended == 1);
  CHECK(shells.book->size() == 0);
  // A report without counts precedes each of the two reports with counts.
  CHECK_THAT(shells.metrics(),
             Catch::Contains("signalbox_lrs_reports_total{xds_server=\"of loads\"} 4"));

  counts = shells.book->open(0, ClusterName("d"), "", Instant{});
  shells.run();
  CHECK(server.streams.size() == 2);
}

TEST_CASE("load_reporter: what a dead one did not report, its successor does, once",
          "[actors][load_reporter][C7]") {
  Shells shells;
  shells.keep(spawn_supervisor(shells.system(), shells.environment));
  shells.run();
  const auto counts = shells.book->open(0, ClusterName("c"), "eds", Instant{});
  shells.run();
  const ScriptedTransport& server = *shells.load_transport;
  REQUIRE(server.streams.size() == 1);
  server.streams[0].opened();
  server.streams[0].received(every_second());
  count_calls(counts, 3);
  shells.pass(seconds(2));
  REQUIRE(reported(server) == 3);

  count_calls(counts, 4);
  server.streams[0].received(every_second());
  shells.kill_next("signalbox.load_reporter");
  CHECK(server.ended == 1);
  shells.pass(seconds(5));
  REQUIRE(server.streams.size() == 2);
  server.streams[1].opened();
  server.streams[1].received(every_second());
  shells.pass(seconds(5));
  CHECK(reported(server) == 7);
  CHECK_THAT(shells.metrics(), Catch::Contains("actor=\"load_reporter\""));
}

TEST_CASE("load_reporter: none once the supervisor has ended", "[actors][load_reporter]") {
  Shells shells;
  auto supervisor = spawn_supervisor(shells.system(), shells.environment);
  shells.run();
  auto counts = shells.book->open(0, ClusterName("c"), "eds", Instant{});
  shells.run();
  CHECK(shells.load_transport->streams.size() == 1);
  protocol::stop(supervisor);
  shells.run();
  CHECK(shells.living() == 0);
  CHECK(shells.load_transport->ended == 1);
  counts = shells.book->open(0, ClusterName("d"), "eds", Instant{});
  shells.run();
  CHECK(shells.living() == 0);
}

TEST_CASE("subchannel_map: the back-offs of many subchannels are few delayed messages",
          "[actors][subchannel_map][scale]") {
  constexpr int kMany = 100;
  Shells shells;
  const auto connector = give_counting_connector(shells);
  auto map = shells.keep(spawn_subchannel_map(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(hold_many, map, kMany));
  shells.run();
  REQUIRE(connector->asked.size() == kMany);
  for (const auto& events : connector->asked)
    events.failed(absl::UnavailableError("refused"));
  shells.run();
  // A subchannel causes a delayed message only if its back-off is the shortest so far.
  CHECK(shells.delayed() < 10);

  // Each subchannel still connects again after its own back-off.
  shells.pass(seconds(2));
  CHECK(connector->asked.size() == std::size_t{2} * kMany);
  CHECK(connector->held == kMany);
  CHECK(shells.delayed() == 0);
}

}  // namespace signalbox::actors::shells_test
