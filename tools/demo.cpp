// SPDX-License-Identifier: Apache-2.0
//
// signalbox demo: starts the processes and the runtime, then plays a script.
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <netdb.h>
#include <unistd.h>

#include "actors/io/watched_file.hpp"
#include "tools/commands.hpp"
#include "tools/demo_resources.hpp"
#include "tools/demo_script.hpp"
#include "tools/demo_stage.hpp"
#include "tools/demo_topology.hpp"
#include "tools/stop_signals.hpp"

namespace signalbox::tools {
namespace {

absl::StatusOr<DemoTopology> read_topology(const DemoOptions& options) {
  if (options.resources.empty()) return DemoTopology::parse(demo_resources(), "resources.yaml");
  const auto text = actors::read_file(options.resources);
  if (!text.ok()) return text.status();
  return DemoTopology::parse(*text, options.resources);
}

bool is_known_host(const std::string& host) {
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0) return false;
  ::freeaddrinfo(found);
  return true;
}

// A bare system (a chroot, some containers) has no /etc/hosts and so no `localhost`, the host of
// the built-in third cluster. An IP address takes its place, because the demo is about failover and
// not about name resolution.
void replace_unknown_hosts(DemoTopology& topology) {
  const std::vector<BackendPlace> places = topology.places();
  std::set<std::string> seen;
  for (const BackendPlace& place : places) {
    if (!seen.insert(place.host).second || is_known_host(place.host)) continue;
    const std::string ip = backend_ip(place.host);
    say("demo",
        absl::StrCat(place.host,
                     " has no address on this machine (is it in /etc/hosts?); ",
                     ip,
                     " takes its place"));
    topology.replace_host(place.host, ip);
  }
}

// Checks before the demo runs that the file can be written, because a lost result would make the
// run useless.
absl::Status check_writable(absl::string_view option, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  const std::string folder = std::filesystem::absolute(path, error).parent_path().string();
  const std::string& place = is_there ? path : folder;
  if (std::filesystem::is_directory(path, error) || ::access(place.c_str(), W_OK) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(option, " ", path, ": cannot be written"));
  }
  return absl::OkStatus();
}

}  // namespace

int run_demo(const DemoOptions& options) {
  block_stop_signals();
  auto topology = read_topology(options);
  if (!topology.ok()) return end_early(topology.status(), kExitUsage);
  for (const auto& [option, file] : {std::pair{"--json", options.json}, {"--html", options.html}}) {
    if (auto status = check_writable(option, file); !status.ok())
      return end_early(status, kExitUsage);
  }
  replace_unknown_hosts(*topology);

  DemoStage stage(options, *std::move(topology));
  if (auto status = stage.set(); !status.ok()) return end_early(status);
  if (auto status = stage.serve_metrics(); !status.ok()) return end_early(status, kExitUsage);
  if (auto status = stage.serve_admin(); !status.ok()) return end_early(status, kExitUsage);
  if (auto status = stage.serve_grpc_admin(); !status.ok()) return end_early(status, kExitUsage);
  if (options.drill == kTieredDrill) return play_tiered_drill(options, stage);
  const auto play = options.drill.empty() ? play_failover : play_control_plane_drill;
  return play(options, stage);
}

}  // namespace signalbox::tools
