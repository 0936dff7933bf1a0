// SPDX-License-Identifier: Apache-2.0
#include "actors/record/virtual_stage.hpp"

#include <algorithm>
#include <optional>

#include <caf/logger.hpp>

namespace signalbox::actors {
namespace {

caf::actor_system_config& configure(caf::actor_system_config& config) {
  config.set("scheduler.policy", caf::atom("testing"));
  config.set("logger.inline-output", true);
  return config;
}

}  // namespace

VirtualStage::VirtualStage(VirtualTime& time)
    : time_(time),
      system_(configure(config_)),
      coordinator_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
  // The shutdown must not wait for actors: no other thread runs them.
  system_.await_actors_before_shutdown(false);
  coordinator_.clock().current_time = time_.now();
  caf::logger::set_current_actor_system(nullptr);  // See actors/host.cpp.
}

VirtualStage::~VirtualStage() {
  run_messages();
  coordinator_.clock().cancel_all();
  run_messages();
  caf::logger::set_current_actor_system(nullptr);
}

void VirtualStage::run_messages() {
  while (!coordinator_.jobs.empty())
    coordinator_.run_once();
}

std::optional<Instant> VirtualStage::next_due() const {
  const auto& timers = coordinator_.clock().schedule();
  std::optional<Instant> due = time_.next();
  if (timers.empty()) return due;
  const Instant timer(timers.begin()->first.time_since_epoch());
  return due ? std::min(*due, timer) : timer;
}

bool VirtualStage::run_instant(Instant end) {
  run_messages();
  const std::optional<Instant> due = next_due();
  const Instant to = due ? std::min(*due, end) : end;
  time_.advance_to(to);
  coordinator_.clock().current_time = time_.now();
  if (!due || *due > end) return false;
  while (time_.next() && *time_.next() <= time_.now()) {
    time_.run_next();
    run_messages();
  }
  run_timers();
  return true;
}

// A message that a timer sends may set another timer for the same instant: that one runs in the
// next run_instant().
void VirtualStage::run_timers() {
  auto& clock = coordinator_.clock();
  while (!clock.schedule().empty() && clock.schedule().begin()->first <= clock.current_time)
    clock.trigger_timeout();
  run_messages();
}

}  // namespace signalbox::actors
