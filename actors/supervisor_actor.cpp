// SPDX-License-Identifier: Apache-2.0
#include "actors/supervisor_actor.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "actors/channel_actor.hpp"
#include "actors/dump_reply.hpp"
#include "actors/load_reporter_actor.hpp"
#include "actors/supervision.hpp"
#include "actors/xds_client_actor.hpp"
#include "messages/counting/load_book.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {
namespace {

using protocol::ChannelActor;
using protocol::CloseChannel;
using protocol::DumpRequested;
using protocol::LoadReporterActor;
using protocol::OpenChannel;
using protocol::RestartDue;
using protocol::StopReason;
using protocol::SupervisorActor;
using protocol::XdsClientActor;
using protocol::XdsClientReplaced;

const char kClientName[] = "xds_client";

struct SupervisorState {
  SupervisorState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.

  ~SupervisorState() {
    const StopReason reason = orderly ? StopReason::kOrderly : StopReason::kParentDied;
    for (auto& [number, channel] : channels) {
      if (channel.actor) protocol::stop(channel.actor, reason);
    }
    for (auto& [id, reporter] : reporters) {
      if (reporter.actor) protocol::stop(reporter.actor, reason);
    }
    if (client) protocol::stop(client, reason);
    if (environment != nullptr && environment->policy.load_book != nullptr)
      environment->policy.load_book->wake_by(nullptr);
  }

  static constexpr const char* name = "signalbox.supervisor";

  using Self = protocol::SelfOf<SupervisorActor, SupervisorState>;
  using PortPtr = std::shared_ptr<const ChannelPort>;

  /// Channels are numbered in the order of opening. A target may be open twice, so its name cannot
  /// be the key. The address of a port cannot be the key either, because the order of addresses
  /// differs between processes.
  using ChannelNumber = std::uint64_t;

  struct Channel {
    PortPtr port;
    ChannelActor actor;
    RestartDelay delay;
  };

  struct Reporter {
    LoadReporterActor actor;
    RestartDelay delay{RestartDelay::kFirstOfStream};
  };

  static std::string reporter_name(ServerId id) { return absl::StrCat("load_reporter ", id); }

  static std::string name_of(ChannelNumber number) { return absl::StrCat("channel ", number); }

  std::map<ChannelNumber, Channel>::iterator find(const PortPtr& port) {
    return std::ranges::find_if(channels, [&](const auto& c) { return c.second.port == port; });
  }

  void launch_client();
  void launch_channel(ChannelNumber number);
  void close_channel(const PortPtr& port);
  void want_reports(const LoadReportsWanted& wanted);
  void launch_reporter(ServerId id);
  void restart(const std::string& what);
  void dump(const DumpRequested& order);

  void restart_after(std::string what, RestartDelay& delay) {
    const Duration time = delay.next(protocol::now_of(self));
    protocol::send_after(self, SupervisorActor{self}, time, RestartDue{std::move(what)});
  }

  Self self = nullptr;
  EnvironmentPtr environment;
  XdsClientActor client;
  RestartDelay client_delay{RestartDelay::kFirstOfStream};
  std::map<ChannelNumber, Channel> channels;
  ChannelNumber last_number = 0;
  std::map<ServerId, Reporter> reporters;  ///< Made at the first LoadReportsWanted of a server.
  protocol::Watches watches;
  bool orderly = false;
};

// Starts the xds_client, also in the place of a dead one. The channels' xds_watchers keep their
// resources meanwhile; when they learn of the new xds_client, they watch the resources there.
void SupervisorState::launch_client() {
  client = spawn_xds_client(self->home_system(), environment);
  watches.add(self, client, [this](const caf::error& reason) {
    environment->instruments->count_actor_death("xds_client", protocol::reason_text(reason));
    client = nullptr;
    restart_after(kClientName, client_delay);
  });
  for (auto& [number, channel] : channels) {
    if (channel.actor) {
      protocol::send(self, channel.actor, XdsClientReplaced{caf::actor_cast<caf::actor>(client)});
    }
  }
}

void SupervisorState::launch_channel(ChannelNumber number) {
  Channel& channel = channels.at(number);
  channel.actor = spawn_channel(self->home_system(), environment, channel.port, client);
  watches.add(self, channel.actor, [this, number](const caf::error& reason) {
    environment->instruments->count_actor_death("channel", protocol::reason_text(reason));
    const auto found = channels.find(number);
    if (found == channels.end()) return;
    found->second.actor = nullptr;
    restart_after(name_of(number), found->second.delay);
  });
}

void SupervisorState::close_channel(const PortPtr& port) {
  const auto found = find(port);
  if (found == channels.end()) return;
  if (found->second.actor) {
    watches.remove(self, found->second.actor);
    protocol::stop(found->second.actor);
  }
  channels.erase(found);
}

// If the server's reporter is dead, nothing is sent: restart() sends the same message to its
// successor.
void SupervisorState::want_reports(const LoadReportsWanted& wanted) {
  const auto [found, is_new] = reporters.try_emplace(wanted.server);
  if (is_new) launch_reporter(wanted.server);
  if (found->second.actor) protocol::send(self, found->second.actor, wanted);
}

void SupervisorState::launch_reporter(ServerId id) {
  Reporter& reporter = reporters.at(id);
  reporter.actor = spawn_load_reporter(self->home_system(), environment, id);
  watches.add(self, reporter.actor, [this, id](const caf::error& reason) {
    environment->instruments->count_actor_death("load_reporter", protocol::reason_text(reason));
    reporters.at(id).actor = nullptr;
    restart_after(reporter_name(id), reporters.at(id).delay);
  });
}

void SupervisorState::restart(const std::string& what) {
  if (what == kClientName) {
    if (!client) launch_client();
    return;
  }
  for (auto& [id, reporter] : reporters) {
    if (reporter_name(id) != what || reporter.actor) continue;
    launch_reporter(id);
    protocol::send(self, reporter.actor, LoadReportsWanted{id});
  }
  for (auto& [number, channel] : channels) {
    if (name_of(number) == what && !channel.actor) launch_channel(number);
  }
}

void SupervisorState::dump(const DumpRequested& order) {
  if (client) {
    protocol::send(self, client, order);
  } else {
    order.reply->answer(absl::UnavailableError("the xDS client is being restarted; ask again"));
  }
}

protocol::BehaviorOf<SupervisorActor> supervisor_behavior(SupervisorState::Self self,
                                                          EnvironmentPtr environment) {
  SupervisorState& state = self->state;
  protocol::record_orderly_exit(self, state.orderly);
  state.self = self;
  state.environment = std::move(environment);
  if (LoadBook* const book = state.environment->policy.load_book.get()) {
    book->wake_by([me = SupervisorActor{self}](ServerId server) {
      protocol::post(me, LoadReportsWanted{server});
    });
  }
  state.launch_client();
  return {
      [&state](const OpenChannel& order) {
        state.channels[++state.last_number].port = order.port;
        state.launch_channel(state.last_number);
      },
      [&state](const CloseChannel& order) { state.close_channel(order.port); },
      [&state](const protocol::ChannelExitIdle& order) {
        const auto found = state.find(order.port);
        if (found == state.channels.end() || !found->second.actor) return;
        protocol::send(state.self, found->second.actor, IdleExitRequested{});
      },
      [&state](const LoadReportsWanted& event) { state.want_reports(event); },
      [&state](const RestartDue& event) { state.restart(event.what); },
      [&state](const DumpRequested& order) { state.dump(order); },
  };
}

}  // namespace

SupervisorActor spawn_supervisor(caf::actor_system& system, EnvironmentPtr environment) {
  return system.spawn(supervisor_behavior, std::move(environment));
}

}  // namespace signalbox::actors
