// SPDX-License-Identifier: Apache-2.0
//
// signalbox demo: the topology under load, with failures by script.
//
//   0           ──▶ steady: the first cluster serves
//   0.20 × T    ──▶ its backends are killed: the second serves
//   0.45 × T    ──▶ so are the second's: the third serves
//   0.60 × T    ──▶ the second's are back
//   0.70 × T    ──▶ the first's are back
//   T           ──▶ the table
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include <netdb.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <unistd.h>

#include "actors/io/watched_file.hpp"
#include "signalbox/runtime.hpp"
#include "tools/call_log.hpp"
#include "tools/child_process.hpp"
#include "tools/commands.hpp"
#include "tools/demo_backends.hpp"
#include "tools/demo_load.hpp"
#include "tools/demo_report.hpp"
#include "tools/demo_resources.hpp"
#include "tools/demo_topology.hpp"
#include "tools/stop_signals.hpp"

namespace signalbox::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kStartTime = std::chrono::seconds(20);
constexpr auto kEndTime = std::chrono::seconds(5);
// A cluster that comes back is to be seen within a short demo; gRPC's own are 1 s and 120 s.
constexpr auto kInitialBackoff = std::chrono::milliseconds(100);
constexpr auto kMaxBackoff = std::chrono::seconds(1);

// A folder of our own that goes when we go.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "signalbox-demo-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }

  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  absl::StatusOr<std::string> write(const std::string& name, const std::string& text) const {
    const std::string path = path_ + "/" + name;
    std::ofstream file(path);
    file << text << std::flush;
    if (path_.empty() || !file) return absl::InternalError(absl::StrCat("cannot write ", path));
    return path;
  }

 private:
  std::string path_;
};

// What the demo runs on, in the order in which it is started; it ends in the reverse one.
class Stage {
 public:
  Stage(const DemoOptions& options, DemoTopology topology)
      : options_(options),
        topology_(std::move(topology)),
        log_(topology_.leaves()),
        backends_(topology_.places()) {}

  ~Stage() {
    load_.reset();
    runtime_.reset();
    if (control_plane_) {
      control_plane_->send_signal(SIGTERM);
      control_plane_->wait(kEndTime).IgnoreError();
    }
  }

  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  absl::Status start_backends();
  absl::Status start_control_plane();
  absl::Status start_runtime();
  absl::Status serve_metrics();
  absl::Status serve_admin();
  absl::Status start_load();

  absl::Status kill(std::size_t leaf);
  absl::Status bring_back(std::size_t leaf);
  std::string tell(std::chrono::nanoseconds since_start, std::chrono::nanoseconds interval);
  /// Ends the load. Nothing where answers never came.
  std::optional<DemoResult> result(std::string* first_error);

  const std::vector<std::string>& leaves() const { return topology_.leaves(); }

 private:
  const DemoOptions& options_;
  const DemoTopology topology_;
  std::mutex mutex_;  // Guards the log.
  CallLog log_;
  TemporaryFolder folder_;
  DemoBackends backends_;
  std::optional<ChildProcess> control_plane_;
  std::string control_plane_address_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<DemoLoad> load_;
};

absl::Status Stage::start_backends() {
  for (const std::string& leaf : leaves()) {
    if (auto status = backends_.start(leaf, [] {}); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Stage::start_control_plane() {
  const auto text = topology_.resources_with_ports(backends_.ports());
  if (!text.ok()) return text.status();
  const auto path = folder_.write("resources.json", *text);
  if (!path.ok()) return path.status();
  auto process = ChildProcess::start({own_program(),
                                      "serve",
                                      "--resources",
                                      *path,
                                      "--listen",
                                      "127.0.0.1:0",
                                      "--parent",
                                      std::to_string(::getpid())},
                                     {});
  if (!process.ok()) return process.status();
  control_plane_ = *std::move(process);
  const auto line = control_plane_->read_line(kStartTime);
  if (!line.ok()) return line.status();
  const auto ready = nlohmann::json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (!ready.is_object()) return absl::InternalError("the control plane names no address");
  control_plane_address_ = ready.value("address", "");
  return absl::OkStatus();
}

absl::Status Stage::start_runtime() {
  RuntimeOptions options;
  options.bootstrap_json = nlohmann::json{{"xds_servers",
                                           {{{"server_uri", control_plane_address_},
                                             {"channel_creds", {{{"type", "insecure"}}}},
                                             {"server_features", {"xds_v3"}}}}},
                                          {"node", {{"id", "signalbox-demo"}}}}
                               .dump();
  options.initial_backoff = kInitialBackoff;
  options.max_backoff = kMaxBackoff;
  options.seed = options_.seed;
  auto runtime = Runtime::start(std::move(options));
  if (!runtime.ok()) return runtime.status();
  runtime_ = *std::move(runtime);
  return absl::OkStatus();
}

absl::Status Stage::serve_metrics() {
  const auto port = runtime_->serve_metrics(options_.metrics);
  if (!port.ok()) {
    // The library's own words for it are "null context".
    return absl::UnavailableError(
        absl::StrCat("--metrics ",
                     options_.metrics,
                     ": cannot listen there; is it in use, or not an address of this machine?"));
  }
  const std::string host = options_.metrics.substr(0, options_.metrics.rfind(':'));
  std::cout << "metrics on http://" << host << ":" << *port << "/metrics" << std::endl;
  return absl::OkStatus();
}

absl::Status Stage::serve_admin() {
  if (options_.admin.empty()) return absl::OkStatus();
  const auto address = runtime_->serve_admin(options_.admin);
  if (!address.ok()) return address.status();
  std::cout << "admin pages on " << *address << std::endl;
  return absl::OkStatus();
}

absl::Status Stage::start_load() {
  load_ = std::make_unique<DemoLoad>(runtime_->channel(topology_.target()),
                                     DemoLoad::Options{.rps = options_.rps, .seed = options_.seed},
                                     [this](const FinishedCall& call) {
                                       const std::lock_guard lock(mutex_);
                                       log_.add(call);
                                     });
  if (auto status = load_->warm_up(kStartTime); !status.ok()) return status;
  load_->start();
  return absl::OkStatus();
}

absl::Status Stage::kill(std::size_t leaf) {
  const std::string& cluster = leaves()[leaf];
  {
    const std::lock_guard lock(mutex_);
    log_.kill_begins(Clock::now(), backends_.addresses(cluster));
  }
  backends_.kill(cluster);
  const std::lock_guard lock(mutex_);
  log_.kill_ended(Clock::now());
  return absl::OkStatus();
}

absl::Status Stage::bring_back(std::size_t leaf) {
  return backends_.start(leaves()[leaf], [&] {
    if (leaf != 0) return;
    const std::lock_guard lock(mutex_);
    log_.primary_back(Clock::now());
  });
}

std::string Stage::tell(std::chrono::nanoseconds since_start, std::chrono::nanoseconds interval) {
  const auto priority = metric_of_cluster(
      runtime_->metrics_text(), "signalbox_priority_active", topology_.aggregate());
  CallCounts counts;
  {
    const std::lock_guard lock(mutex_);
    counts = log_.take_interval();
  }
  return live_line(since_start, interval, leaves(), counts, priority);
}

std::optional<DemoResult> Stage::result(std::string* first_error) {
  if (!load_->finish()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  *first_error = log_.first_other_error();
  return make_result(leaves(), log_, static_cast<std::uint64_t>(runtime_->repicked()));
}

// --- the script ----------------------------------------------------------------------------------

struct Act {
  double at = 0;  // As a share of the whole.
  std::string what;
  std::function<absl::Status()> run;
};

std::vector<Act> make_script(Stage& stage) {
  const auto& leaves = stage.leaves();
  return {{0.20, "SIGKILL to " + leaves[0], [&stage] { return stage.kill(0); }},
          {0.45, "SIGKILL to " + leaves[1], [&stage] { return stage.kill(1); }},
          {0.60, leaves[1] + " comes back", [&stage] { return stage.bring_back(1); }},
          {0.70, leaves[0] + " comes back", [&stage] { return stage.bring_back(0); }},
          {1.00, "end", [] { return absl::OkStatus(); }}};
}

struct Stopped {
  int signal = 0;
};

// The acts at their times, and a line a second in between.
std::variant<absl::Status, Stopped> play(Stage& stage, double seconds) {
  constexpr auto kTick = std::chrono::seconds(1);
  const auto start = Clock::now();
  auto told = start;
  auto next_tick = start + kTick;
  const auto tell = [&](Clock::time_point now) {
    std::cout << stage.tell(now - start, now - told) << std::endl;
    told = now;
    while (next_tick <= now)
      next_tick += kTick;  // An act may have taken longer than that.
  };

  std::cout << live_header(stage.leaves()) << std::endl;
  for (const Act& act : make_script(stage)) {
    const auto due = start + std::chrono::round<std::chrono::milliseconds>(
                                 std::chrono::duration<double>(act.at * seconds));
    while (Clock::now() < due) {
      const auto next = std::min<Clock::time_point>(due, next_tick);
      if (const auto signal = wait_for_stop(next - Clock::now())) return Stopped{*signal};
      if (const auto now = Clock::now(); now >= next_tick) tell(now);
    }
    std::cout << absl::StrFormat("%6.1f s ── %s", act.at * seconds, act.what) << std::endl;
    if (auto status = act.run(); !status.ok()) return status;
  }
  constexpr auto kWorthTelling = std::chrono::milliseconds(100);  // What is left of a second.
  if (const auto now = Clock::now(); now - told > kWorthTelling) tell(now);
  return absl::OkStatus();
}

// --- before and after ----------------------------------------------------------------------------

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

// A bare system (a chroot, some containers) has no /etc/hosts and so no `localhost`, in which the
// built-in third cluster lives. The demo is about failing over, not about that.
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

// Found out before the demo has run, not after.
absl::Status check_writable(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  const std::string folder = std::filesystem::absolute(path).parent_path().string();
  const std::string& place = is_there ? path : folder;
  if (std::filesystem::is_directory(path, error) || ::access(place.c_str(), W_OK) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--json ", path, ": cannot be written"));
  }
  return absl::OkStatus();
}

int fail(const absl::Status& status, int exit_status) {
  say("demo", status.message());
  return exit_status;
}

int report(const DemoOptions& options, const DemoResult& result, const std::string& first_error) {
  std::cout << "\n" << table(result) << std::flush;
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << to_json(result).dump(2) << "\n" << std::flush;
    if (!file) {
      return fail(absl::InternalError(absl::StrCat("cannot write ", options.json)), kExitFailed);
    }
  }
  if (is_success(result)) return kExitOk;
  say("demo",
      first_error.empty()
          ? "not every cluster has served"
          : absl::StrCat("calls failed that need not have; the first: ", first_error));
  return kExitFailed;
}

absl::Status set_stage(Stage& stage) {
  using Step = absl::Status (Stage::*)();
  for (const Step step :
       {&Stage::start_backends, &Stage::start_control_plane, &Stage::start_runtime}) {
    if (auto status = (stage.*step)(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

int run_demo(const DemoOptions& options) {
  auto topology = read_topology(options);
  if (!topology.ok()) return fail(topology.status(), kExitUsage);
  if (auto status = check_writable(options.json); !status.ok()) {
    return fail(status, kExitUsage);
  }
  replace_unknown_hosts(*topology);

  Stage stage(options, *std::move(topology));
  if (auto status = set_stage(stage); !status.ok()) return fail(status, kExitFailed);
  if (auto status = stage.serve_metrics(); !status.ok()) return fail(status, kExitUsage);
  if (auto status = stage.serve_admin(); !status.ok()) return fail(status, kExitUsage);
  if (auto status = stage.start_load(); !status.ok()) return fail(status, kExitFailed);

  const auto end = play(stage, options.seconds);
  if (const auto* stopped = std::get_if<Stopped>(&end)) {
    say("demo", absl::StrCat("stopped by ", ::strsignal(stopped->signal)));
    return 128 + stopped->signal;
  }
  if (const auto& status = std::get<absl::Status>(end); !status.ok()) {
    return fail(status, kExitFailed);
  }
  std::string first_error;
  const auto result = stage.result(&first_error);
  if (!result) return fail(absl::InternalError("some calls were never answered"), kExitFailed);
  return report(options, *result, first_error);
}

}  // namespace signalbox::tools
