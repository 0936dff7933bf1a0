// SPDX-License-Identifier: Apache-2.0
#include "channel/services/health_service.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <grpcpp/support/sync_stream.h>

#include "channel/services/proto/health.pb.h"
#include "tests/support/process.hpp"
#include "tests/support/service_peer.hpp"

namespace signalbox::channel {
namespace {

using Catch::Matchers::Contains;
using grpc::internal::RpcMethod;
using health::HealthCheckRequest;
using health::HealthCheckResponse;

using Readiness = std::map<std::string, bool>;

std::optional<bool> ready_of(const Readiness& targets, const std::string& name) {
  if (name.empty()) return true;
  const auto found = targets.find(name);
  return found == targets.end() ? std::nullopt : std::optional(found->second);
}

/// A call of Health/Watch. It reads a message only when the test calls is_admitted().
class HealthWatch {
 public:
  explicit HealthWatch(const std::shared_ptr<grpc::Channel>& channel)
      : method_("/grpc.health.v1.Health/Watch", RpcMethod::SERVER_STREAMING, channel) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    reader_.reset(grpc::internal::ClientReaderFactory<HealthCheckResponse>::Create(
        channel.get(), method_, &context_, HealthCheckRequest()));
  }

  ~HealthWatch() {
    if (!is_finished_) end();
  }

  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

  /// Whether the server has sent a status, and so has admitted the Watch.
  bool is_admitted() {
    HealthCheckResponse response;
    return reader_->Read(&response);
  }

  grpc::Status finish() {
    is_finished_ = true;
    return reader_->Finish();
  }

  void end() {
    context_.TryCancel();
    finish();
  }

 private:
  const RpcMethod method_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
  bool is_finished_ = false;
};

}  // namespace

TEST_CASE("health service: List has every target, and the service \"\" for all of them",
          "[channel][services][A90]") {
  Readiness targets;
  std::vector<AdminLimit> hits;
  HealthService service([&](const std::string& name) { return ready_of(targets, name); },
                        [&] { return targets; },
                        [&](AdminLimit limit) { hits.push_back(limit); });
  const test::ServicePeer peer(service);
  const auto list = [&](health::HealthListResponse& response) {
    return peer.call("/grpc.health.v1.Health/List", health::HealthListRequest(), response);
  };

  health::HealthListResponse none;
  REQUIRE(list(none).ok());
  REQUIRE(none.statuses_size() == 1);
  CHECK(none.statuses().at("").status() == HealthCheckResponse::SERVING);

  targets = {{"xds:///orders", true}, {"xds:///carts", false}};
  health::HealthListResponse two;
  REQUIRE(list(two).ok());
  REQUIRE(two.statuses_size() == 3);
  CHECK(two.statuses().at("xds:///orders").status() == HealthCheckResponse::SERVING);
  CHECK(two.statuses().at("xds:///carts").status() == HealthCheckResponse::NOT_SERVING);
  CHECK(two.statuses().at("").status() == HealthCheckResponse::NOT_SERVING);

  targets = {};
  for (int i = 0; i < 9'999; ++i)
    targets.emplace(absl::StrCat("xds:///", i), true);
  health::HealthListResponse most;
  REQUIRE(list(most).ok());
  CHECK(most.statuses_size() == 10'000);
  CHECK(most.statuses().at("").status() == HealthCheckResponse::SERVING);
  CHECK(hits.empty());

  targets.emplace("xds:///more", true);
  health::HealthListResponse more;
  const grpc::Status refused = list(more);
  CHECK(refused.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_THAT(refused.error_message(), Contains("there are 10001 services, more than 10000"));
  CHECK(hits == std::vector{AdminLimit::kHealthServices});
}

TEST_CASE("health service: a thousand Watches are open at a time, and the next one is refused",
          "[channel][services]") {
  std::vector<AdminLimit> hits;
  HealthService service([](const std::string&) { return std::optional(true); },
                        [] { return Readiness(); },
                        [&](AdminLimit limit) { hits.push_back(limit); });
  const test::ServicePeer peer(service);
  std::vector<std::unique_ptr<HealthWatch>> open;
  for (int i = 0; i < 1'000; ++i) {
    open.push_back(std::make_unique<HealthWatch>(peer.channel()));
    REQUIRE(open.back()->is_admitted());
  }
  HealthWatch one_more(peer.channel());
  CHECK_FALSE(one_more.is_admitted());
  const grpc::Status refused = one_more.finish();
  CHECK(refused.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_THAT(refused.error_message(), Contains("too many requests or streams"));
  CHECK(hits == std::vector{AdminLimit::kHealthWatches});

  // A Watch that ends makes room for another, as soon as the server has noticed.
  open.pop_back();
  CHECK(test::eventually([&] { return HealthWatch(peer.channel()).is_admitted(); }));
}

}  // namespace signalbox::channel
