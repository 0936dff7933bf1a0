// SPDX-License-Identifier: Apache-2.0
//
// signalbox_bench_plane: a control plane whose changes happen at known instants.
//
//   resource files ─▶ parsed at the start ─▶ [ControlPlane] ─▶ clients
//   a line on stdin: the next file's resources are set
//                    ─▶ {"set_ns": …, "requests": …, "load_reports": …}
//
// `set_ns`: the instant right before the change (CLOCK_MONOTONIC). `requests`: the number of
// requests that had come from the newest stream before the change. `load_reports`: the number of
// load reports (LRS) that have come on all streams; the plane asks for one a second of each client.
//
// After the last file, the first file is next again. `signalbox serve` is not used, because it
// would parse a changed file after the measurement has begun. The process ends when its stdin ends.
// Exit status: 0 success, 1 failure, 2 wrong arguments.
#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "actors/io/grpc_ads_transport.hpp"
#include "actors/io/grpc_bytes.hpp"
#include "actors/io/watched_file.hpp"
#include "signalbox/envoy/service/load_stats/v3/lrs.pb.h"
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

// One stream of load reports. Counts the reports.
class LoadStream final : public grpc::ServerGenericBidiReactor {
 public:
  explicit LoadStream(std::atomic<int>& reports) : reports_(reports) { StartRead(&incoming_); }

  // The first message of a stream has no loads. It is answered with the order for the others.
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    if (std::exchange(is_first_, false)) {
      signalbox::envoy::service::load_stats::v3::LoadStatsResponse order;
      order.set_send_all_clusters(true);
      order.mutable_load_reporting_interval()->set_seconds(1);
      outgoing_ = signalbox::actors::to_buffer(order.SerializeAsString());
      return StartWrite(&outgoing_);
    }
    ++reports_;
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&incoming_);
  }

  void OnDone() override { delete this; }

 private:
  std::atomic<int>& reports_;
  bool is_first_ = true;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
};

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
  std::atomic<int> reports = 0;
  const auto plane = signalbox::tools::ControlPlane::start(
      "127.0.0.1:0", [&reports](const std::string& method) -> grpc::ServerGenericBidiReactor* {
        return method == signalbox::actors::kLrsMethod ? new LoadStream(reports) : nullptr;
      });
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
    std::cout << nlohmann::json{{"set_ns", now.time_since_epoch().count()},
                                {"requests", requests},
                                {"load_reports", reports.load()}}
                     .dump()
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
