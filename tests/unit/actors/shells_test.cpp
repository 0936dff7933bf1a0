// SPDX-License-Identifier: Apache-2.0
//
// The shells themselves, one or two at a time, in virtual time: what they do when one of those
// they depend on dies.

#include <deque>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <caf/scheduler/test_coordinator.hpp>
#include <catch2/catch.hpp>

#include "actors/spawn.hpp"
#include "messages/overloaded.hpp"
#include "messages/protocol/actors.hpp"
#include "metrics/exporter.hpp"
#include "tests/support/xds_resources.hpp"

namespace signalbox::actors {
namespace {

using std::chrono::seconds;

class IgnoreRetired final : public Reclaimer {
 public:
  void retire(std::unique_ptr<const lb::Snapshot>, std::function<void()>) override {}

  void retire(std::unique_ptr<const Tracked>) override {}
};

// What kills every subchannel that tries to connect, some times.
class DeadlyConnector final : public Connector {
 public:
  std::unique_ptr<Attempt> connect(const Address&, Duration, Events) override {
    if (++asked < 50) throw std::runtime_error("deadly");
    return nullptr;
  }

  int asked = 0;
};

// Streams that are heard of only when the test says so.
class ScriptedTransport final : public AdsTransport {
 public:
  std::unique_ptr<Stream> open(Events events) override {
    streams.push_back(std::move(events));
    return std::make_unique<Ear>(sent);
  }

  const std::string& server() const override { return name_; }

  std::vector<Events> streams;
  std::vector<std::string> sent;  ///< By all of them.

 private:
  struct Ear final : Stream {
    explicit Ear(std::vector<std::string>& to) : heard(to) {}

    void send(std::string bytes) override { heard.push_back(std::move(bytes)); }

    std::vector<std::string>& heard;
  };

  const std::string name_ = "server";
};

class ScriptedLookup final : public NameLookup {
 public:
  absl::StatusOr<std::vector<Address>> resolve(const DnsName&) override {
    ++asked;
    return std::vector<Address>{Address("127.0.0.1:80")};
  }

  int asked = 0;
};

// Keeps what an actor in the place of a neighbour was told.
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

class Shells {
 public:
  Shells()
      : system_(testing(config_)),
        coordinator_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
    system_.await_actors_before_shutdown(false);
    Environment made;
    made.connector = connector;
    made.ads_transports = {transport};
    made.name_lookup = lookup;
    made.reclaimer = std::make_shared<IgnoreRetired>();
    made.instruments = std::make_shared<metrics::Instruments>();
    made.detached_lookups = false;
    // What the bytes "poison" kill is the actor that reads them.
    made.decode_response =
        [decoded = responses](absl::string_view bytes) -> absl::StatusOr<xds::DecodedResponse> {
      if (bytes == "poison") throw std::runtime_error("poison");
      if (const auto known = decoded->find(std::string(bytes)); known != decoded->end())
        return known->second;
      return xds::DecodedResponse{};  // Of listeners; none.
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

  std::size_t living() { return system_.registry().running(); }

  void run() { coordinator_.run(); }

  /// Everything that is due within `time`, in steps small beside all timers.
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

  std::shared_ptr<ScriptedTransport> transport = std::make_shared<ScriptedTransport>();
  std::shared_ptr<DeadlyConnector> connector = std::make_shared<DeadlyConnector>();
  std::shared_ptr<ScriptedLookup> lookup = std::make_shared<ScriptedLookup>();
  /// What else is to be read from which bytes.
  std::shared_ptr<Responses> responses = std::make_shared<Responses>();
  EnvironmentPtr environment;
  std::vector<caf::actor> neighbours;

 private:
  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& coordinator_;
};

// Watches one resource of an xds_client.
protocol::BehaviorOf<protocol::ResourceObserver> observe(protocol::ResourceObserver::pointer self,
                                                         protocol::XdsClientActor client,
                                                         ResourceKey key,
                                                         std::shared_ptr<Heard> heard) {
  protocol::send(self, client, WatchesChanged{self->id(), {Watch{std::move(key)}}});
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

// In the place of an xds_client: has all of these at once.
protocol::BehaviorOf<protocol::XdsClientActor> serve(protocol::XdsClientActor::pointer self,
                                                     std::map<ResourceKey, Resource> resources) {
  return {
      [self, resources = std::move(resources)](const WatchesChanged& event) {
        ResourcesChanged told;
        for (const auto& change : event.changes) {
          const auto* watch = std::get_if<Watch>(&change);
          if (watch == nullptr) continue;
          told.changes.emplace_back(ResourceChanged{watch->key, resources.at(watch->key)});
        }
        protocol::send(self,
                       caf::actor_cast<protocol::ResourceObserver>(self->current_sender()),
                       std::move(told));
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

// In the place of a policy: holds one subchannel, and wants it connected whenever it is IDLE.
protocol::BehaviorOf<protocol::SubchannelObserver> hold(protocol::SubchannelObserver::pointer self,
                                                        protocol::SubchannelMapActor map) {
  const Address address("127.0.0.1:80");
  protocol::send(self, map, SubchannelAcquired{Holder{PolicyPath("p"), 1}, address});
  return {
      [self, map](const SubchannelStateChanged& event) {
        if (event.state != ConnectivityState::kIdle) return;
        protocol::send(self, map, SubchannelConnectAsked{event.address});
      },
  };
}

// In the place of a channel.
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

TEST_CASE("ads_stream: a server that answers is connected, one whose stream died is not",
          "[actors][ads_stream][metrics]") {
  Shells shells;
  const auto shows = [&](const char* value) {
    return absl::StrContains(
        metrics::Exporter(shells.environment->instruments).text(),
        std::string("signalbox_xds_connected{xds_server=\"server\"} ") + value);
  };
  const auto client = shells.keep(spawn_xds_client(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(observe, client, kListener, std::make_shared<Heard>()));
  shells.run();
  shells.transport->streams.at(0).opened();
  shells.transport->streams.at(0).received("response");
  shells.run();
  CHECK(shows("1"));
  shells.transport->streams.at(0).received("poison");
  shells.run();
  CHECK(shows("0"));
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
  const std::map<ResourceKey, Resource> resources{
      {tests::lds("orders"), tests::inline_listener("orders", tests::routes_to("r", {"d"}))},
      {tests::cds("d"), tests::dns_cluster("d", "host:80")}};
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

TEST_CASE("xds_watcher: another xds_client that has nothing takes nothing away",
          "[actors][xds_watcher][A88]") {
  Shells shells;
  const auto heard = std::make_shared<Heard>();
  const std::map<ResourceKey, Resource> resources{
      {tests::lds("orders"), tests::inline_listener("orders", tests::routes_to("r", {}))}};
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
  CHECK(absl::StrContains(heard->configs[1].resolution_note, "refused"));
}

TEST_CASE("subchannel_map: a subchannel that dies again and again is restarted ever later",
          "[actors][subchannel_map]") {
  Shells shells;
  const auto map = shells.keep(spawn_subchannel_map(shells.system(), shells.environment));
  shells.keep(shells.system().spawn(hold, map));
  shells.run();
  CHECK(shells.connector->asked == 1);
  shells.pass(seconds(1));
  CHECK(shells.connector->asked == 4);  // After 0.1, 0.3 and 0.7 s.
}

}  // namespace signalbox::actors
