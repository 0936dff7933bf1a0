// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/closed_loop.hpp"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>

#include "tests/bench/measures.hpp"
#include "tests/bench/percentiles.hpp"

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kCallTime = std::chrono::seconds(20);

struct ThreadRun {
  std::vector<std::uint32_t> latencies_ns;
  grpc::Status failure;
};

void loop(std::size_t thread, Clock::time_point end, const OneCall& one_call, ThreadRun& run) {
  auto begin = Clock::now();
  while (begin < end) {
    run.failure = one_call(thread);
    if (!run.failure.ok()) return;
    const auto now = Clock::now();
    const auto latency = std::min<std::int64_t>((now - begin).count(), UINT32_MAX);
    run.latencies_ns.push_back(static_cast<std::uint32_t>(latency));
    begin = now;
  }
}

}  // namespace

grpc::Status place(Stub& stub, const std::string& cookie) {
  grpc::ClientContext context;
  if (!cookie.empty()) context.AddMetadata("cookie", cookie);
  context.set_deadline(std::chrono::system_clock::now() + kCallTime);
  demo::v1::PlaceRequest request;
  request.set_item("item");
  demo::v1::PlaceReply reply;
  return stub.Place(&context, request, &reply);
}

absl::StatusOr<ClosedLoopRun> run_closed_loop(std::size_t threads,
                                              std::chrono::duration<double> length,
                                              const OneCall& one_call) {
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(length);
  std::vector<ThreadRun> runs(threads);
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] { loop(i, end, one_call, runs[i]); });
  }
  for (std::thread& worker : workers)
    worker.join();

  ClosedLoopRun result;
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const ThreadRun& run : runs) {
    if (!run.failure.ok()) {
      return absl::UnavailableError(absl::StrCat("a call failed: ", run.failure.error_message()));
    }
    result.latencies_ns.insert(
        result.latencies_ns.end(), run.latencies_ns.begin(), run.latencies_ns.end());
  }
  return result;
}

Measured measure_closed_loop(const MeasureOptions& options, Side& side) {
  if (auto status = warm_up(*side.stub, options.endpoints, options.port); !status.ok()) {
    return status;
  }
  auto run = run_closed_loop(
      options.threads, options.length, [&side](std::size_t) { return place(*side.stub); });
  if (!run.ok()) return run.status();
  const auto calls = static_cast<double>(run->latencies_ns.size());
  return nlohmann::json{{"calls_per_second", calls / run->seconds},
                        {"p50_us", percentile(run->latencies_ns, 50) / 1e3},
                        {"p99_us", percentile(run->latencies_ns, 99) / 1e3}};
}

}  // namespace signalbox::bench
