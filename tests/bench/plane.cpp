// SPDX-License-Identifier: Apache-2.0
//
// signalbox_bench_plane: a control plane whose changes happen at known instants.
//
//   resource files ─▶ parsed at the start ─▶ [ControlPlane] ─▶ clients
//   a line on stdin: the next file's resources are set ─▶ {"set_ns": …, "requests": …}
//
// `set_ns`: the instant right before the change (CLOCK_MONOTONIC). `requests`: the number of
// requests that had come from the newest stream before the change.
//
// After the last file, the first file is next again. `signalbox serve` is not used, because it
// would parse a changed file after the measurement has begun. The process ends when its stdin ends.
// Exit status: 0 success, 1 failure, 2 wrong arguments.
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "actors/io/watched_file.hpp"
#include "tools/child_process.hpp"
#include "tools/control_plane.hpp"
#include "xds/resource_file.hpp"

namespace {

using signalbox::xds::ResourceBytes;

absl::StatusOr<std::vector<ResourceBytes>> resources_of(const std::string& path) {
  auto text = signalbox::actors::read_file(path);
  if (!text.ok()) return text.status();
  return signalbox::xds::parse_resources_text(*text, signalbox::xds::format_of(path), path);
}

int requests_of_newest_stream(const signalbox::xds::DiscoveryRecord& record) {
  int requests = 0;
  if (record.streams.empty()) return requests;
  for (const auto& [type_url, type] : record.streams.back().types)
    requests += type.requests;
  return requests;
}

int run(const std::vector<std::string>& paths) {
  signalbox::tools::die_with_parent(::getppid());
  std::vector<std::vector<ResourceBytes>> worlds;
  for (const std::string& path : paths) {
    auto resources = resources_of(path);
    if (!resources.ok()) {
      std::cerr << "signalbox_bench_plane: " << resources.status().message() << "\n";
      return 1;
    }
    worlds.push_back(*std::move(resources));
  }
  const auto plane = signalbox::tools::ControlPlane::start("127.0.0.1:0");
  if (!plane.ok()) {
    std::cerr << "signalbox_bench_plane: " << plane.status().message() << "\n";
    return 1;
  }
  (*plane)->set_resources(worlds.front());
  std::cout << nlohmann::json{{"address", (*plane)->address()}}.dump() << std::endl;

  std::string line;
  for (std::size_t next = 1; std::getline(std::cin, line); ++next) {
    const int requests = requests_of_newest_stream((*plane)->record());
    const auto now = std::chrono::steady_clock::now();
    (*plane)->set_resources(worlds[next % worlds.size()]);
    std::cout
        << nlohmann::json{{"set_ns", now.time_since_epoch().count()}, {"requests", requests}}.dump()
        << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: signalbox_bench_plane FILE...\n";
    return 2;
  }
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "signalbox_bench_plane: " << error.what() << "\n";
    return 1;
  }
}
