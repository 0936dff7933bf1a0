// SPDX-License-Identifier: Apache-2.0
//
// Story — what happens in every order: the configurations, the calls, and the actors that have
// mailboxes of their own.
//
//   story_named("returns") ─▶ [Story] ─▶ World

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "messages/xds_config.hpp"

namespace signalbox::orders {

/// The path of all calls.
inline constexpr absl::string_view kPath = "/x";

/// All calls are routed to one cluster, which has one endpoint.
struct Configuration {
  std::string cluster;
  std::string endpoint;
  XdsConfigPtr xds;
};

/// Which actors have mailboxes of their own, beside the channel. The others take their letters in
/// the step that sends the letters.
enum class Mailboxes : std::uint8_t {
  kRoot,  ///< Only the root of the policy tree.
  kCds,   ///< The root, and each cds.
  kLeaf,  ///< The root, each cds, and each leaf policy.
  kAll    ///< All: also each subchannel map.
};

/// A rule that is broken on purpose, to show that the search finds it.
enum class Plant : std::uint8_t {
  kNothing,
  kGraceIgnoresReaders,    ///< The channel hears that no call reads a snapshot while one reads it.
  kUseEndsWithThePick,     ///< A call releases its cluster when it has picked, not when it ends.
  kUseIsNeverReleased,     ///< A call that ends keeps its cluster.
  kAnswerIsTakenForNewer,  ///< The root's publication counts as one of the newest generation.
  kReadyIsLost,            ///< The channel does not get the root's reports of READY.
  kCallIsDropped,          ///< A call picks for a cluster that no picker knows.
  kPickAgainThrows,        ///< A waiting call throws when it picks again.
  kPickerForgets,          ///< A published picker knows only the cluster of its snapshot's routes.
  kReferencesAreCopied,    ///< The channel watches other references than calls hold.
  kSequenceStays,          ///< Each publication but the first has the sequence of the one before.
  kGenerationIsLost,       ///< Each publication but the first has the generation 0.
  kRoutesAreLost,          ///< Each publication but the first has no routes.
  kLastConfigurationIsLost,  ///< The channel does not get the last configuration.
  kGraceIsLost,              ///< The channel never hears that no call reads a snapshot any more.
  kWatcherForgetsNothing,    ///< The watcher keeps all clusters that it was ever told to keep.
  kAppliedIsLost,            ///< No policy hears that its child has applied a generation.
};

struct Story {
  std::string name;
  std::vector<Configuration> configurations;
  std::size_t calls = 1;
  Mailboxes mailboxes = Mailboxes::kCds;
  Plant plant = Plant::kNothing;
};

/// nullopt: there is no such story.
std::optional<Story> story_named(absl::string_view name);
std::vector<std::string> story_names();

/// The configurations that a text lists: "a:a1,b:b1" routes all calls first to cluster a with the
/// endpoint a1, then to cluster b with b1. nullopt: the text has another form.
std::optional<std::vector<Configuration>> configurations_in(absl::string_view text);

/// nullopt: there is no such value.
std::optional<Mailboxes> mailboxes_named(absl::string_view name);
std::optional<Plant> plant_named(absl::string_view name);
std::vector<std::string> mailboxes_names();
std::vector<std::string> plant_names();

}  // namespace signalbox::orders
