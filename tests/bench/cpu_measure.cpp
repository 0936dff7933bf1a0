// SPDX-License-Identifier: Apache-2.0
//
// Measures the CPU time of the client's process per call, at a rate of calls that is the same for
// both sides. All threads count, but not the time that the load spends waiting until calls are due.
#include <atomic>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

#include "tests/bench/measures.hpp"
#include "tests/bench/open_loop.hpp"
#include "tests/bench/percentiles.hpp"
#include "tests/bench/process_usage.hpp"

namespace signalbox::bench {
namespace {

constexpr auto kSettleTime = std::chrono::milliseconds(300);

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

// The failed calls, by status code: their number, and the error text of the first. Only the thread
// that takes the load's answers counts; the counts are read after the load has ended. So there is
// no lock.
class Failures {
 public:
  void count(const AnsweredCall& call) {
    Kind& kind = by_code_[call.code];
    if (kind.calls++ == 0) kind.first_error = call.error;
  }

  absl::Status status() const {
    if (by_code_.empty()) return absl::OkStatus();
    std::string text = "calls failed:";
    const char* separator = " ";
    for (const auto& [code, kind] : by_code_) {
      absl::StrAppend(&text,
                      separator,
                      kind.calls,
                      " with code ",
                      static_cast<int>(code),
                      " (",
                      kind.first_error,
                      ")");
      separator = ", ";
    }
    return absl::UnavailableError(text);
  }

 private:
  struct Kind {
    std::uint64_t calls = 0;
    std::string first_error;
  };

  std::map<grpc::StatusCode, Kind> by_code_;
};

}  // namespace

Measured measure_cpu(const MeasureOptions& options, Side& side) {
  if (auto status = warm_up(*side.stub, options.endpoints, options.port); !status.ok()) {
    return status;
  }
  std::atomic<bool> is_measuring = false;
  Failures failures;
  std::atomic<std::uint64_t> answered = 0;
  // Only the thread that takes the load's answers adds latencies, so there is no lock.
  std::vector<std::int64_t> latencies_ns;
  double cpu = 0;
  double waiting = 0;
  std::uint64_t calls = 0;
  double idle = 0;
  {
    const OpenLoop load(
        *side.stub, {.rate = options.rate, .work = {}}, [&](const AnsweredCall& call) {
          if (!call.ok) failures.count(call);
          if (!is_measuring) return;
          ++answered;
          latencies_ns.push_back((call.ended - call.due).count());
        });
    std::this_thread::sleep_for(kSettleTime);
    const MachineTime machine_before = machine_time();
    const double before = cpu_seconds();
    const double waiting_before = load.waiting_cpu_seconds();
    is_measuring = true;
    std::this_thread::sleep_for(options.length);
    is_measuring = false;
    waiting = load.waiting_cpu_seconds() - waiting_before;
    cpu = cpu_seconds() - before - waiting;
    calls = answered;
    const MachineTime machine = machine_time();
    idle = (machine.idle - machine_before.idle) / (machine.total - machine_before.total);
  }
  if (auto status = failures.status(); !status.ok()) return status;
  if (calls == 0) return absl::UnavailableError("no call was answered");
  return nlohmann::json{{"cpu_us_per_call", cpu * 1e6 / static_cast<double>(calls)},
                        {"waiting_us", waiting * 1e6 / static_cast<double>(calls)},
                        {"calls", calls},
                        {"idle", idle},
                        {"p50_us", percentile(latencies_ns, 50) / 1e3},
                        {"p99_us", percentile(latencies_ns, 99) / 1e3}};
}

}  // namespace signalbox::bench
