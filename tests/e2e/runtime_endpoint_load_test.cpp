// SPDX-License-Identifier: Apache-2.0
//
// The load that endpoints report (gRFC A51), and weighted_round_robin by it (A58), through drop-in
// channels. Some backends have the service OpenRcaService, and some do not.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "actors/io/grpc_bytes.hpp"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

const char kOrcaMethod[] = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics";

// --- the messages, as bytes -----------------------------------------------------

std::string fixed64(int field, double value) {
  std::string bytes(1 + sizeof(value), static_cast<char>(field << 3 | 1));
  std::memcpy(bytes.data() + 1, &value, sizeof(value));
  return bytes;
}

// An OrcaLoadReport: 100 queries per second at this cpu_utilization.
std::string report_of(double cpu) {
  return fixed64(1, cpu) + fixed64(6, 100);
}

// An OrcaLoadReportRequest with a report_interval of whole seconds, at most 127.
std::string request_for(int seconds) {
  return {0x0a, 0x02, 0x08, static_cast<char>(seconds)};
}

// --- backends -------------------------------------------------------------------

/// Reports its load on streams (kReporting only), and adds its first report to the trailers of its
/// calls, under two names.
class Backend {
 public:
  enum class Kind { kReporting, kWithoutService };

  explicit Backend(double cpu, Kind kind = Kind::kReporting) : orca_(report_of(cpu)) {
    orders_.report = report_of(cpu);
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&orders_);
    if (kind == Kind::kReporting) builder.RegisterCallbackGenericService(&orca_);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    address_ = absl::StrCat("127.0.0.1:", port);
  }

  ~Backend() { server_->Shutdown(std::chrono::system_clock::now()); }

  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const std::string& address() const { return address_; }

  std::uint64_t calls() const { return orders_.calls; }

  /// The requests of all streams so far.
  std::vector<std::string> requests() const { return orca_.requests(); }

  /// The streams that are open.
  std::size_t open() const { return orca_.open(); }

  /// Reports this load on all open streams. A later stream begins with the newest report.
  void report(double cpu) { orca_.report(report_of(cpu)); }

  /// Sends these bytes as a report.
  void send(const std::string& bytes) { orca_.report(bytes); }

  void end_streams() { orca_.end(grpc::Status(grpc::StatusCode::UNAVAILABLE, "restart")); }

 private:
  struct Orders final : demo::v1::Orders::Service {
    grpc::Status Place(grpc::ServerContext* context,
                       const demo::v1::PlaceRequest* /*request*/,
                       demo::v1::PlaceReply* /*reply*/) override {
      ++calls;
      context->AddTrailingMetadata("endpoint-load-metrics-bin", report);
      context->AddTrailingMetadata("other-load-bin", report);
      return grpc::Status::OK;
    }

    std::string report;
    std::atomic<std::uint64_t> calls{0};
  };

  class Orca final : public grpc::CallbackGenericService {
   public:
    explicit Orca(std::string report) : report_(std::move(report)) {}

    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
      if (context->method() != kOrcaMethod)
        return grpc::CallbackGenericService::CreateReactor(context);
      return new Stream(*this);
    }

    std::vector<std::string> requests() const {
      const std::lock_guard lock(mutex_);
      return requests_;
    }

    std::size_t open() const {
      const std::lock_guard lock(mutex_);
      return streams_.size();
    }

    void report(std::string bytes) {
      const std::lock_guard lock(mutex_);
      report_ = std::move(bytes);
      for (Stream* stream : streams_)
        stream->send(report_);
    }

    void end(const grpc::Status& status) {
      const std::lock_guard lock(mutex_);
      for (Stream* stream : streams_)
        stream->end(status);
    }

   private:
    // The service's mutex guards the fields, and is held where an operation is started.
    class Stream final : public grpc::ServerGenericBidiReactor {
     public:
      explicit Stream(Orca& orca) : orca_(orca) {
        const std::lock_guard lock(orca_.mutex_);
        orca_.streams_.push_back(this);
        StartRead(&request_);
      }

      // Precondition of this function and the next: the mutex is held.
      void send(const std::string& bytes) {
        if (!is_asked_ || end_.has_value()) return;
        outgoing_.push_back(actors::to_buffer(bytes));
        if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
      }

      void end(const grpc::Status& status) {
        if (std::exchange(end_, status).has_value()) return;
        if (outgoing_.empty()) Finish(*end_);
      }

      void OnReadDone(bool ok) override {
        const std::lock_guard lock(orca_.mutex_);
        if (!ok) return end(grpc::Status::CANCELLED);
        orca_.requests_.push_back(actors::to_bytes(request_));
        is_asked_ = true;
        send(orca_.report_);
      }

      void OnWriteDone(bool ok) override {
        const std::lock_guard lock(orca_.mutex_);
        outgoing_.pop_front();
        if (!ok) outgoing_.clear();
        if (!outgoing_.empty()) return StartWrite(&outgoing_.front());
        if (end_.has_value()) Finish(*end_);
      }

      void OnCancel() override {
        const std::lock_guard lock(orca_.mutex_);
        end(grpc::Status::CANCELLED);
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
      std::optional<grpc::Status> end_;
      grpc::ByteBuffer request_;
      std::deque<grpc::ByteBuffer> outgoing_;  // The first of them is being written.
    };

    mutable std::mutex mutex_;
    std::string report_;
    std::vector<Stream*> streams_;
    std::vector<std::string> requests_;
  };

  Orders orders_;
  Orca orca_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// --- the world ------------------------------------------------------------------

// A cluster with weighted_round_robin. A weight counts from the next update of the weights on (each
// 0.1 s), without a blackout.
std::string weighted_yaml(const std::string& name, const std::string& oob) {
  return cluster_yaml(
      name,
      "eds",
      absl::StrCat(", load_balancing_policy: {policies: [{typed_extension_config: {name: wrr, "
                   "typed_config: {\"@type\": type.googleapis.com/envoy.extensions."
                   "load_balancing_policies.client_side_weighted_round_robin.v3."
                   "ClientSideWeightedRoundRobin, blackout_period: 0s, "
                   "weight_update_period: 0.1s",
                   oob,
                   "}}}]}"));
}

std::string streamed(int seconds) {
  return absl::StrCat(", enable_oob_load_report: true, oob_reporting_period: ", seconds, "s");
}

struct World {
  explicit World(const std::string& clusters, MetricsDetail detail = MetricsDetail::kCluster)
      : plane(start_plane(clusters)) {
    RuntimeOptions options = options_for(plane->address());
    options.metrics_detail = detail;
    options.log_line = [this](const LogLine& line) {
      const std::lock_guard lock(mutex);
      if (line.kind == LogKind::kEndpointLoad) lines.push_back(line.text);
    };
    runtime = start_runtime(std::move(options));
    channel = runtime->channel("xds:///orders");
  }

  std::vector<std::string> told() const {
    const std::lock_guard lock(mutex);
    return lines;
  }

  double counted(const std::string& name, const std::string& label) const {
    return metric(*runtime, name, {label}).value_or(0);
  }

  mutable std::mutex mutex;
  std::vector<std::string> lines;
  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<Runtime> runtime;
  std::shared_ptr<grpc::ChannelInterface> channel;
};

std::string orders_yaml(const std::vector<std::string>& addresses, const std::string& oob) {
  return listener_yaml("orders", "orders") + routes_yaml("orders", "c") + weighted_yaml("c", oob) +
         endpoints_yaml("eds", {addresses});
}

// Makes 100 calls, which must succeed. Returns how many of them went to `backend`.
std::uint64_t share(const World& world, const Backend& backend) {
  const std::uint64_t before = backend.calls();
  for (int i = 0; i < 100; ++i)
    CHECK(call(world.channel).ok());
  return backend.calls() - before;
}

// Waits until both backends get calls, and most calls go to `idle`. The first calls may go to one
// backend alone, because the other is not connected yet.
bool comes_to_lead(const World& world, const Backend& idle, const Backend& busy) {
  const std::uint64_t before = busy.calls();
  return eventually([&] {
           CHECK(call(world.channel).ok());
           return busy.calls() > before;
         }) &&
         eventually([&] { return share(world, idle) >= 85; });
}

std::uint64_t share_of_callbacks(const World& world, const Backend& backend) {
  const std::uint64_t before = backend.calls();
  Calls calls(world.channel);
  calls.start(100, {});
  for (const Answer& answer : calls.finish())
    CHECK(answer.ok());
  return backend.calls() - before;
}

const char kStreams[] = "signalbox_endpoint_load_streams_total";
const char kReports[] = "signalbox_streamed_load_reports_total";

bool has_trailer(const grpc::ClientContext& context, const std::string& name) {
  return context.GetServerTrailingMetadata().contains(name);
}

}  // namespace

// --- what gRPC shows of the report of a call --------------------------------------

TEST_CASE("endpoint load: gRPC does not show a call the report in its trailers",
          "[e2e][runtime][A51]") {
  Backend backend(0.5);
  World world(orders_yaml({backend.address()}, ""));
  const std::string name = GENERATE(as<std::string>(), "drop-in", "gRPC's own");
  CAPTURE(name);
  const std::shared_ptr<grpc::ChannelInterface> channel =
      name == "drop-in"
          ? world.channel
          : grpc::CreateChannel(backend.address(), grpc::InsecureChannelCredentials());
  Stub stub(channel);
  const demo::v1::PlaceRequest request;
  {
    grpc::ClientContext context;
    demo::v1::PlaceReply reply;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    REQUIRE(stub.Place(&context, request, &reply).ok());
    CHECK(has_trailer(context, "other-load-bin"));
    CHECK_FALSE(has_trailer(context, "endpoint-load-metrics-bin"));
  }
  grpc::ClientContext context;
  demo::v1::PlaceReply reply;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  std::promise<bool> ended;
  stub.async()->Place(&context, &request, &reply, [&](const grpc::Status& status) {
    ended.set_value(status.ok());
  });
  REQUIRE(ended.get_future().get());
  CHECK(has_trailer(context, "other-load-bin"));
  CHECK_FALSE(has_trailer(context, "endpoint-load-metrics-bin"));
}

// --- streams ----------------------------------------------------------------------

TEST_CASE("endpoint load: calls follow the weights from the endpoints' streams",
          "[e2e][runtime][A58][A51][A78-5]") {
  Backend idle(0.1);
  Backend busy(0.9);
  const auto [detail, locality] = GENERATE(table<MetricsDetail, std::string>(
      {{MetricsDetail::kCluster, ""}, {MetricsDetail::kEndpoint, ",locality=\"{region=\\\""}}));
  World world(orders_yaml({idle.address(), busy.address()}, streamed(3)), detail);
  CHECK(comes_to_lead(world, idle, busy));
  CHECK(share_of_callbacks(world, idle) >= 80);
  CHECK(idle.requests() == std::vector{request_for(3)});
  CHECK(busy.requests() == std::vector{request_for(3)});
  CHECK(world.counted(kReports, "result=\"taken\"") == 2);
  // Each time that the weights are taken is counted, with target and cluster (A78, A89). Before the
  // first reports there was a fallback.
  const std::string weights = "signalbox_wrr_endpoint_weights_count";
  const std::string labels = "{target=\"xds:///orders\",cluster=\"c\"" + locality;
  CHECK(world.counted(weights, labels) >= 2);
  CHECK(world.counted(weights, "cluster=\"\"") == 0);
  if (locality.empty()) CHECK(world.counted(weights, "locality=") == 0);
  CHECK(world.counted("signalbox_wrr_rr_fallbacks_total", labels) >= 1);

  // The endpoints change places.
  idle.report(0.9);
  busy.report(0.1);
  CHECK(comes_to_lead(world, busy, idle));
  CHECK(idle.open() == 1);
  CHECK(busy.open() == 1);
  CHECK(world.told().empty());
}

TEST_CASE("endpoint load: an endpoint without the service gets calls, and is not asked again",
          "[e2e][runtime][A58][A51]") {
  Backend one(0.1, Backend::Kind::kWithoutService);
  Backend other(0.9, Backend::Kind::kWithoutService);
  World world(orders_yaml({one.address(), other.address()}, streamed(3)));
  REQUIRE(eventually([&] {
    CHECK(call(world.channel).ok());
    return world.counted(kStreams, "end=\"unimplemented\"") >= 2;
  }));
  const auto is_even = [&] {
    const std::uint64_t calls = share(world, one);
    return calls >= 45 && calls <= 55;
  };
  CHECK(eventually(is_even));
  // The new period replaces the watch of each endpoint. The connections stay, and each is known to
  // lack the service, so no new stream is opened.
  const auto generation = metric(*world.runtime, "signalbox_config_generation");
  world.plane->update(resources(weighted_yaml("c", streamed(2))));
  REQUIRE(eventually(
      [&] { return metric(*world.runtime, "signalbox_config_generation") > generation; }));
  CHECK(eventually(is_even));
  CHECK(world.counted(kStreams, "end=\"unimplemented\"") == 2);
  const auto told = world.told();
  REQUIRE(told.size() == 2);
  for (const Backend* backend : {&one, &other}) {
    CHECK(std::ranges::count_if(told, [&](const std::string& line) {
            return absl::StrContains(line, backend->address());
          }) == 1);
  }
}

TEST_CASE("endpoint load: clusters that share a connection share its stream, at the least period",
          "[e2e][runtime][A58][A51]") {
  Backend backend(0.5);
  World world(orders_yaml({backend.address()}, streamed(7)) + listener_yaml("more", "more") +
              routes_yaml("more", "d") + weighted_yaml("d", streamed(2)));
  REQUIRE(call(world.channel).ok());
  REQUIRE(eventually([&] { return backend.requests() == std::vector{request_for(7)}; }));
  {
    const auto more = world.runtime->channel("xds:///more");
    REQUIRE(call(more).ok());
    REQUIRE(eventually(
        [&] { return backend.requests() == std::vector{request_for(7), request_for(2)}; }));
    CHECK(eventually([&] { return backend.open() == 1; }));
  }
  CHECK(eventually([&] {
    return backend.requests() == std::vector{request_for(7), request_for(2), request_for(7)};
  }));
  CHECK(eventually([&] { return backend.open() == 1; }));
}

TEST_CASE("endpoint load: a stream that ends is opened again, and ends when it is not wanted",
          "[e2e][runtime][A58][A51]") {
  Backend backend(0.5);
  World world(orders_yaml({backend.address()}, streamed(3)));
  REQUIRE(call(world.channel).ok());
  REQUIRE(eventually([&] { return world.counted(kReports, "result=\"taken\"") >= 1; }));
  backend.end_streams();
  REQUIRE(eventually([&] { return backend.requests().size() == 2 && backend.open() == 1; }));
  CHECK(world.counted(kStreams, "end=\"ended\"") == 1);
  world.plane->update(resources(weighted_yaml("c", streamed(4))));
  REQUIRE(eventually([&] { return backend.requests().size() == 3 && backend.open() == 1; }));
  CHECK(backend.requests().back() == request_for(4));
  world.plane->update(resources(weighted_yaml("c", "")));
  CHECK(eventually([&] { return backend.open() == 0; }));
  CHECK(call(world.channel).ok());
  CHECK(world.counted(kStreams, "end=\"ended\"") == 1);
}

TEST_CASE("endpoint load: a lost endpoint's stream ends, and a runtime ends with open streams",
          "[e2e][runtime][A58][A51]") {
  auto first = std::make_unique<Backend>(0.5);
  Backend second(0.5);
  {
    World world(orders_yaml({first->address(), second.address()}, streamed(3)));
    REQUIRE(call(world.channel).ok());
    REQUIRE(eventually([&] { return first->open() == 1 && second.open() == 1; }));
    // `second` leaves the configuration.
    world.plane->update(resources(endpoints_yaml("eds", {{first->address()}})));
    REQUIRE(eventually([&] { return second.open() == 0; }));
    // `second` comes back, and `first` dies.
    world.plane->update(resources(endpoints_yaml("eds", {{first->address(), second.address()}})));
    REQUIRE(eventually([&] { return second.open() == 1; }));
    first.reset();
    CHECK(eventually([&] { return call(world.channel).ok(); }));
    CHECK(second.open() == 1);
  }
  CHECK(eventually([&] { return second.open() == 0; }));
}

TEST_CASE("endpoint load: hostile reports are refused, and calls go on", "[e2e][runtime][A51]") {
  Backend hostile(0.1);
  Backend other(0.9);
  World world(orders_yaml({hostile.address(), other.address()}, streamed(3)));
  REQUIRE(comes_to_lead(world, hostile, other));
  hostile.send(std::string(5'000, '\0'));
  hostile.send("\x0b");
  hostile.send(fixed64(1, -1) + fixed64(6, 100));
  CHECK(eventually([&] { return world.counted(kReports, "result=\"refused\"") >= 2; }));
  CHECK(eventually([&] { return world.counted(kReports, "result=\"partly\"") >= 1; }));
  CHECK(hostile.open() == 1);
  CHECK(share(world, hostile) >= 80);
}

}  // namespace signalbox::test
