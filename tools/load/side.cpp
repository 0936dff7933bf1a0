// SPDX-License-Identifier: Apache-2.0
#include "tools/load/side.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "signalbox/runtime.hpp"
#include "tools/child_process.hpp"
#include "tools/commands.hpp"
#include "tools/load/collector.hpp"
#include "tools/load/curl_loop.hpp"
#include "tools/load/engine.hpp"
#include "tools/load/http_engine.hpp"
#include "tools/load/live_counts.hpp"
#include "tools/load/payload.hpp"
#include "tools/load/places.hpp"
#include "tools/load/reflection.hpp"
#include "tools/load/report_json.hpp"
#include "tools/load/side_plan.hpp"
#include "tools/stop_signals.hpp"

namespace signalbox::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kSideRound{10};          // Between two looks at rings and stdin.
constexpr milliseconds kStateWait{50};          // Between two looks at stdin before the load.
constexpr milliseconds kPlacesAskedEvery{100};  // Between two looks at the runtime's status.
constexpr milliseconds kLiveEvery{200};         // Between two lines of live counts.
constexpr auto kCutGrace = std::chrono::seconds(1);
constexpr auto kLastAnswers = std::chrono::seconds(2);  // Time after the last call's deadline.

void print(const Json& line) {
  std::cout << absl::StrCat(line.dump(-1, ' ', false, Json::error_handler_t::replace), "\n")
            << std::flush;
}

int refuse(absl::string_view why) {
  print({{"error", std::string(why)}});
  return kExitUsage;
}

// Reads the lines that the parent writes to this process's stdin.
class Lines {
 public:
  /// nullopt: no whole line has come within `at_most`.
  std::optional<std::string> next(milliseconds at_most) {
    if (auto line = take_line()) return line;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, static_cast<int>(at_most.count())) <= 0) return std::nullopt;
    std::array<char, 65536> chunk;
    const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (got <= 0) {
      has_ended_ = true;
      return std::nullopt;
    }
    text_.append(chunk.data(), static_cast<std::size_t>(got));
    return take_line();
  }

  bool has_ended() const { return has_ended_; }

 private:
  std::optional<std::string> take_line() {
    const auto end = text_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }

  std::string text_;
  bool has_ended_ = false;
};

// Waits for the next line; an empty object if stdin ends first.
Json await_line(Lines& lines) {
  while (!lines.has_ended()) {
    if (const auto line = lines.next(milliseconds(100)))
      return Json::parse(*line, nullptr, /*allow_exceptions=*/false);
  }
  return Json::object();
}

nanoseconds process_cpu() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

// The channel or router of a side, and the runtime that it may need.
struct Client {
  std::unique_ptr<Runtime> runtime;                 // Null: gRPC's own channel.
  std::shared_ptr<grpc::ChannelInterface> channel;  // Null: calls are HTTP requests.
  std::shared_ptr<Router> router;                   // Set for HTTP requests.
};

absl::StatusOr<Client> make_client(const SidePlan& plan) {
  Client client;
  if (plan.side == kGrpcSide) {
    if (!plan.bootstrap.empty()) {
      ::unsetenv("GRPC_XDS_BOOTSTRAP");
      ::setenv("GRPC_XDS_BOOTSTRAP_CONFIG", plan.bootstrap.c_str(), /*overwrite=*/1);
    }
    client.channel = grpc::CreateChannel(plan.target, grpc::InsecureChannelCredentials());
    return client;
  }
  RuntimeOptions options;
  if (!plan.bootstrap.empty()) options.bootstrap_json = plan.bootstrap;
  options.log_level = LogLevel::kError;
  options.log_line = [](const LogLine& line) { say("load", text_of(line), line.level); };
  if (plan.http) options.transport = EndpointTransport::kTcp;
  auto runtime = Runtime::start(std::move(options));
  if (!runtime.ok()) return runtime.status();
  client.runtime = *std::move(runtime);
  if (plan.http) {
    auto router = client.runtime->router(plan.target);
    if (!router.ok()) return router.status();
    client.router = *std::move(router);
    return client;
  }
  client.channel = client.runtime->channel(plan.target);
  return client;
}

// The first reason that the runtime gives for a target that is not READY; empty: it gives none, or
// the side has no runtime.
std::string why_not_ready(const Client& client, const std::string& target) {
  if (client.runtime == nullptr) return "";
  const RuntimeStatus status = client.runtime->status();
  for (const TargetStatus& one : status.targets) {
    if (one.name != target) continue;
    if (!one.failure.ok()) return absl::StrCat(": ", one.failure.message());
    for (const ClusterStatus& cluster : one.clusters) {
      if (!cluster.failure.ok()) return absl::StrCat(": ", cluster.failure.message());
      for (const PriorityStatus& priority : cluster.priorities) {
        if (!priority.reason.ok()) return absl::StrCat(": ", priority.reason.message());
      }
    }
  }
  return "";
}

// Whether the target is ready now; waits for at most kStateWait while it is not.
bool is_ready_soon(const Client& client, const std::string& target) {
  if (client.channel == nullptr) {
    if (client.runtime->ready(target).value_or(false)) return true;
    std::this_thread::sleep_for(kStateWait);
    return false;
  }
  const auto state = client.channel->GetState(/*try_to_connect=*/true);
  if (state == GRPC_CHANNEL_READY) return true;
  // gRPC's channel hardly makes progress unless a thread waits for it like this.
  client.channel->WaitForStateChange(state, std::chrono::system_clock::now() + kStateWait);
  return false;
}

absl::Status await_ready(const Client& client, const SidePlan& plan, Lines& lines) {
  const auto deadline = Clock::now() + plan.start_timeout;
  for (;;) {
    if (is_ready_soon(client, plan.target)) return absl::OkStatus();
    lines.next(milliseconds(0));
    if (lines.has_ended()) return absl::CancelledError("the parent has ended");
    if (Clock::now() > deadline)
      return absl::DeadlineExceededError(
          absl::StrCat(plan.target,
                       " was not ready within ",
                       std::chrono::duration<double>(plan.start_timeout).count(),
                       " s",
                       why_not_ready(client, plan.target)));
  }
}

// Asks the target for the method's types, and fills the plan's request.
absl::Status reflect(const Client& client,
                     std::chrono::system_clock::time_point deadline,
                     SidePlan& plan) {
  const auto types = ask_for_types(client.channel, plan, deadline);
  if (!types.ok()) return types.status();
  auto request = payload_of_json(*types, plan.calls.method, *plan.reflected_data);
  if (!request.ok())
    return {request.status().code(),
            absl::StrCat("--reflection: ",
                         request.status().message(),
                         absl::IsNotFound(request.status())
                             ? "; correct --call, or give other types with --protoset FILE"
                             : "")};
  plan.calls.request = *std::move(request);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OpenLoop>> make_engine(const Client& client, const SidePlan& plan) {
  if (!plan.http) return std::make_unique<LoadEngine>(client.channel, plan.calls);
  auto loop = CurlLoop::make(plan.calls.max_in_flight);
  if (!loop.ok()) return loop.status();
  return std::make_unique<HttpEngine>(client.router, *std::move(loop), *plan.http, plan.calls);
}

class SideRun {
 public:
  SideRun(const SidePlan& plan, Client& client, std::unique_ptr<OpenLoop> engine, Lines& lines)
      : plan_(plan),
        client_(client),
        lines_(lines),
        recorder_(plan.side, plan.calls.sessions, plan.calls.duration),
        collector_(recorder_),
        engine_(std::move(engine)) {}

  LoadSide run(Clock::time_point begin) {
    measured_ = begin + plan_.calls.warmup;
    next_second_ = measured_ + std::chrono::seconds(1);
    engine_->start(begin);
    const auto last = measured_ + plan_.calls.duration + plan_.calls.call_timeout + kLastAnswers;
    while (!engine_->is_done() && Clock::now() < std::min(last, cut_deadline())) {
      if (const auto line = lines_.next(kSideRound)) obey(Json::parse(*line, nullptr, false));
      if (lines_.has_ended()) std::_Exit(kExitUsage);  // The parent has ended.
      look();
    }
    return finish();
  }

 private:
  Clock::time_point cut_deadline() const {
    return cut_ ? *cut_ + kCutGrace : Clock::time_point::max();
  }

  void obey(const Json& line) {
    if (line.contains("act")) {
      const nanoseconds at(line["act"].at("at").get<std::int64_t>());
      collector_.add_act((at - measured_.time_since_epoch()).count(),
                         line["act"].at("is_fault").get<bool>());
    } else if (line.contains("place")) {
      const auto [address, place] = place_of_json(line["place"]);
      recorder_.place(address, place);
    } else if (line.contains("stop")) {
      cut_ = Clock::now();
      engine_->stop();
    }
  }

  void look() {
    const auto now = Clock::now();
    if (now >= measured_ && !cpu_before_) {
      cpu_before_ = process_cpu();
      own_before_ = own_cpu();
    }
    if (client_.runtime != nullptr && now >= next_places_) tell_places(now);
    auto drained = engine_->drain();
    count_live(drained);
    collector_.add(drained.sent, drained.ended, std::move(drained.endpoints));
    collector_.advance((now - measured_).count());
    if (now >= next_second_) report_second();
    if (plan_.is_live && now >= next_live_) {
      next_live_ = now + kLiveEvery;
      print({{"live", live_counts_json(live_)}});
    }
  }

  // Adds the calls to the live counts at once. The collector holds calls back to order them, but
  // the order does not matter for counts.
  void count_live(const LoadEngine::Drained& drained) {
    if (!plan_.is_live) return;
    for (const SentCall& call : drained.sent)
      live_.add(call);
    for (const EndedCall& call : drained.ended)
      live_.add(call);
  }

  void report_second() {
    next_second_ += std::chrono::seconds(1);
    print({{"second", second_json(recorder_.take_second())}});
  }

  // Gives the recorder the places of endpoints. The collector holds calls back for a moment, so the
  // recorder usually knows an endpoint's place before it gets the endpoint's first calls.
  void tell_places(Clock::time_point now) {
    next_places_ = now + kPlacesAskedEvery;
    for (const auto& [address, place] : places_of(client_.runtime->status(), plan_.target)) {
      if (const auto known = places_.find(address);
          known != places_.end() && known->second == place)
        continue;
      places_[address] = place;
      recorder_.place(address, place);
      print({{"place", place_json(address, place)}});
    }
  }

  nanoseconds own_cpu() const { return engine_->own_cpu() + thread_cpu(); }

  LoadSide finish() {
    const nanoseconds cpu = process_cpu() - cpu_before_.value_or(process_cpu());
    const nanoseconds own = own_cpu() - own_before_;
    const bool is_done = engine_->is_done();
    auto drained = engine_->drain();
    count_live(drained);
    collector_.add(drained.sent, drained.ended, std::move(drained.endpoints));
    collector_.flush();
    if (plan_.is_live) print({{"live", live_counts_json(live_)}});
    const nanoseconds ran =
        cut_ ? std::clamp<nanoseconds>(*cut_ - measured_, nanoseconds(0), plan_.calls.duration)
             : plan_.calls.duration;
    // If the load ended before its last second was over, that second is reported here.
    if (next_second_ - std::chrono::seconds(1) < measured_ + ran) report_second();
    LoadSide side = recorder_.finish(
        ran, plan_.lateness_limit_ns, is_done ? engine_->messages() : decltype(side.messages){});
    if (const auto calls = static_cast<double>(side.ok + side.failed); calls > 0) {
      side.cpu_per_call_ns = static_cast<double>(cpu.count()) / calls;
      side.engine_cpu_per_call_ns = static_cast<double>(own.count()) / calls;
    }
    return side;
  }

  const SidePlan& plan_;
  Client& client_;
  Lines& lines_;
  LoadRecorder recorder_;
  Collector collector_;
  std::unique_ptr<OpenLoop> engine_;  // Its rings are too large for a stack.
  Clock::time_point measured_;
  Clock::time_point next_second_;
  Clock::time_point next_places_;
  Clock::time_point next_live_;
  LiveCounts live_;
  std::map<std::string, RankedPlace> places_;
  std::optional<Clock::time_point> cut_;
  std::optional<nanoseconds> cpu_before_;
  nanoseconds own_before_{};
};

absl::Status write_side(const LoadSide& side, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << load_side_json(side).dump(
              -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
       << std::flush;
  return file ? absl::OkStatus()
              : absl::InternalError(absl::StrCat("cannot write ", path, "; is the disk full?"));
}

}  // namespace

int run_load_side(pid_t parent) {
  block_stop_signals();  // The parent takes them, and ends this process.
  die_with_parent(parent);
  Lines lines;
  auto plan = read_side_plan(await_line(lines).dump());
  if (!plan.ok()) return refuse(plan.status().message());
  const auto start_deadline = std::chrono::system_clock::now() + plan->start_timeout;
  auto client = make_client(*plan);
  if (!client.ok()) return refuse(client.status().message());
  if (const auto ready = await_ready(*client, *plan, lines); !ready.ok())
    return refuse(ready.message());
  Json ready{{"ready", true}};
  if (plan->reflected_data) {
    if (const auto status = reflect(*client, start_deadline, *plan); !status.ok())
      return refuse(status.message());
    ready["request"] = request_json(plan->calls.request);
  }
  auto engine = make_engine(*client, *plan);
  if (!engine.ok()) return refuse(engine.status().message());
  print(ready);
  const Json go = await_line(lines);
  if (!go.contains("go")) return kExitUsage;
  const nanoseconds begin(go["go"].get<std::int64_t>());
  SideRun run(*plan, *client, *std::move(engine), lines);
  const LoadSide side = run.run(Clock::time_point(begin));
  if (const auto written = write_side(side, plan->result); !written.ok())
    return refuse(written.message());
  print({{"done", true}});
  return kExitOk;
}

}  // namespace signalbox::tools
