// SPDX-License-Identifier: Apache-2.0
//
// build_config — one XdsConfig out of what is known, or nothing while something is missing.
//
//   WatchedResources, Routes ─▶ [build_config] ─▶ dependency manager ─▶ EmitConfig
//
// Pure. It keeps X1 to X3 of messages/xds_config.hpp: what is as it was in `before` is the same
// pointer.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "messages/xds_config.hpp"
#include "xds/depend/cluster_graph.hpp"
#include "xds/depend/error_text.hpp"
#include "xds/depend/watched_resources.hpp"

namespace signalbox::xds {

/// A virtual host, and where it comes from.
struct Routes {
  std::shared_ptr<const Listener> listener;
  std::shared_ptr<const RouteConfig> route_config;
  const VirtualHost* virtual_host = nullptr;
};

struct BuildArguments {
  const WatchedResources& known;
  const ErrorText& text;
  /// Clusters beside those that the routes name.
  const std::set<ClusterName>& referenced;
  /// Null: there is none.
  const XdsConfig* before = nullptr;
  MissingLeaf missing_leaf = MissingLeaf::kSkip;
};

/// Of an aggregate's leaves with something wrong, this many are in its note; the others are
/// counted.
inline constexpr std::size_t kMaxLeafNotes = 3;

struct BuiltConfig {
  XdsConfig config;
  /// ResolutionNotes::clusters.
  std::map<ClusterName, std::string> notes;
};

/// Nothing while something is missing.
std::optional<BuiltConfig> build_config(const Routes& routes, const BuildArguments& arguments);

/// The same pointers and the same errors throughout.
bool is_unchanged(const XdsConfig& fresh, const XdsConfig& before);

}  // namespace signalbox::xds
