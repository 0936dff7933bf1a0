// SPDX-License-Identifier: Apache-2.0
#include "channel/services/csds_service.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/sync_stream.h>

#include "signalbox/envoy/service/status/v3/csds.pb.h"
#include "tests/support/process.hpp"
#include "tests/support/service_peer.hpp"

namespace signalbox::channel {
namespace {

using envoy::service::status::v3::ClientStatusRequest;
using envoy::service::status::v3::ClientStatusResponse;
using grpc::internal::RpcMethod;

constexpr char kFetch[] = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus";
constexpr char kStream[] =
    "/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus";

/// A stream that is written and read by its test.
class StatusStream {
 public:
  explicit StatusStream(const std::shared_ptr<grpc::Channel>& channel)
      : method_(kStream, RpcMethod::BIDI_STREAMING, channel) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream_.reset(
        grpc::internal::ClientReaderWriterFactory<ClientStatusRequest,
                                                  ClientStatusResponse>::Create(channel.get(),
                                                                                method_,
                                                                                &context_));
  }

  ~StatusStream() {
    if (is_finished_) return;
    context_.TryCancel();
    finish();
  }

  StatusStream(const StatusStream&) = delete;
  StatusStream& operator=(const StatusStream&) = delete;

  bool is_answered() {
    ClientStatusResponse response;
    stream_->Write(ClientStatusRequest());
    return stream_->Read(&response);
  }

  grpc::Status finish() {
    is_finished_ = true;
    return stream_->Finish();
  }

 private:
  const RpcMethod method_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<ClientStatusRequest, ClientStatusResponse>> stream_;
  bool is_finished_ = false;
};

/// A call of FetchClientStatus that does not block its test.
struct Fetch {
  explicit Fetch(const std::shared_ptr<grpc::Channel>& channel)
      : method(kFetch, RpcMethod::NORMAL_RPC, channel) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    grpc::internal::CallbackUnaryCall(
        channel.get(), method, &context, &request, &response, [this](const grpc::Status& status) {
          ended.set_value(status.error_code());
        });
  }

  const RpcMethod method;
  grpc::ClientContext context;
  ClientStatusRequest request;
  ClientStatusResponse response;
  std::promise<grpc::StatusCode> ended;
};

}  // namespace

TEST_CASE("csds service: a hundred streams are open at a time, and the next one is refused",
          "[channel][services][A40]") {
  std::vector<AdminLimit> hits;
  const auto count = [&](AdminLimit limit) { hits.push_back(limit); };
  Worker worker(count);
  CsdsService service(worker, [] { return ResourceDump(); }, count);
  const test::ServicePeer peer(service);
  std::vector<std::unique_ptr<StatusStream>> open;
  for (int i = 0; i < 100; ++i) {
    open.push_back(std::make_unique<StatusStream>(peer.channel()));
    REQUIRE(open.back()->is_answered());
  }
  StatusStream one_more(peer.channel());
  CHECK_FALSE(one_more.is_answered());
  CHECK(one_more.finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(hits == std::vector{AdminLimit::kCsdsStreams});

  // A stream that ends makes room for another, as soon as the server has noticed.
  open.pop_back();
  CHECK(test::eventually([&] { return StatusStream(peer.channel()).is_answered(); }));
}

TEST_CASE("csds service: 64 requests wait for the services' thread, and the next one is refused",
          "[channel][services]") {
  std::promise<void> begun;
  std::promise<void> gate;
  std::vector<AdminLimit> hits;
  const auto count = [&](AdminLimit limit) { hits.push_back(limit); };
  Worker worker(count);
  bool is_first = true;  // Only the worker reads and writes it.
  const auto dump = [&, open = gate.get_future().share()] {
    if (std::exchange(is_first, false)) begun.set_value();
    open.wait();
    return ResourceDump();
  };
  CsdsService service(worker, dump, count);
  std::vector<std::unique_ptr<Fetch>> fetches;
  const test::ServicePeer peer(service);
  fetches.push_back(std::make_unique<Fetch>(peer.channel()));
  begun.get_future().wait();
  for (int i = 0; i < 65; ++i)
    fetches.push_back(std::make_unique<Fetch>(peer.channel()));
  std::vector<std::future<grpc::StatusCode>> ends;
  for (const auto& fetch : fetches)
    ends.push_back(fetch->ended.get_future());
  const auto has_ended = [](const std::future<grpc::StatusCode>& end) {
    return end.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  CHECK(test::eventually([&] { return std::ranges::any_of(ends, has_ended); }));
  gate.set_value();
  int refused = 0;
  for (auto& end : ends) {
    const grpc::StatusCode code = end.get();
    if (code == grpc::StatusCode::OK) continue;
    CHECK(code == grpc::StatusCode::RESOURCE_EXHAUSTED);
    ++refused;
  }
  CHECK(refused == 1);
  CHECK(hits == std::vector{AdminLimit::kGrpcRequests});
}

}  // namespace signalbox::channel
