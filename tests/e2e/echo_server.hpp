// SPDX-License-Identifier: Apache-2.0
//
// EchoServer — a gRPC backend inside the test's process, on a port of its own.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include <grpcpp/grpcpp.h>

#include "messages/ids.hpp"
#include "tests/e2e/echo.grpc.pb.h"

namespace signalbox::test {

/// The call as the server sees it, without messages: whether it has a deadline, and the metadata
/// with keys that begin with "x-" (values in hexadecimal).
inline std::string seen_by(const grpc::ServerContext& context) {
  std::string text = context.deadline() == std::chrono::system_clock::time_point::max()
                         ? "no deadline"
                         : "deadline";
  for (const auto& [key, value] : context.client_metadata()) {
    if (!key.starts_with("x-")) continue;
    text.append(" ").append(key.data(), key.size()).append("=");
    text += absl::BytesToHexString(absl::string_view(value.data(), value.size()));
  }
  return text;
}

class EchoService final : public Echo::Service {
 public:
  grpc::Status Unary(grpc::ServerContext* context,
                     const EchoRequest* request,
                     EchoReply* reply) override {
    if (fails(*context)) return failure(*context);
    if (request->failures() > 0) return fail_at_first(*context, *request, *reply);
    begin(*context);
    fill(*context, *request, *reply);
    return end(*context, *request);
  }

  grpc::Status Collect(grpc::ServerContext* context,
                       grpc::ServerReader<EchoRequest>* reader,
                       EchoReply* reply) override {
    EchoRequest request;
    EchoRequest all;
    if (fails(*context)) return fail_after_reading(*context, *reader);
    begin(*context);
    while (reader->Read(&request)) {
      all.set_text(all.text() + request.text());
      all.set_status(request.status());
      all.set_hold(request.hold());
      if (all.status() != 0 || all.hold()) break;
    }
    fill(*context, all, *reply);
    return end(*context, all);
  }

  grpc::Status Expand(grpc::ServerContext* context,
                      const EchoRequest* request,
                      grpc::ServerWriter<EchoReply>* writer) override {
    if (fails(*context)) return failure(*context);
    begin(*context);
    EchoReply reply;
    fill(*context, *request, reply);
    for (int i = 0; i < request->times(); ++i)
      writer->Write(reply);
    return end(*context, *request);
  }

  grpc::Status Chat(grpc::ServerContext* context,
                    grpc::ServerReaderWriter<EchoReply, EchoRequest>* stream) override {
    if (fails(*context)) {
      if (failing.is_answered) stream->Write(EchoReply());
      return fail_after_reading(*context, *stream);
    }
    begin(*context);
    EchoRequest request;
    while (stream->Read(&request)) {
      EchoReply reply;
      fill(*context, request, reply);
      stream->Write(reply);
      if (request.status() != 0 || request.hold()) return end(*context, request);
    }
    return grpc::Status::OK;
  }

  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  /// The time that the last call had left until its deadline when it arrived; nullopt: no deadline.
  /// Calls that fail by `failing` or EchoRequest::failures do not count.
  std::optional<std::chrono::system_clock::duration> time_left() const {
    const std::lock_guard lock(mutex_);
    return time_left_;
  }

  std::atomic<int> calls{0};
  std::atomic<int> failed{0};  ///< Calls that failed by `failing`.
  int port = 0;

  /// The next `times` calls, of any method, fail with `status`. They get no response headers,
  /// unless `is_answered`.
  struct Failing {
    std::atomic<int> times{0};
    std::atomic<int> reads{0};  ///< Collect and Chat: messages read before the failure.
    std::atomic<int> status{grpc::StatusCode::UNAVAILABLE};
    std::atomic<bool> is_answered{false};  ///< Chat only: fails after a reply.
    std::atomic<bool> is_held{false};      ///< The call waits for release() or its cancellation.
    std::string pushback;
  } failing;

  /// The number in the last call's header grpc-previous-rpc-attempts; 0 without the header.
  std::atomic<int> previous_attempts{0};

 private:
  bool fails(const grpc::ServerContext& context) {
    const auto header = context.client_metadata().find("grpc-previous-rpc-attempts");
    const bool has_one = header != context.client_metadata().end();
    previous_attempts =
        has_one ? std::stoi(std::string(header->second.data(), header->second.size())) : 0;
    int left = failing.times;
    while (left > 0 && !failing.times.compare_exchange_weak(left, left - 1)) {
    }
    return left > 0;
  }

  grpc::Status failure(grpc::ServerContext& context) {
    ++calls;
    if (failing.is_held) hold(context);
    ++failed;
    context.AddTrailingMetadata("attempt", std::to_string(previous_attempts));
    if (!failing.pushback.empty())
      context.AddTrailingMetadata("grpc-retry-pushback-ms", failing.pushback);
    return {static_cast<grpc::StatusCode>(failing.status.load()), "as asked", "in detail"};
  }

  template <typename Reader>
  grpc::Status fail_after_reading(grpc::ServerContext& context, Reader& reader) {
    EchoRequest request;
    for (int i = 0; i < failing.reads && reader.Read(&request); ++i) {
    }
    return failure(context);
  }

  grpc::Status fail_at_first(grpc::ServerContext& context,
                             const EchoRequest& request,
                             EchoReply& reply) {
    const auto header = context.client_metadata().find("grpc-previous-rpc-attempts");
    if (header != context.client_metadata().end())
      reply.set_previous_attempts(
          std::stoi(std::string(header->second.data(), header->second.size())));
    if (reply.previous_attempts() < request.failures()) {
      ++calls;
      context.AddTrailingMetadata("attempt", std::to_string(reply.previous_attempts()));
      if (!request.pushback().empty())
        context.AddTrailingMetadata("grpc-retry-pushback-ms", request.pushback());
      return {static_cast<grpc::StatusCode>(request.status()), "as asked", "in detail"};
    }
    begin(context);
    fill(context, request, reply);
    return grpc::Status::OK;
  }

  void begin(grpc::ServerContext& context) {
    {
      const std::lock_guard lock(mutex_);
      time_left_.reset();
      if (context.deadline() != std::chrono::system_clock::time_point::max())
        time_left_ = context.deadline() - std::chrono::system_clock::now();
    }
    ++calls;
    context.AddInitialMetadata("server", "echo");
    context.AddInitialMetadata("first-bin", std::string("\0\xff", 2));
    context.AddTrailingMetadata("load", "0.5");
    context.AddTrailingMetadata("last-bin", std::string("\xfe\0", 2));
  }

  void fill(const grpc::ServerContext& context, const EchoRequest& request, EchoReply& reply) {
    reply.set_text(request.text());
    reply.set_port(port);
    reply.set_saw(seen_by(context));
  }

  grpc::Status end(grpc::ServerContext& context, const EchoRequest& request) {
    if (request.hold()) hold(context);
    if (request.status() == 0) return grpc::Status::OK;
    return {static_cast<grpc::StatusCode>(request.status()), "as asked", "in detail"};
  }

  void hold(grpc::ServerContext& context) {
    std::unique_lock lock(mutex_);
    while (!released_ && !context.IsCancelled()) {
      changed_.wait_for(lock, std::chrono::milliseconds(2));
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
  std::optional<std::chrono::system_clock::duration> time_left_;
};

class EchoServer {
 public:
  /// `port` 0: any free port. `more` may change the builder last.
  explicit EchoServer(int port = 0, const std::function<void(grpc::ServerBuilder&)>& more = {}) {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(
        "127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), &service_.port);
    builder.RegisterService(&service_);
    if (more != nullptr) more(builder);
    server_ = builder.BuildAndStart();
  }

  ~EchoServer() { stop(); }

  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  void stop() {
    if (server_ == nullptr) return;
    service_.release();
    server_->Shutdown(std::chrono::system_clock::now());
    server_ = nullptr;
  }

  /// As stop(), but lets running calls finish, however long they take. No new calls are accepted.
  void leave() {
    server_->Shutdown();
    server_ = nullptr;
  }

  EchoService& service() { return service_; }

  /// Null, unless grpc::EnableDefaultHealthCheckService was on when the server was built.
  grpc::HealthCheckServiceInterface* health() { return server_->GetHealthCheckService(); }

  Address address() const { return Address("127.0.0.1:" + std::to_string(service_.port)); }

 private:
  EchoService service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace signalbox::test
