// SPDX-License-Identifier: Apache-2.0
//
// build_config — one XdsConfig out of what is known, or nothing while something is missing.
//
//   WatchedResources, Routes ─▶ [build_config] ─▶ dependency manager ─▶ EmitConfig
//
// Pure. It keeps X1 to X3 of messages/xds_config.hpp: what is as it was in `before` is the same
// pointer.

#pragma once

#include <memory>
#include <optional>
#include <set>

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

/// The clusters that its routes name.
std::set<ClusterName> clusters_of(const VirtualHost& host);

struct BuildArguments {
  const WatchedResources& known;
  const ErrorText& text;
  /// Clusters beside those that the routes name.
  const std::set<ClusterName>& referenced;
  /// Null: there is none.
  const XdsConfig* before = nullptr;
  MissingLeaf missing_leaf = MissingLeaf::kSkip;
};

std::optional<XdsConfig> build_config(const Routes& routes, const BuildArguments& arguments);

/// The same pointers and the same errors throughout.
bool is_unchanged(const XdsConfig& fresh, const XdsConfig& before);

}  // namespace signalbox::xds
