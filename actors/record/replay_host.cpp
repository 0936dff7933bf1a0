// SPDX-License-Identifier: Apache-2.0
#include "actors/record/replay_host.hpp"

#include <chrono>
#include <utility>
#include <variant>

#include "actors/record/replay_seams.hpp"
#include "actors/record/virtual_stage.hpp"
#include "actors/record/virtual_time.hpp"
#include "actors/supervisor_actor.hpp"
#include "lb/pick/snapshot_cell.hpp"

namespace signalbox::actors {
namespace {

// Not 0, because a default Instant means "never" in some places.
constexpr Instant kBegin{std::chrono::hours(1)};

// No calls wait, so nothing has to be woken.
class Unheard final : public PublicationListener {
 public:
  void published(std::uint64_t /*sequence*/, ConnectivityState /*state*/) override {}
};

}  // namespace

// The members are in the order of their construction, because later members use earlier ones.
struct ReplayHost::Machinery {
  Machinery(const Recording& recording,
            Environment own,
            const std::vector<std::string>& servers,
            MakePort make)
      : time(kBegin),
        script(make_script(recording, kBegin)),
        make_port(std::move(make)),
        asks(std::make_shared<ReplayedAsks>(script, time)),
        stage(time) {
    replay_outside(script, time, servers, own);
    own.ask_relay = asks;
    supervisor = spawn_supervisor(stage.system(), std::make_shared<Environment>(std::move(own)));
    for (const auto& event : script->program) {
      time.at(event.at,
              [this, &event] { std::visit([this](const auto& what) { on(what); }, event.what); });
    }
  }

  // Pickers and selectors end before the time does, because they retire their parts.
  ~Machinery() {
    protocol::stop(supervisor);
    supervisor = nullptr;
    stage.run_messages();
    time.clear();
    for (const auto& [name, port] : ports)
      port->cell->exchange(std::make_unique<const lb::Snapshot>());
    ports.clear();
    time.clear();
  }

  void on(const TargetOpened& event) {
    if (ports.contains(event.target)) return;
    auto port = make_port(event.target);
    if (port == nullptr) return;
    port->cell = std::make_shared<lb::SnapshotCell>();
    port->listener = std::make_shared<Unheard>();
    ports.emplace(event.target, port);
    protocol::post(supervisor, protocol::OpenChannel{std::move(port)});
  }

  void on(const TargetClosed& event) {
    const auto found = ports.find(event.target);
    if (found == ports.end()) return;
    protocol::post(supervisor, protocol::CloseChannel{found->second});
    ports.erase(found);
  }

  void on(const TargetWoken& event) {
    const auto found = ports.find(event.target);
    if (found != ports.end()) protocol::post(supervisor, protocol::ChannelExitIdle{found->second});
  }

  void on(const PolicyAsked& event) { asks->ask(event); }

  template <typename Other>
  void on(const Other&) {}  // The seams replay all other events.

  VirtualTime time;
  const std::shared_ptr<Script> script;
  const MakePort make_port;
  const std::shared_ptr<ReplayedAsks> asks;
  Ports ports;
  VirtualStage stage;
  protocol::SupervisorActor supervisor;
};

ReplayHost::ReplayHost(const Recording& recording,
                       Environment environment,
                       const std::vector<std::string>& servers,
                       MakePort make_port)
    : machinery_(std::make_unique<Machinery>(
          recording, std::move(environment), servers, std::move(make_port))) {}

ReplayHost::~ReplayHost() = default;

bool ReplayHost::run_instant(Duration until) {
  return machinery_->stage.run_instant(kBegin + until);
}

const ReplayHost::Ports& ReplayHost::ports() const {
  return machinery_->ports;
}

Instant ReplayHost::now() const {
  return machinery_->time.now();
}

Duration ReplayHost::elapsed() const {
  return machinery_->time.now() - kBegin;
}

Duration ReplayHost::length() const {
  return machinery_->script->end - kBegin;
}

std::uint64_t ReplayHost::unmatched() const {
  return machinery_->script->unmatched;
}

}  // namespace signalbox::actors
