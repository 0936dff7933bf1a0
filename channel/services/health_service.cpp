// SPDX-License-Identifier: Apache-2.0
#include "channel/services/health_service.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "channel/services/proto/health.pb.h"

namespace signalbox::channel {
namespace {

using Request = health::HealthCheckRequest;
using Response = health::HealthCheckResponse;
using List = health::HealthListResponse;

Response::ServingStatus status_of(const std::optional<bool>& ready) {
  if (!ready) return Response::SERVICE_UNKNOWN;
  return *ready ? Response::SERVING : Response::NOT_SERVING;
}

grpc::Status check(const Request& request) {
  if (request.service().size() <= HealthService::kMaxName) return grpc::Status::OK;
  return {grpc::StatusCode::INVALID_ARGUMENT,
          absl::StrCat("service: expected at most ",
                       HealthService::kMaxName,
                       " bytes, got ",
                       request.service().size())};
}

grpc::Status list(const std::map<std::string, bool>& readiness, List& response) {
  const std::size_t services = readiness.size() + 1;  // The service "" is one more.
  if (services > HealthService::kMaxServices) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            absl::StrCat("there are ",
                         services,
                         " services, more than ",
                         HealthService::kMaxServices,
                         ": Check or Watch a service")};
  }
  auto& statuses = *response.mutable_statuses();
  const bool all = std::ranges::all_of(readiness, [](const auto& target) { return target.second; });
  statuses[""].set_status(status_of(all));
  for (const auto& [target, is_ready] : readiness)
    statuses[target].set_status(status_of(is_ready));
  return grpc::Status::OK;
}

}  // namespace

class HealthService::Watch final : public grpc::ServerWriteReactor<Response>,
                                   public std::enable_shared_from_this<Watch> {
 public:
  Watch(std::string service, StreamCount::Seat seat)
      : service_(std::move(service)), seat_(std::move(seat)) {}

  /// Makes the watch own itself until OnDone(), because gRPC uses it until then.
  void start() { self_ = shared_from_this(); }

  const std::string& service() const { return service_; }

  bool has_seat() const { return seat_ != nullptr; }

  /// Sends the status to the client. Does nothing if the client got this status last, or while an
  /// earlier message is being written: follow() calls again kPeriod later.
  void tell(Response::ServingStatus status) {
    const std::lock_guard lock(mutex_);
    if (has_ended_ || is_writing_ || told_ == status) return;
    told_ = status;
    response_.set_status(status);
    is_writing_ = true;
    StartWrite(&response_);
  }

  void end(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_ended_, true)) return;
    Finish(status);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return end(grpc::Status::CANCELLED);
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
  }

  void OnCancel() override { end(grpc::Status::CANCELLED); }

  void OnDone() override {
    seat_.reset();
    self_.reset();  // This may be the last reference: no member is used after this line.
  }

 private:
  const std::string service_;
  StreamCount::Seat seat_;
  Response response_;
  std::mutex mutex_;
  bool has_ended_ = false;
  bool is_writing_ = false;
  std::optional<Response::ServingStatus> told_;
  std::shared_ptr<Watch> self_;
};

HealthService::HealthService(Ready ready, Readiness readiness, LimitHit hit)
    : ready_(std::move(ready)), readiness_(std::move(readiness)), hit_(std::move(hit)) {
  add_unary<Request, Response>(
      "/grpc.health.v1.Health/Check",
      [this](grpc::CallbackServerContext* context, const Request* request, Response* response) {
        grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
        if (const grpc::Status status = check(*request); !status.ok()) {
          reactor->Finish(status);
          return reactor;
        }
        const std::optional<bool> is_ready = ready_(request->service());
        response->set_status(status_of(is_ready));
        if (is_ready) {
          reactor->Finish(grpc::Status::OK);
        } else {
          reactor->Finish({grpc::StatusCode::NOT_FOUND,
                           "service: expected \"\" or a target in use, such as xds:///orders"});
        }
        return reactor;
      });
  add_unary<health::HealthListRequest, List>(
      "/grpc.health.v1.Health/List",
      [this](grpc::CallbackServerContext* context,
             const health::HealthListRequest* /*request*/,
             List* response) {
        grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
        const grpc::Status status = list(readiness_(), *response);
        if (!status.ok()) hit_(AdminLimit::kHealthServices);
        reactor->Finish(status);
        return reactor;
      });
  add_server_stream<Request, Response>(
      "/grpc.health.v1.Health/Watch",
      [this](grpc::CallbackServerContext* /*context*/, const Request* request) {
        const auto watch = std::make_shared<Watch>(request->service(), watches_.enter());
        watch->start();
        if (const grpc::Status status = check(*request); !status.ok()) {
          watch->end(status);
        } else if (!watch->has_seat()) {
          watch->end(too_busy());
        } else {
          watch->tell(status_of(ready_(watch->service())));
          {
            const std::lock_guard lock(mutex_);
            open_.push_back(watch);
          }
          changed_.notify_one();
        }
        return watch.get();
      });
  thread_ = std::thread([this] { follow(); });
}

HealthService::~HealthService() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void HealthService::follow() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    std::erase_if(open_, [](const auto& watch) { return watch.expired(); });
    if (open_.empty()) {
      changed_.wait(lock, [this] { return ending_ || !open_.empty(); });
      continue;
    }
    const auto open = open_;
    lock.unlock();
    for (const auto& known : open) {
      if (const auto watch = known.lock()) watch->tell(status_of(ready_(watch->service())));
    }
    lock.lock();
    changed_.wait_for(lock, kPeriod, [this] { return ending_; });
  }
}

}  // namespace signalbox::channel
