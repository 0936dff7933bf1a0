// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/backend.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "messages/invariant.hpp"

namespace signalbox::stress {

class Backend::Service final : public Load::Service {
 public:
  std::atomic<int> calls{0};

 private:
  grpc::Status Unary(grpc::ServerContext* context, const Request* request, Reply* reply) override {
    hold(*context, *request);
    reply->set_text(request->text());
    return end_of(*request);
  }

  grpc::Status Collect(grpc::ServerContext* context,
                       grpc::ServerReader<Request>* stream,
                       Reply* reply) override {
    Request request;
    while (stream->Read(&request))
      reply->set_text(request.text());
    hold(*context, request);
    return end_of(request);
  }

  grpc::Status Feed(grpc::ServerContext* context,
                    const Request* request,
                    grpc::ServerWriter<Reply>* stream) override {
    hold(*context, *request);
    Reply reply;
    reply.set_text(request->text());
    for (int i = 0; i < request->replies(); ++i)
      stream->Write(reply);
    return end_of(*request);
  }

  grpc::Status Chat(grpc::ServerContext* context,
                    grpc::ServerReaderWriter<Reply, Request>* stream) override {
    Request request;
    Reply reply;
    while (stream->Read(&request)) {
      hold(*context, request);
      reply.set_text(request.text());
      stream->Write(reply);
    }
    return end_of(request);
  }

  grpc::Status end_of(const Request& request) {
    ++calls;
    return {static_cast<grpc::StatusCode>(request.status()), ""};
  }

  // The synchronous server API does not report cancellation, so the handler polls for it.
  void hold(grpc::ServerContext& context, const Request& request) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(request.hold_ms());
    std::unique_lock lock(mutex_);
    while (!context.IsCancelled() && std::chrono::steady_clock::now() < end)
      never_.wait_for(lock, std::chrono::milliseconds(2));
  }

  std::mutex mutex_;
  std::condition_variable never_;
};

Backend::Backend() : service_(std::make_unique<Service>()) {
  start();
  SIGNALBOX_INVARIANT(is_up(), "there is a free port");
}

Backend::~Backend() {
  stop();
}

std::string Backend::address() const {
  return "127.0.0.1:" + std::to_string(port_);
}

int Backend::calls() const {
  return service_->calls;
}

void Backend::stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_ = nullptr;
}

void Backend::start() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(
      "127.0.0.1:" + std::to_string(port_), grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (port == 0) server_ = nullptr;
  if (is_up()) port_ = port;
}

}  // namespace signalbox::stress
