// SPDX-License-Identifier: Apache-2.0
//
// build_config — builds one XdsConfig from the known resources, once they are complete.
//
//   WatchedResources, Routes ─▶ [build_config] ─▶ dependency manager ─▶ EmitConfig
//
// Pure. It keeps X1 to X3 of messages/xds_config.hpp: parts that are unchanged since `before` keep
// their pointers.

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

/// A virtual host, with its listener and its route configuration.
struct Routes {
  std::shared_ptr<const Listener> listener;
  std::shared_ptr<const RouteConfig> route_config;
  const VirtualHost* virtual_host = nullptr;
};

struct BuildArguments {
  const WatchedResources& known;
  const ErrorText& text;
  /// Clusters that running calls refer to, in addition to those that the routes name.
  const std::set<ClusterName>& referenced;
  /// The previous configuration; null: there is none.
  const XdsConfig* before = nullptr;
  MissingLeaf missing_leaf = MissingLeaf::kSkip;
};

/// An aggregate's note lists the errors of this many leaves. Further leaves are only counted.
inline constexpr std::size_t kMaxLeafNotes = 3;

struct BuiltConfig {
  XdsConfig config;
  /// The ambient errors (A88) of clusters that have a value, and that routes name or running calls
  /// refer to. They become ResolutionNotes::clusters.
  std::map<ClusterName, std::string> notes;
};

/// Builds the configuration; nullopt while a needed resource has no answer.
std::optional<BuiltConfig> build_config(const Routes& routes, const BuildArguments& arguments);

/// Whether the two configurations have the same pointers and the same errors.
bool is_unchanged(const XdsConfig& fresh, const XdsConfig& before);

}  // namespace signalbox::xds
