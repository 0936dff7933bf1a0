// SPDX-License-Identifier: Apache-2.0
//
// More calls than the backends can serve: the circuit breaker refuses the excess.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <grpcpp/alarm.h>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

constexpr int kMost = 8;

/// Serves calls at two addresses. Each call takes a fixed time. Counts the calls in progress.
class CountingBackends {
 public:
  CountingBackends() {
    grpc::ServerBuilder builder;
    for (int& port : ports_)
      builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
  }

  std::vector<std::string> addresses() const {
    return {absl::StrCat("127.0.0.1:", ports_[0]), absl::StrCat("127.0.0.1:", ports_[1])};
  }

  int served() const { return service_.served; }

  int most() const { return service_.most; }

 private:
  struct Service final : demo::v1::Orders::CallbackService {
    grpc::ServerUnaryReactor* Place(grpc::CallbackServerContext* context,
                                    const demo::v1::PlaceRequest* /*request*/,
                                    demo::v1::PlaceReply* /*reply*/) override {
      const int now = ++inside;
      for (int known = most; known < now && !most.compare_exchange_weak(known, now);) {
      }
      auto* const reactor = context->DefaultReactor();
      auto* const alarm = new grpc::Alarm;
      alarm->Set(gpr_time_from_millis(3, GPR_TIMESPAN), [this, reactor, alarm](bool) {
        ++served;
        --inside;
        reactor->Finish(grpc::Status::OK);
        delete alarm;
      });
      return reactor;
    }

    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    std::atomic<int> served{0};
  };

  Service service_;
  std::array<int, 2> ports_{};
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

TEST_CASE("runtime: under overload backends have what they can take, and the rest fails at once",
          "[e2e][runtime][A32][A37-27][S15]") {
  CountingBackends backends;
  const auto plane = start_plane(
      listener_yaml("orders", "orders") + routes_yaml("orders", "limited") +
      cluster_yaml(
          "limited",
          "",
          absl::StrCat(", circuit_breakers: {thresholds: [{max_requests: ", kMost, "}]}")) +
      endpoints_yaml("limited", {backends.addresses()}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());

  // Bursts of four times the limit.
  constexpr int kBursts = 50;
  int served = 0;
  int refused = 0;
  std::vector<std::string> others;
  for (int burst = 0; burst < kBursts; ++burst) {
    Calls calls(channel);
    calls.start(4 * kMost, {});
    for (const Answer& answer : calls.finish()) {
      if (answer.ok()) {
        ++served;
      } else if (absl::StrContains(answer.status.error_message(), "circuit breaker") &&
                 answer.status.error_code() == grpc::StatusCode::UNAVAILABLE) {
        ++refused;
      } else {
        others.push_back(answer.text());
      }
    }
  }
  CHECK(others == std::vector<std::string>{});
  CHECK(served + refused == kBursts * 4 * kMost);
  // A burst begins when no call is in flight, and the breaker refuses a call only while kMost calls
  // are in flight. So each burst serves at least kMost calls.
  CHECK(served >= kBursts * kMost);
  CHECK(refused > 0);
  CHECK(backends.most() <= kMost);
  CHECK(backends.served() == served + 1);
  const std::vector<std::string> limited{"cluster=\"limited\""};
  CHECK(metric(*runtime, "signalbox_circuit_breaker_drops_total", limited) == refused);
  // After the bursts, the breaker lets calls through again.
  CHECK(eventually([&] { return call(channel).ok(); }));
}

}  // namespace signalbox::test
