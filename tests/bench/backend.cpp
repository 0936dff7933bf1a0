// SPDX-License-Identifier: Apache-2.0
//
// signalbox_bench_backend: a backend with a limited speed, which reports its load (ORCA, gRFC A51).
//
//   call ─▶ a line ─▶ the first of --at-once places that is free ─▶ --work-ms later: the answer
//                          └─▶ busy share, calls per second ─▶ StreamCoreMetrics, every --report-ms
//
// A place works asleep, so the machine's CPU is not the limit. With --weights N each stream gets
// one report: 100 calls per second, and one of N utilisations in turn, from just above 50 % to
// 100 %. So the endpoints have N different weights, although one process serves all endpoints.
//
// `signalbox backend` is not used, because it has no load reports. The process ends when its stdin
// ends. Exit status: 0 success, 1 failure, 2 wrong arguments.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <CLI/CLI.hpp>
#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "actors/io/grpc_bytes.hpp"
#include "tools/child_process.hpp"
#include "tools/proto/orders.grpc.pb.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOrcaMethod = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics";

struct Options {
  std::string listen = "127.0.0.1:0";
  std::size_t at_once = 256;
  double work_ms = 0;
  int report_ms = 100;
  std::size_t weights = 0;  ///< 0: all streams report the real load.
};

// --- the work -------------------------------------------------------------------

// The places that work. Calls wait in one line, and the first call of the line gets the next place
// that is free. Thread-safe.
class Places {
 public:
  Places(std::size_t count, Clock::duration work) : work_(work), places_(count) {}

  // Puts a call into the line. Returns the time at which the call will be done.
  Clock::time_point enter(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    Place& next = *std::ranges::min_element(places_, {}, &Place::free_at);
    next.free_at = std::max(next.free_at, now) + work_;
    next.booked += work_;
    return next.free_at;
  }

  // The work that all places have done until now. A place that has work works without a pause, so
  // what it has not done yet is the time until it is free.
  Clock::duration worked(Clock::time_point now) const {
    const std::lock_guard lock(mutex_);
    Clock::duration worked{};
    for (const Place& place : places_)
      worked += place.booked - std::max(place.free_at - now, Clock::duration::zero());
    return worked;
  }

 private:
  struct Place {
    Clock::time_point free_at;
    Clock::duration booked{};
  };

  const Clock::duration work_;
  mutable std::mutex mutex_;
  std::vector<Place> places_;
};

class Orders final : public signalbox::demo::v1::Orders::Service {
 public:
  explicit Orders(const Options& options)
      : places_(options.at_once,
                std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double, std::milli>(options.work_ms))) {}

  grpc::Status Place(grpc::ServerContext* /*context*/,
                     const signalbox::demo::v1::PlaceRequest* /*request*/,
                     signalbox::demo::v1::PlaceReply* /*reply*/) override {
    const auto now = Clock::now();
    std::this_thread::sleep_for(places_.enter(now) - now);
    ++done_;
    return grpc::Status::OK;
  }

  const Places& places() const { return places_; }

  std::uint64_t done() const { return done_; }

 private:
  Places places_;
  std::atomic<std::uint64_t> done_{0};
};

// --- the reports ----------------------------------------------------------------

std::string double_field(int field, double value) {
  std::string bytes(1 + sizeof(value), static_cast<char>(field << 3 | 1));
  std::memcpy(bytes.data() + 1, &value, sizeof(value));
  return bytes;
}

// The bytes of an OrcaLoadReport.
std::string report_of(double cpu_utilization, double calls_per_second) {
  return double_field(1, cpu_utilization) + double_field(6, calls_per_second);
}

// The service OpenRcaService. A stream gets a report when it is opened, and each later one.
class Orca final : public grpc::CallbackGenericService {
 public:
  explicit Orca(std::size_t weights) : weights_(weights) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (context->method() != kOrcaMethod)
      return grpc::CallbackGenericService::CreateReactor(context);
    return new Stream(*this);
  }

  // Sends the report on all streams; with --weights on none.
  void report(const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    report_ = bytes;
    if (weights_ > 0) return;
    for (Stream* stream : streams_)
      stream->send(bytes);
  }

 private:
  // The service's mutex guards the fields, and is held where an operation is started. gRPC never
  // calls back from within the function that starts an operation.
  class Stream final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Stream(Orca& orca) : orca_(orca) {
      const std::lock_guard lock(orca_.mutex_);
      orca_.streams_.push_back(this);
      StartRead(&request_);
    }

    // Precondition of this function and the next one: the mutex is held. A report that comes while
    // one is being written is dropped.
    void send(const std::string& bytes) {
      if (!is_asked_ || is_writing_ || is_over_ || bytes.empty()) return;
      is_writing_ = true;
      report_ = signalbox::actors::to_buffer(bytes);
      StartWrite(&report_);
    }

    void end() {
      if (std::exchange(is_over_, true) || is_writing_) return;
      Finish(grpc::Status::CANCELLED);
    }

    void OnReadDone(bool ok) override {
      const std::lock_guard lock(orca_.mutex_);
      if (!ok) return end();
      is_asked_ = true;
      send(orca_.first_report());
    }

    void OnWriteDone(bool /*ok*/) override {
      const std::lock_guard lock(orca_.mutex_);
      is_writing_ = false;
      if (is_over_) Finish(grpc::Status::CANCELLED);
    }

    void OnCancel() override {
      const std::lock_guard lock(orca_.mutex_);
      end();
    }

    void OnDone() override {
      {
        const std::lock_guard lock(orca_.mutex_);
        std::erase(orca_.streams_, this);
      }
      delete this;
    }

   private:
    Orca& orca_;
    bool is_asked_ = false;
    bool is_writing_ = false;
    bool is_over_ = false;
    grpc::ByteBuffer request_;
    grpc::ByteBuffer report_;
  };

  // Precondition: the mutex is held.
  std::string first_report() {
    if (weights_ == 0) return report_;
    const auto step = static_cast<double>(opened_++ % weights_ + 1);
    return report_of(0.5 + step / static_cast<double>(weights_) / 2, 100);
  }

  const std::size_t weights_;
  std::mutex mutex_;
  std::string report_;  // Empty: none yet.
  std::vector<Stream*> streams_;
  std::size_t opened_ = 0;
};

// Reports the load of each period until `stops` is set.
void report_load(const Options& options,
                 const Orders& orders,
                 Orca& orca,
                 std::atomic<bool>& stops) {
  using Seconds = std::chrono::duration<double>;
  const std::chrono::milliseconds period(options.report_ms);
  Clock::time_point before = Clock::now();
  Clock::duration worked = orders.places().worked(before);
  std::uint64_t done = orders.done();
  while (!stops) {
    std::this_thread::sleep_for(period);
    const Clock::time_point now = Clock::now();
    const double seconds = Seconds(now - std::exchange(before, now)).count();
    const Clock::duration worked_now = orders.places().worked(now);
    const std::uint64_t done_now = orders.done();
    const double busy = Seconds(worked_now - std::exchange(worked, worked_now)).count();
    const auto calls = static_cast<double>(done_now - std::exchange(done, done_now));
    orca.report(report_of(busy / seconds / static_cast<double>(options.at_once), calls / seconds));
  }
}

int serve(const Options& options) {
  signalbox::tools::die_with_parent(::getppid());
  Orders orders(options);
  Orca orca(options.weights);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&orders);
  builder.RegisterCallbackGenericService(&orca);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::cerr << "signalbox_bench_backend: cannot listen on " << options.listen << "\n";
    return 1;
  }
  std::atomic<bool> stops = false;
  std::thread reporter([&] { report_load(options, orders, orca, stops); });
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  std::cout << nlohmann::json{{"address", absl::StrCat(host, ":", port)}}.dump() << "\n"
            << std::flush;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  stops = true;
  reporter.join();
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app{"A backend of limited speed; ./run bench starts it.", "signalbox_bench_backend"};
  Options options;
  app.add_option("--listen", options.listen)->capture_default_str();
  app.add_option("--at-once", options.at_once)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--work-ms", options.work_ms)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--report-ms", options.report_ms)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--weights", options.weights)->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return serve(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "signalbox_bench_backend: " << error.what() << "\n";
    return 1;
  }
}
