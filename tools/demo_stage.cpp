// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_stage.hpp"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <nlohmann/json.hpp>

#include "channel/admin/admin_address.hpp"

namespace signalbox::tools {
namespace {

constexpr auto kStartTime = std::chrono::seconds(20);
// gRPC's own values are 1 s and 120 s; these let a short demo see a cluster come back.
constexpr auto kInitialBackoff = std::chrono::milliseconds(100);
constexpr auto kMaxBackoff = std::chrono::seconds(1);

std::string bootstrap_of(const std::string& server) {
  return nlohmann::json{{"xds_servers",
                         {{{"server_uri", server},
                           {"channel_creds", {{{"type", "insecure"}}}},
                           {"server_features", {"xds_v3"}}}}},
                        {"node", {{"id", "signalbox-demo"}}}}
      .dump();
}

}  // namespace

DemoStage::DemoStage(const DemoOptions& options, DemoTopology topology)
    : options_(options),
      topology_(std::move(topology)),
      log_(topology_.leaves()),
      backends_(topology_.places()) {}

DemoStage::~DemoStage() {
  // A client's stream does not end by itself.
  if (grpc_admin_ != nullptr) grpc_admin_->Shutdown(std::chrono::system_clock::now());
  grpc_admin_.reset();
  session_.reset();  // Session and load use channels of the runtime.
  load_.reset();
  runtime_.reset();
}

absl::Status DemoStage::set() {
  for (const std::string& leaf : leaves()) {
    if (auto status = backends_.start(leaf, [] {}); !status.ok()) return status;
  }
  if (auto status = write_resources(0); !status.ok()) return status;
  if (auto status = control_plane_.start(); !status.ok()) return status;

  RuntimeOptions options;
  options.bootstrap_json = bootstrap_of(control_plane_.address());
  options.initial_backoff = kInitialBackoff;
  options.max_backoff = kMaxBackoff;
  options.seed = options_.seed;
  // The demo's table has the failovers already. In JSON they are for a log collector.
  options.log_level = log_format() == LogFormat::kJson ? LogLevel::kInfo : LogLevel::kError;
  options.log_line = [](const LogLine& line) { say("demo", text_of(line), line.level); };
  if (options_.metrics_detail == "endpoint") options.metrics_detail = MetricsDetail::kEndpoint;
  if (options_.metrics_detail == "none") options.metrics_detail = MetricsDetail::kNone;
  if (options_.metrics_buckets == "grpc") options.latency_buckets = LatencyBuckets::kGrpc;
  if (options_.drill == kTieredDrill) options.aggregate_mode = AggregateMode::kTiered;
  auto runtime = Runtime::start(std::move(options));
  if (!runtime.ok()) return runtime.status();
  runtime_ = *std::move(runtime);
  return absl::OkStatus();
}

absl::Status DemoStage::serve_metrics() {
  const auto port = runtime_->serve_metrics(options_.metrics);
  if (!port.ok())
    return {port.status().code(),
            absl::StrCat("--metrics ", options_.metrics, ": ", port.status().message())};
  const std::string host = options_.metrics.substr(0, options_.metrics.rfind(':'));
  std::cout << "metrics on http://" << host << ":" << *port << "/metrics" << std::endl;
  return absl::OkStatus();
}

absl::Status DemoStage::serve_admin() {
  if (options_.admin.empty()) return absl::OkStatus();
  const auto address = runtime_->serve_admin(options_.admin);
  if (!address.ok()) return address.status();
  std::cout << "admin pages on " << *address << std::endl;
  return absl::OkStatus();
}

absl::Status DemoStage::serve_grpc_admin() {
  if (options_.grpc_admin.empty()) return absl::OkStatus();
  // The same addresses as those of the admin pages: users of this machine have access.
  const auto address = channel::parse_admin_address(options_.grpc_admin);
  if (!address.ok()) return address.status();
  const auto* const loopback = std::get_if<channel::LoopbackAddress>(&*address);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(channel::to_string(*address), grpc::InsecureServerCredentials(), &port);
  if (auto status = runtime_->add_admin_services(builder); !status.ok()) return status;
  grpc_admin_ = builder.BuildAndStart();
  if (grpc_admin_ == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("--grpc-admin ", options_.grpc_admin, ": cannot listen there"));
  }
  std::cout << "gRPC admin services on "
            << (loopback == nullptr ? channel::to_string(*address)
                                    : channel::to_string(channel::LoopbackAddress{
                                          loopback->ip, static_cast<std::uint16_t>(port)}))
            << std::endl;
  return absl::OkStatus();
}

absl::Status DemoStage::start_load(std::function<void(const FinishedCall&)> also) {
  load_ = std::make_unique<DemoLoad>(runtime_->channel(topology_.target()),
                                     DemoLoad::Options{.rps = options_.rps, .seed = options_.seed},
                                     [this, also = std::move(also)](const FinishedCall& call) {
                                       with_log([&](CallLog& log) { log.add(call); });
                                       if (also) also(call);
                                     });
  if (auto status = load_->warm_up(kStartTime); !status.ok()) return status;
  load_->start();
  return absl::OkStatus();
}

void DemoStage::start_session() {
  session_ = std::make_unique<DemoSession>(
      runtime_->channel(topology_.target()),
      [this](const FinishedCall& call) { with_log([&](CallLog& log) { log.add(call); }); });
}

absl::Status DemoStage::finish_load() {
  if (session_ != nullptr) session_->finish();
  if (load_ == nullptr || load_->finish()) return absl::OkStatus();
  return absl::InternalError("some calls were never answered");
}

absl::Status DemoStage::write_resources(std::size_t first_leaf, const EndpointChange& change) {
  const auto text = topology_.resources(backends_.ports(), first_leaf, change);
  return text.ok() ? control_plane_.write_resources(*text) : text.status();
}

}  // namespace signalbox::tools
