// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_stage.hpp"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <nlohmann/json.hpp>

#include "channel/admin/admin_address.hpp"
#include "tools/demo_load.hpp"
#include "tools/load/engine.hpp"
#include "tools/load/places.hpp"
#include "tools/load/report_files.hpp"

namespace signalbox::tools {
namespace {

constexpr auto kFirstCallTime = std::chrono::seconds(20);
// gRPC's own back-off grows from 1 s to 120 s. The demo's connections have a shorter back-off, so
// that a short demo sees a cluster come back.
constexpr auto kInitialBackoff = std::chrono::milliseconds(100);
constexpr auto kMaxBackoff = std::chrono::seconds(1);
constexpr auto kPlacesEvery = std::chrono::milliseconds(100);

std::string bootstrap_of(const std::string& server) {
  return nlohmann::json{
      {"xds_servers",
       {{{"server_uri", server},
         {"channel_creds", {{{"type", "insecure"}}}},
         {"server_features", {"xds_v3"}}}}},
      {"node", {{"id", "signalbox-demo"}, {"locality", {{"region", "here"}, {"zone", "a"}}}}}}
      .dump();
}

}  // namespace

DemoStage::DemoStage(const DemoOptions& options, DemoTopology topology)
    : options_(options),
      topology_(std::move(topology)),
      log_(topology_.leaves()),
      backends_(topology_.places()) {}

DemoStage::~DemoStage() {
  // The deadline is now, because clients' streams do not end by themselves.
  if (grpc_admin_ != nullptr) grpc_admin_->Shutdown(std::chrono::system_clock::now());
  grpc_admin_.reset();
  stop_looking();
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
  // The demo's table has the failovers already. JSON lines repeat them for a log collector.
  options.log_level = log_format() == LogFormat::kJson ? LogLevel::kInfo : LogLevel::kError;
  options.log_line = [](const LogLine& line) { say("demo", text_of(line), line.level); };
  if (options_.metrics_detail == "endpoint") options.metrics_detail = MetricsDetail::kEndpoint;
  if (options_.metrics_detail == "none") options.metrics_detail = MetricsDetail::kNone;
  if (options_.metrics_buckets == "grpc") options.latency_buckets = LatencyBuckets::kGrpc;
  if (!options_.record.empty()) options.record = RecordOptions{.path = options_.record};
  if (options_.drill == kTieredDrill) options.aggregate_mode = AggregateMode::kTiered;
  auto runtime = Runtime::start(std::move(options));
  if (!runtime.ok()) {
    absl::string_view why = runtime.status().message();
    const bool is_of_record = absl::ConsumePrefix(&why, "RuntimeOptions::record");
    return {runtime.status().code(), absl::StrCat(is_of_record ? "--record" : "", why)};
  }
  runtime_ = *std::move(runtime);
  return absl::OkStatus();
}

absl::Status DemoStage::serve_metrics() {
  const auto port = runtime_->serve_metrics(options_.metrics);
  if (!port.ok())
    return {port.status().code(),
            absl::StrCat("--metrics ", options_.metrics, ": ", port.status().message())};
  const std::string host = options_.metrics.substr(0, options_.metrics.rfind(':'));
  std::cout << "metrics on http://" << host << ":" << *port << "/metrics" << "\n" << std::flush;
  return absl::OkStatus();
}

absl::Status DemoStage::serve_admin() {
  if (options_.admin.empty()) return absl::OkStatus();
  const auto address = runtime_->serve_admin(options_.admin);
  if (!address.ok()) return address.status();
  std::cout << "admin pages on " << *address << "\n" << std::flush;
  return absl::OkStatus();
}

absl::Status DemoStage::serve_grpc_admin() {
  if (options_.grpc_admin.empty()) return absl::OkStatus();
  // Allows the addresses that the admin pages allow. Only users of this machine can reach these.
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
            << "\n"
            << std::flush;
  return absl::OkStatus();
}

absl::Status DemoStage::start_load(std::function<void(const FinishedCall&)> also) {
  const auto channel = runtime_->channel(topology_.target());
  if (auto status = make_first_call(channel, kFirstCallTime); !status.ok()) return status;
  std::map<std::string, std::string> clusters;
  for (const std::string& leaf : leaves()) {
    for (const std::string& address : backends_.addresses(leaf))
      clusters[address] = leaf;
  }
  auto engine = std::make_unique<LoadEngine>(
      channel, demo_calls(options_.rps, options_.seed), demo_requests(options_.seed));
  const CallTime begin = std::chrono::steady_clock::now();
  if (!options_.html.empty()) start_record(begin);
  load_ =
      std::make_unique<EngineRun>(std::move(engine),
                                  begin,
                                  [this, clusters = std::move(clusters), also = std::move(also)](
                                      const EngineRun& run, const OpenLoop::Drained& drained) {
                                    const CallTime now = std::chrono::steady_clock::now();
                                    std::vector<FinishedCall> calls;
                                    calls.reserve(drained.ended.size());
                                    for (const EndedCall& call : drained.ended)
                                      calls.push_back(finished_call(run.named(call), clusters));
                                    take(drained, calls, now);
                                    if (!also) return;
                                    for (const FinishedCall& call : calls)
                                      also(call);
                                  });
  return absl::OkStatus();
}

void DemoStage::take(const OpenLoop::Drained& drained,
                     const std::vector<FinishedCall>& calls,
                     CallTime now) {
  const std::lock_guard lock(mutex_);
  for (const FinishedCall& call : calls)
    log_.add(call);
  if (record_ != nullptr) record_->add(drained, now);
}

void DemoStage::start_session() {
  session_ = std::make_unique<DemoSession>(
      runtime_->channel(topology_.target()),
      [this](const FinishedCall& call) { with_log([&](CallLog& log) { log.add(call); }); });
}

absl::Status DemoStage::finish_load() {
  if (session_ != nullptr) session_->finish();
  load_ended_ = std::chrono::steady_clock::now();
  const bool is_whole = load_ == nullptr || load_->finish();
  stop_looking();
  if (is_whole) return absl::OkStatus();
  return absl::InternalError("some calls were never answered");
}

void DemoStage::start_record(CallTime begin) {
  started_unix_ms_ = absl::ToUnixMillis(absl::Now());
  record_ = std::make_unique<DemoRecord>(begin, options_.seconds);
  note_places();
  looker_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    while (!stopped_looking_.wait_for(lock, stop, kPlacesEvery, [] { return false; }) &&
           !stop.stop_requested())
      note_places();
  });
}

void DemoStage::stop_looking() {
  if (!looker_.joinable()) return;
  looker_.request_stop();
  looker_.join();
}

void DemoStage::note_places() {
  const auto places = places_of(runtime_->status(), topology_.target());
  const std::lock_guard lock(mutex_);
  for (const auto& [address, place] : places)
    record_->place(address, place);
}

void DemoStage::act_begins(const DemoAct& act) {
  const std::lock_guard lock(mutex_);
  if (record_ != nullptr) record_->act_begins(std::chrono::steady_clock::now(), act);
}

absl::Status DemoStage::write_page(std::string failure, std::vector<std::string> notes) {
  const std::lock_guard lock(mutex_);
  if (record_ == nullptr) return absl::OkStatus();
  const CallPlan calls = demo_calls(options_.rps, options_.seed);
  LoadConfiguration configuration{
      .target = topology_.target(),
      .method = calls.method,
      .rate = absl::StrCat(options_.rps),
      .arrivals = "even",
      .seed = options_.seed,
      .call_timeout_s = std::chrono::duration<double>(calls.call_timeout).count(),
      .payload_bytes = demo_requests(options_.seed).front().size(),
      .script_file = absl::StrCat(
          "signalbox demo", options_.drill.empty() ? "" : " --drill ", options_.drill)};
  LoadReport report = record_->finish(load_ended_,
                                      std::move(configuration),
                                      load_->messages(),
                                      {.failed_other = log_.failed_other(),
                                       .failure = std::move(failure),
                                       .notes = std::move(notes)});
  report.signalbox_version = version_text();
  report.started_unix_ms = started_unix_ms_;
  return write_report_files({.html = options_.html}, report);
}

absl::Status DemoStage::write_resources(std::size_t first_leaf, const EndpointChange& change) {
  const auto text = topology_.resources(backends_.ports(), first_leaf, change);
  return text.ok() ? control_plane_.write_resources(*text) : text.status();
}

}  // namespace signalbox::tools
