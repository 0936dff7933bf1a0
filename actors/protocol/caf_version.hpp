// SPDX-License-Identifier: Apache-2.0
//
// The code that depends on the version of CAF: typed actor signatures, sending, delayed messages,
// death watches, clocks. A few other files use parts of CAF that another version changes:
// docs/versions.md names these files.
//
// Written for CAF 0.17 (Debian 12). Messages are plain structs: default-constructible, copyable,
// registered in actors/protocol/registration.hpp. A state struct must not be an aggregate, so it
// declares `State() = default;`. CAF could silently initialise an aggregate's first member from the
// self pointer.

#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <caf/config.hpp>

#define SIGNALBOX_TEXT(tokens) #tokens
#define SIGNALBOX_TEXT_OF(macro) SIGNALBOX_TEXT(macro)
static_assert(CAF_VERSION >= 1700 && CAF_VERSION < 1800,
              "signalbox needs CAF 0.17, found the CAF_VERSION " SIGNALBOX_TEXT_OF(
                  CAF_VERSION) ": docs/versions.md says why, and which files another version would "
                               "change");
#undef SIGNALBOX_TEXT_OF
#undef SIGNALBOX_TEXT

#include <caf/actor_clock.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "messages/ids.hpp"

namespace signalbox::protocol {

/// A typed actor that understands the given one-way messages.
template <typename... Messages>
using ActorOf = caf::typed_actor<caf::reacts_to<Messages>...>;

template <typename Handle, typename State>
using SelfOf = typename Handle::template stateful_pointer<State>;

template <typename Handle>
using BehaviorOf = typename Handle::behavior_type;

template <typename Self>
Instant now_of(Self* self) {
  return Instant(self->home_system().scheduler().clock().now().time_since_epoch());
}

/// The number of messages that wait in the actor's mailbox. It does not count messages that came
/// since CAF last moved new messages into the mailbox's queue. Only the actor itself may call this
/// function.
template <typename Self>
std::int64_t waiting_messages(Self* self) {
  return static_cast<std::int64_t>(self->mailbox().size());
}

template <typename Self, typename Handle, typename Message>
void send(Self* self, const Handle& to, Message message) {
  self->send(to, std::move(message));
}

/// Sends a message without a sender. Any thread may call this function.
template <typename Handle, typename Message>
void post(const Handle& to, Message message) {
  caf::anon_send(to, std::move(message));
}

template <typename Self, typename Handle, typename Message>
void send_after(Self* self, const Handle& to, Duration delay, Message message) {
  self->delayed_send(to, delay, std::move(message));
}

/// Configures the scheduler of a runtime. Work sharing uses no CPU time while all actors are idle.
inline void configure_scheduler(caf::actor_system_config& config, std::size_t threads) {
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", threads);
}

/// Why an actor is stopped: it is no longer needed, or an actor that it depends on died.
enum class StopReason { kOrderly, kParentDied };

template <typename Handle>
void stop(const Handle& actor, StopReason reason = StopReason::kOrderly) {
  caf::anon_send_exit(
      actor,
      reason == StopReason::kOrderly ? caf::exit_reason::user_shutdown : caf::exit_reason::kill);
}

/// Whether an actor with this exit reason ended as planned: it was no longer needed
/// (StopReason::kOrderly), or had done its work.
inline bool ended_orderly(const caf::error& reason) {
  return !reason || reason == caf::exit_reason::normal || reason == caf::exit_reason::user_shutdown;
}

/// An actor's exit reason, as the value of a metric's label.
inline const char* reason_text(const caf::error& reason) {
  if (ended_orderly(reason)) return "stopped";
  if (reason == caf::exit_reason::kill) return "parent_died";
  return reason == caf::sec::runtime_error ? "exception" : "other";
}

/// Whether the current message came from `actor`.
template <typename Self, typename Handle>
bool sent_by(Self* self, const Handle& actor) {
  return self->current_sender() != nullptr && actor &&
         self->current_sender()->address() == actor.address();
}

/// The death watches of one actor; they live in that actor's state. They monitor other actors, and
/// never link to them.
class Watches {
 public:
  using Action = std::function<void(const caf::error& reason)>;

  /// If `watched` is already monitored, only its action is replaced.
  template <typename Self, typename Handle>
  void add(Self* self, const Handle& watched, Action action) {
    if (!installed_) {
      installed_ = true;
      self->set_down_handler([this](caf::down_msg& down) { run(down); });
    }
    const auto [place, is_new] = actions_.insert_or_assign(watched.address(), std::move(action));
    if (is_new) self->monitor(watched);
  }

  template <typename Self, typename Handle>
  void remove(Self* self, const Handle& watched) {
    actions_.erase(watched.address());
    self->demonitor(watched.address());
  }

 private:
  void run(const caf::down_msg& down) {
    const auto found = actions_.find(down.source);
    if (found == actions_.end()) return;
    const Action action = std::move(found->second);
    actions_.erase(found);
    action(down.reason);
  }

  bool installed_ = false;
  std::map<caf::actor_addr, Action> actions_;
};

/// Sets `orderly` when the actor is stopped because it is no longer needed. The destructor of its
/// state then passes the same StopReason to the actor's children.
template <typename Self>
void record_orderly_exit(Self* self, bool& orderly) {
  self->set_exit_handler([self, &orderly](caf::exit_msg& exit) {
    orderly = ended_orderly(exit.reason);
    self->quit(exit.reason);
  });
}

/// Calls `report` with the text of an exception that kills the actor, in the handling of a message
/// or in the actor's construction. The actor ends as it would without this handler.
template <typename Self>
void report_exception(Self* self, std::function<void(const std::string& what)> report) {
  self->set_exception_handler(
      [report = std::move(report)](std::exception_ptr& thrown) -> caf::error {
        try {
          std::rethrow_exception(thrown);
        } catch (const std::exception& error) {
          report(error.what());
        } catch (...) {
          report("something that is no std::exception");
        }
        return caf::sec::runtime_error;
      });
}

}  // namespace signalbox::protocol
