// SPDX-License-Identifier: Apache-2.0
//
// Measures the CPU time of the client's process per call, at a rate of calls that is the same for
// both sides. All threads count, but not the load engine's own work.
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

#include "tests/bench/measures.hpp"
#include "tests/bench/process_usage.hpp"
#include "tests/bench/rate_load.hpp"
#include "tools/load/histogram.hpp"

namespace signalbox::bench {
namespace {

constexpr auto kCpuSettleTime = std::chrono::milliseconds(300);

// The CPU time of the whole machine since its start, in the kernel's ticks.
struct MachineTime {
  double idle = 0;
  double total = 0;
};

// Reads the first line of /proc/stat: "cpu  user nice system idle iowait irq softirq steal …".
MachineTime machine_time() {
  std::ifstream file("/proc/stat");
  std::string name;
  file >> name;
  MachineTime time;
  double ticks = 0;
  for (int column = 0; column < 8 && file >> ticks; ++column) {
    time.total += ticks;
    if (column == 3 || column == 4) time.idle += ticks;
  }
  return time;
}

// The failed calls, by status code: their number, and the error text of the first.
class Failures {
 public:
  void count(const tools::NamedCall& call) {
    Kind& kind = by_code_[call.code];
    if (kind.calls++ == 0) kind.first_error = call.message;
  }

  absl::Status status() const {
    if (by_code_.empty()) return absl::OkStatus();
    std::string text = "calls failed:";
    const char* separator = " ";
    for (const auto& [code, kind] : by_code_) {
      absl::StrAppend(
          &text, separator, kind.calls, " with code ", code, " (", kind.first_error, ")");
      separator = ", ";
    }
    return absl::UnavailableError(text);
  }

 private:
  struct Kind {
    std::uint64_t calls = 0;
    std::string first_error;
  };

  std::map<int, Kind> by_code_;
};

double engine_seconds(const tools::EngineRun& load) {
  return std::chrono::duration<double>(load.own_cpu()).count();
}

}  // namespace

Measured measure_cpu(const MeasureOptions& options, Side& side) {
  if (auto status = warm_up(*side.stub, options.endpoints, options.port); !status.ok()) {
    return status;
  }
  Window window;
  // Only the load's thread uses these two until the load has ended.
  Failures failures;
  tools::LatencyHistogram latency;
  // Poisson, because evenly spaced calls could keep in step with the kernel's count of idle time.
  auto load =
      start_load(side,
                 {.rate = options.rate, .arrivals = tools::Arrivals::kPoisson},
                 [&](const tools::NamedCall& call) {
                   if (!call.ok) failures.count(call);
                   if (window.has(call.ended))
                     latency.record(static_cast<std::uint64_t>((call.ended - call.due).count()));
                 });
  std::this_thread::sleep_for(kCpuSettleTime);
  const MachineTime machine_before = machine_time();
  const double engine_before = engine_seconds(*load);
  const double before = cpu_seconds();
  window.open();
  std::this_thread::sleep_for(options.length);
  window.close();
  const double engine = engine_seconds(*load) - engine_before;
  const double cpu = cpu_seconds() - before - engine;
  const MachineTime machine = machine_time();
  const double idle = (machine.idle - machine_before.idle) / (machine.total - machine_before.total);
  load.reset();
  if (auto status = failures.status(); !status.ok()) return status;
  const auto calls = static_cast<double>(latency.count());
  if (calls == 0) return absl::UnavailableError("no call was answered");
  return nlohmann::json{{"cpu_us_per_call", cpu * 1e6 / calls},
                        {"engine_us", engine * 1e6 / calls},
                        {"calls", latency.count()},
                        {"idle", idle},
                        {"p50_us", static_cast<double>(latency.percentile(50)) / 1e3},
                        {"p99_us", static_cast<double>(latency.percentile(99)) / 1e3}};
}

}  // namespace signalbox::bench
