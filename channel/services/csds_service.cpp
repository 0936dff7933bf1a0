// SPDX-License-Identifier: Apache-2.0
#include "channel/services/csds_service.hpp"

#include <mutex>
#include <utility>

#include "xds/client_status.hpp"

namespace signalbox::channel {
namespace {

using StatusRequest = envoy::service::status::v3::ClientStatusRequest;
using StatusResponse = envoy::service::status::v3::ClientStatusResponse;

absl::Status answer_request(const CsdsService::Dump& dump,
                            const StatusRequest& request,
                            StatusResponse& response) {
  if (auto status = xds::check(request); !status.ok()) return status;
  const auto known = dump();
  if (!known.ok()) return known.status();
  response = xds::client_status(*known, request);
  return absl::OkStatus();
}

// A stream in a loop: reads a request, makes the response, writes it. Only one of the three steps
// is under way at a time, so `request_` and `response_` need no lock.
class StatusStream final : public grpc::ServerBidiReactor<StatusRequest, StatusResponse>,
                           public std::enable_shared_from_this<StatusStream> {
 public:
  StatusStream(Worker& worker, const CsdsService::Dump& dump, StreamCount::Seat seat)
      : worker_(worker), dump_(dump), seat_(std::move(seat)) {}

  void start() {
    self_ = shared_from_this();
    if (seat_ == nullptr)
      end(too_busy());
    else
      read();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return end(grpc::Status::OK);
    if (!worker_.post([self = shared_from_this()] { self->respond(); })) end(too_busy());
  }

  void OnWriteDone(bool ok) override {
    if (ok)
      read();
    else
      end(grpc::Status::CANCELLED);
  }

  void OnCancel() override { end(grpc::Status::CANCELLED); }

  void OnDone() override {
    seat_.reset();
    self_.reset();  // This may be the last reference: no member is used after this line.
  }

 private:
  void read() {
    const std::lock_guard lock(mutex_);
    if (!has_ended_) StartRead(&request_);
  }

  // Runs on the thread of the worker, because dump_ blocks.
  void respond() {
    const absl::Status status = answer_request(dump_, request_, response_);
    if (!status.ok()) return end(to_grpc(status));
    const std::lock_guard lock(mutex_);
    if (!has_ended_) StartWrite(&response_);
  }

  void end(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_ended_, true)) return;
    Finish(status);
  }

  Worker& worker_;
  const CsdsService::Dump dump_;
  StreamCount::Seat seat_;
  StatusRequest request_;
  StatusResponse response_;
  std::mutex mutex_;
  bool has_ended_ = false;
  std::shared_ptr<StatusStream> self_;  // Keeps the stream until OnDone(): gRPC uses it until then.
};

}  // namespace

CsdsService::CsdsService(Worker& worker, Dump dump, LimitHit hit)
    : dump_(std::move(dump)),
      streams_(kMaxStreams, [hit = std::move(hit)] { hit(AdminLimit::kCsdsStreams); }) {
  const auto answer = [this](const StatusRequest& request, StatusResponse& response) {
    return answer_request(dump_, request, response);
  };
  add_unary<StatusRequest, StatusResponse>(
      "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus", worker, answer);
  add_stream<StatusRequest, StatusResponse>(
      "/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus",
      [this, &worker](grpc::CallbackServerContext* /*context*/) {
        const auto stream = std::make_shared<StatusStream>(worker, dump_, streams_.enter());
        stream->start();
        return stream.get();
      });
}

}  // namespace signalbox::channel
