// SPDX-License-Identifier: Apache-2.0
//
// Times GET /ready over loopback, while a dump of ten thousand endpoints is made.
//
//   a thread: /config_dump, again and again ─▶ AdminServer ◀─ admin_get("/ready"): the time
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

#include "channel/admin/admin_server.hpp"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "tests/bench/measures.hpp"
#include "tests/bench/percentiles.hpp"
#include "tools/admin_client.hpp"

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;
using envoy::config::endpoint::v3::ClusterLoadAssignment;

ResourceDump dump_of_endpoints() {
  constexpr int kEndpoints = 10'000;
  ClusterLoadAssignment assignment;
  assignment.set_cluster_name("orders");
  auto* const locality = assignment.add_endpoints();
  locality->mutable_load_balancing_weight()->set_value(1);
  for (int i = 0; i < kEndpoints; ++i) {
    auto* const socket = locality->add_lb_endpoints()
                             ->mutable_endpoint()
                             ->mutable_address()
                             ->mutable_socket_address();
    socket->set_address(absl::StrCat("10.0.", i / 256, ".", i % 256));
    socket->set_port_value(80);
  }
  ResourceState state;
  state.key = {ResourceType::kEndpoints, "orders"};
  state.status = ResourceStatus::kAcked;
  state.bytes = std::make_shared<const std::string>(assignment.SerializeAsString());
  return {.node_id = "bench", .resources = {std::move(state)}};
}

}  // namespace

Measured measure_ready(const MeasureOptions& options, Side& /*side*/) {
  ResourceDump dump = dump_of_endpoints();
  channel::AdminSources sources;
  sources.dump = [&dump] { return dump; };
  sources.ready = [](const std::string&) { return std::optional(true); };
  const auto server = channel::AdminServer::start("127.0.0.1:0", std::move(sources));
  if (!server.ok()) return server.status();
  const auto address = channel::parse_admin_address((*server)->address());
  if (!address.ok()) return address.status();

  std::atomic<bool> is_over{false};
  absl::Status dumped;
  std::size_t dumps = 0;
  std::thread dumper([&] {
    for (; !is_over && dumped.ok(); ++dumps)
      dumped = tools::admin_get(*address, "/config_dump").status();
  });
  std::vector<double> took;
  absl::Status asked;
  const auto end = Clock::now() + options.length;
  do {
    const auto begun = Clock::now();
    asked = tools::admin_get(*address, "/ready").status();
    took.push_back(Milliseconds(Clock::now() - begun).count());
  } while (asked.ok() && Clock::now() < end);
  is_over = true;
  dumper.join();
  if (!asked.ok()) return asked;
  if (!dumped.ok()) return dumped;
  return nlohmann::json{{"ready_ms", percentile(took, 50)},
                        {"p99_ms", percentile(took, 99)},
                        {"dumps", static_cast<double>(dumps)}};
}

}  // namespace signalbox::bench
