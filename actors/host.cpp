// SPDX-License-Identifier: Apache-2.0
#include "actors/host.hpp"

#include <optional>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/logger.hpp>

#include "actors/record/recorder.hpp"
#include "actors/supervisor_actor.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {

// The members are in the order of their construction, because later members use earlier ones.
struct Host::Machinery {
  Machinery(EnvironmentPtr environment, std::size_t threads)
      : recorder(environment->recorder), config(configure(threads)), system(*config) {
    supervisor = spawn_supervisor(system, std::move(environment));
    // CAF leaves a reference to the system's logger in this thread. ~actor_system waits until every
    // thread has released the logger. If ~actor_system ran on another thread, it would wait
    // forever.
    caf::logger::set_current_actor_system(nullptr);
  }

  // Stops the supervisor, which stops all other actors. ~actor_system then waits until the last
  // actor has ended.
  ~Machinery() {
    protocol::stop(supervisor);
    supervisor = nullptr;
  }

  void note(OutsideEvent event) {
    if (recorder != nullptr) recorder->note(std::move(event));
  }

  static std::unique_ptr<caf::actor_system_config> configure(std::size_t threads) {
    auto config = std::make_unique<caf::actor_system_config>();
    protocol::configure_scheduler(*config, threads);
    return config;
  }

  Waker waker;
  const std::shared_ptr<Recorder> recorder;
  std::unique_ptr<caf::actor_system_config> config;
  caf::actor_system system;
  protocol::SupervisorActor supervisor;
};

Host::Host(EnvironmentPtr environment, std::size_t threads)
    : machinery_(std::make_unique<Machinery>(std::move(environment), threads)) {}

Host::~Host() = default;

void Host::open(const std::shared_ptr<const ChannelPort>& port) {
  machinery_->note(TargetOpened{port->target});
  protocol::post(machinery_->supervisor, protocol::OpenChannel{port});
}

void Host::close(const std::shared_ptr<const ChannelPort>& port) {
  machinery_->note(TargetClosed{port->target});
  protocol::post(machinery_->supervisor, protocol::CloseChannel{port});
}

void Host::exit_idle(const std::shared_ptr<const ChannelPort>& port) {
  machinery_->note(TargetWoken{port->target});
  protocol::post(machinery_->supervisor, protocol::ChannelExitIdle{port});
}

void Host::dump(std::shared_ptr<DumpReply> reply) {
  protocol::post(machinery_->supervisor, protocol::DumpRequested{std::move(reply)});
}

Waker& Host::waker() {
  return machinery_->waker;
}

}  // namespace signalbox::actors
