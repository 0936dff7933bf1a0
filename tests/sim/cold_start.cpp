// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cold_start.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "actors/channel_port.hpp"
#include "actors/supervisor_actor.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/sim/calls.hpp"
#include "tests/sim/environment.hpp"
#include "tests/sim/resources.hpp"
#include "tests/sim/setting.hpp"
#include "tests/sim/stage.hpp"
#include "tests/sim/topology.hpp"
#include "xds/type_url.hpp"

namespace signalbox::sim {
namespace {

using envoy::service::discovery::v3::DiscoveryRequest;
using envoy::service::discovery::v3::DiscoveryResponse;
using std::chrono::milliseconds;

constexpr Duration kWorkOfResource = milliseconds(20);
constexpr Duration kWay = milliseconds(1);

class SlowControlPlane final : public actors::AdsTransport {
 public:
  explicit SlowControlPlane(FakeClock& clock) : clock_(clock) {}

  void set(ResourceType type, const std::string& name, std::string bytes) {
    world_[type][name] = std::move(bytes);
  }

  std::uint64_t requests() const { return requests_; }

  std::unique_ptr<Stream> open(Events events) override {
    events_ = std::make_shared<Events>(std::move(events));
    said_.clear();
    clock_.after(kWay, [to = events_] { to->opened(); });
    return std::make_unique<Ear>(*this);
  }

  const std::string& server() const override { return name_; }

 private:
  struct Said {
    std::set<std::string> names;
    std::string nonce;
  };

  struct Ear final : Stream {
    explicit Ear(SlowControlPlane& plane) : to(plane) {}

    void send(std::string bytes) override {
      to.clock_.after(kWay, [plane = &to, sent = std::move(bytes)] { plane->read(sent); });
    }

    void read_next() override {}  // Responses are delivered without flow control.

    SlowControlPlane& to;
  };

  // Reads a request. An ACK that names the same resources as the request before gets no response.
  void read(const std::string& bytes) {
    ++requests_;
    events_->written();
    DiscoveryRequest request;
    request.ParseFromString(bytes);
    const auto type = xds::resource_type_of(request.type_url());
    const std::set<std::string> names(request.resource_names().begin(),
                                      request.resource_names().end());
    Said& said = said_[*type];
    const bool asks = request.response_nonce().empty() || names != said.names;
    said.names = names;
    if (asks) answer(*type, names);
  }

  void answer(ResourceType type, const std::set<std::string>& names) {
    DiscoveryResponse response;
    response.set_type_url(std::string(xds::type_url_of(type)));
    response.set_version_info("1");
    response.set_nonce(absl::StrCat("n", ++nonces_));
    for (const std::string& name : names) {
      const auto found = world_[type].find(name);
      if (found == world_[type].end()) continue;
      auto* any = response.add_resources();
      any->set_type_url(response.type_url());
      any->set_value(found->second);
    }
    const Duration work = kWorkOfResource * response.resources_size();
    free_ = std::max(free_, clock_.now()) + work;
    clock_.after(free_ - clock_.now(),
                 [to = events_, sent = response.SerializeAsString()] { to->received(sent); });
  }

  FakeClock& clock_;
  const std::string name_ = "slow-control-plane";
  std::map<ResourceType, std::map<std::string, std::string>> world_;
  std::shared_ptr<Events> events_;
  std::map<ResourceType, Said> said_;
  Instant free_;
  std::uint64_t requests_ = 0;
  std::uint64_t nonces_ = 0;
};

// Makes the resources of one target: listener, routes, cluster, and endpoints with one host.
TargetModel serve(SlowControlPlane& plane, std::size_t number) {
  TargetModel target;
  target.listener = absl::StrCat("t", number);
  target.route_name = absl::StrCat("r", number);
  const std::string cluster = cluster_name(number);
  target.routes.push_back({"", {{cluster, 1}}});
  ClusterModel model;
  model.priorities = {{LocalityModel{"zone", 1, {HostModel{0}}}}};
  plane.set(ResourceType::kListener, target.listener, listener_bytes(target));
  plane.set(ResourceType::kRouteConfig, target.route_name, route_bytes(target));
  plane.set(ResourceType::kCluster, cluster, cluster_bytes(cluster, model));
  plane.set(ResourceType::kEndpoints, cluster, endpoints_bytes(cluster, model));
  return target;
}

// The data plane of one target: a waiting call, which picks again when a snapshot is published.
class Caller final : public actors::PublicationListener {
 public:
  Caller(Setting& setting, const std::string& name)
      : cell_(std::make_shared<lb::SnapshotCell>()), calls_(setting, name, cell_) {}

  void published(std::uint64_t, ConnectivityState) override { calls_.published(); }

  const std::shared_ptr<lb::SnapshotCell>& cell() const { return cell_; }

  Calls& calls() { return calls_; }

 private:
  std::shared_ptr<lb::SnapshotCell> cell_;
  Calls calls_;
};

class ColdWorld {
 public:
  explicit ColdWorld(std::uint64_t seed)
      : setting_(seed, FakeFaults(seed, {}), nullptr),
        stage_(
            setting_.clock, setting_.chance, setting_.faults, setting_.complaints, setting_.trace),
        plane_(std::make_shared<SlowControlPlane>(setting_.clock)) {
    actors::Environment environment = environment_of(setting_, seed);
    environment.ads_transports = {plane_};
    supervisor_ = actors::spawn_supervisor(
        stage_.system(), std::make_shared<const actors::Environment>(std::move(environment)));
  }

  ~ColdWorld() {
    supervisor_ = nullptr;
    stage_.clear();
    for (const auto& caller : callers_) {
      caller->calls().end_all();
      caller->cell()->exchange(std::make_unique<const lb::Snapshot>());
    }
    setting_.clock.clear();
    setting_.reclaimer->end_world();
  }

  ColdWorld(const ColdWorld&) = delete;
  ColdWorld& operator=(const ColdWorld&) = delete;

  ColdStart run(std::size_t targets, Duration apart) {
    const Instant begin = setting_.clock.now();
    for (std::size_t i = 0; i < targets; ++i) {
      open(serve(*plane_, i));
      if (apart > Duration::zero()) pass(apart);
    }
    const Instant end = begin + std::chrono::minutes(2);
    // After a complaint pass() does not move the clock any more.
    while (waiting() > 0 && setting_.complaints.empty() && setting_.clock.now() < end)
      pass(milliseconds(100));
    ColdStart result;
    result.until_last_call = setting_.clock.now() - begin;
    pass(std::chrono::seconds(30));  // Requests of this time count, too.
    result.requests = plane_->requests();
    result.broken = setting_.complaints.sentences();
    for (const auto& caller : callers_) {
      for (const auto& [number, ending] : caller->calls().endings()) {
        if (ending.state == CallState::kCompleted) continue;
        result.broken.push_back(
            absl::StrCat("no call fails — but ", std::string(ending.status.message())));
      }
    }
    if (waiting() > 0) result.broken.push_back(absl::StrCat(waiting(), " calls still wait"));
    return result;
  }

 private:
  void open(const TargetModel& target) {
    auto caller = std::make_shared<Caller>(setting_, target.listener);
    auto port = std::make_shared<actors::ChannelPort>();
    port->target = absl::StrCat("xds:///", target.listener);
    port->listener_resource = target.listener;
    port->authority = target.listener;
    port->cell = caller->cell();
    port->listener = caller;
    protocol::post(supervisor_, protocol::OpenChannel{port});
    caller->calls().probe(Calls::Plan{"/a/x"});
    callers_.push_back(std::move(caller));
  }

  void pass(Duration duration) {
    const Instant end = setting_.clock.now() + duration;
    while (setting_.complaints.empty() && stage_.step(end)) {
    }
  }

  std::size_t waiting() {
    std::size_t count = 0;
    for (const auto& caller : callers_)
      count += caller->calls().living().size();
    return count;
  }

  Setting setting_;
  Stage stage_;
  std::shared_ptr<SlowControlPlane> plane_;
  protocol::SupervisorActor supervisor_;
  std::vector<std::shared_ptr<Caller>> callers_;
};

}  // namespace

ColdStart run_cold_start(std::uint64_t seed, std::size_t targets, Duration apart) {
  return ColdWorld(seed).run(targets, apart);
}

}  // namespace signalbox::sim
