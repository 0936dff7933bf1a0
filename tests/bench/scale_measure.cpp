// SPDX-License-Identifier: Apache-2.0
//
// Measures many endpoints: one change of them, a start, and the cost when all refuse connections.
//
//   driver: ready ─▶ plane sets the next world ─▶ …
//   client: quiet load ─ baseline ─ ready ─ first answer of the new endpoint ─ quiet again
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>

#include "tests/bench/measures.hpp"
#include "tests/bench/process_usage.hpp"
#include "tests/bench/quiet.hpp"
#include "tests/bench/rate_load.hpp"

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kScalePatience = std::chrono::seconds(120);
constexpr auto kScaleSettleTime = std::chrono::milliseconds(200);
constexpr int kBaselineWindows = 10;

/// The instant at which the expected address first answers after expect().
class FirstAnswer {
 public:
  void expect(std::string address) {
    const std::lock_guard lock(mutex_);
    expected_ = std::move(address);
    seen_ns_ = 0;
  }

  void see(const tools::NamedCall& call) {
    const std::lock_guard lock(mutex_);
    if (!call.ok) {
      ++failed_;
      error_ = call.message;
    }
    if (!call.ok || call.address != expected_ || seen_ns_ != 0) return;
    seen_ns_ = call.ended.time_since_epoch().count();
    changed_.notify_all();
  }

  /// Waits for the first answer, and returns its instant; 0: none came within kScalePatience.
  std::int64_t wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kScalePatience, [this] { return seen_ns_ != 0; });
    return seen_ns_;
  }

  /// Returns an error if a call has failed.
  absl::Status failures() const {
    const std::lock_guard lock(mutex_);
    if (failed_ == 0) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(failed_, " calls failed, the last with: ", error_));
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string expected_;
  std::int64_t seen_ns_ = 0;
  int failed_ = 0;
  std::string error_;  // The error of the last failed call.
};

}  // namespace

Measured measure_eds_update(const MeasureOptions& options, Side& side) {
  if (options.addresses.size() != 2) return absl::InvalidArgumentError("two addresses are needed");
  if (auto status = warm_up(*side.stub, options.endpoints, options.port); !status.ok()) {
    return status;
  }
  const double connected_mb = status_megabytes("VmRSS");
  FirstAnswer first;
  std::vector<std::int64_t> served_ns;
  std::vector<double> cpu_ms;
  const auto load = start_load(
      side, {.rate = options.rate}, [&first](const tools::NamedCall& call) { first.see(call); });
  for (int update = 0; update < options.updates; ++update) {
    const double idle = idle_cpu(kBaselineWindows);
    first.expect(options.addresses[update % 2 == 0 ? 1 : 0]);
    const auto since = Clock::now();
    const double before = cpu_seconds();
    std::cout << R"({"ready":true})" << "\n" << std::flush;
    served_ns.push_back(first.wait());
    if (served_ns.back() == 0) {
      return absl::DeadlineExceededError(absl::StrCat(
          "update ", update + 1, ": the new endpoint has not answered within two minutes"));
    }
    cpu_ms.push_back(cpu_until_quiet(idle, before, since, kScalePatience) * 1e3);
  }
  if (auto status = first.failures(); !status.ok()) return status;
  return nlohmann::json{
      {"served_ns", served_ns}, {"cpu_ms", cpu_ms}, {"connected_mb", connected_mb}};
}

Measured measure_cold_start(const MeasureOptions& options, Side& side) {
  const auto milliseconds = [&side] {
    return std::chrono::duration<double, std::milli>(Clock::now() - side.begun).count();
  };
  const grpc::Status status = call_once(*side.stub);
  if (!status.ok()) return absl::UnavailableError(status.error_message());
  const double answered = milliseconds();
  // The CPU time for reading 10,000 lines of /proc again and again is subtracted below, because it
  // is no cost of the channel.
  const double before_looking = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  if (auto connected = wait_for_connections(options.endpoints, options.port); !connected.ok()) {
    return connected;
  }
  const double looking = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - before_looking;
  const double connected_ms = milliseconds();
  std::this_thread::sleep_for(
      kScaleSettleTime);  // A socket is connected before its channel is READY.
  return nlohmann::json{{"first_answer_ms", answered},
                        {"connected_ms", connected_ms},
                        {"cpu_s", cpu_seconds() - looking}};
}

Measured measure_refused(const MeasureOptions& options, Side& side) {
  // The call waits until every endpoint has failed once.
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kScalePatience);
  demo::v1::PlaceReply reply;
  const grpc::Status status = side.stub->Place(&context, {}, &reply);
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected a call to be refused, found ", status.error_code(), " ", status.error_message()));
  }
  const double refused_ms =
      std::chrono::duration<double, std::milli>(Clock::now() - side.begun).count();
  std::this_thread::sleep_for(options.length);
  return nlohmann::json{{"rss_mb", status_megabytes("VmRSS")},
                        {"peak_mb", status_megabytes("VmHWM")},
                        {"refused_ms", refused_ms},
                        {"cpu_s", cpu_seconds()}};
}

}  // namespace signalbox::bench
