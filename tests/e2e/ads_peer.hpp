// SPDX-License-Identifier: Apache-2.0
//
// Both ends of an ADS stream that carries arbitrary bytes, for tests of the transport between them.
//
//   [AdsEnd] ─▶ AdsTransport ─▶ a real gRPC stream ─▶ [AdsPeer], which answers each message
//
// No code here sleeps; each wait takes at most kPatience.

#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "actors/io/ads_transport.hpp"
#include "actors/io/grpc_bytes.hpp"
#include "tests/support/process.hpp"

namespace signalbox::test {

/// A server in this process: it answers every message of every stream with `answer`.
class AdsPeer {
 public:
  struct Options {
    std::string address = "127.0.0.1:0";
    std::string answer = "answer";
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    std::function<void(grpc::ServerBuilder&)> more = [](grpc::ServerBuilder&) {};
    /// Gets each message, on a gRPC thread.
    std::function<void(std::string bytes)> hear = [](const std::string&) {};
    bool ends_after_answer = false;  ///< Ends each stream with the status OK after one answer.
  };

  explicit AdsPeer(const Options& options) : service_(options) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(options.address, options.credentials, &port);
    builder.RegisterCallbackGenericService(&service_);
    options.more(builder);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    address_ = "127.0.0.1:" + std::to_string(port);
  }

  ~AdsPeer() { server_->Shutdown(std::chrono::system_clock::now()); }

  AdsPeer(const AdsPeer&) = delete;
  AdsPeer& operator=(const AdsPeer&) = delete;

  const std::string& address() const { return address_; }

 private:
  class Stream final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Stream(const Options& options)
        : hear_(options.hear),
          answer_(actors::to_buffer(options.answer)),
          ends_after_answer_(options.ends_after_answer) {
      StartRead(&incoming_);
    }

    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      hear_(actors::to_bytes(incoming_));
      StartWrite(&answer_);
    }

    void OnWriteDone(bool /*ok*/) override {
      if (ends_after_answer_) return Finish(grpc::Status::OK);
      StartRead(&incoming_);
    }

    void OnDone() override { delete this; }

   private:
    const std::function<void(std::string bytes)> hear_;
    grpc::ByteBuffer incoming_;
    grpc::ByteBuffer answer_;
    const bool ends_after_answer_;
  };

  class Service final : public grpc::CallbackGenericService {
   public:
    explicit Service(Options options) : options_(std::move(options)) {}

    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* /*context*/) override {
      return new Stream(options_);
    }

   private:
    const Options options_;
  };

  Service service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

/// One stream of a transport: sends `request` at once, and records the messages and the end.
class AdsEnd {
 public:
  explicit AdsEnd(actors::AdsTransport& transport, const std::string& request = "request") {
    actors::AdsTransport::Events events;
    events.opened = [] {};
    events.received = [news = news_](std::string bytes) {
      news->change([&] { news->received.push_back(std::move(bytes)); });
    };
    events.closed = [news = news_](absl::Status why) {
      news->change([&] { news->closed = std::move(why); });
    };
    stream_ = transport.open(std::move(events));
    stream_->send(request);
  }

  /// Waits until a message comes or the stream is closed. True if a message has come.
  bool is_answered() {
    return news_->wait([&] { return !news_->received.empty() || news_->closed; }) &&
           !news_->received.empty();
  }

  /// Waits for `count` messages; false if fewer come in time.
  bool has_received(std::size_t count) {
    return news_->wait([&] { return news_->received.size() >= count; });
  }

  std::size_t received() const {
    const std::lock_guard lock(news_->mutex);
    return news_->received.size();
  }

  void send(std::string bytes) { stream_->send(std::move(bytes)); }

  void read_next() { stream_->read_next(); }

  /// Waits for the end of the stream, and returns its status; UNKNOWN if the stream does not end in
  /// time.
  absl::Status closed() {
    news_->wait([&] { return news_->closed.has_value(); });
    return news_->closed.value_or(absl::UnknownError("the stream goes on"));
  }

 private:
  struct News {
    template <typename Change>
    void change(Change change_it) {
      const std::lock_guard lock(mutex);
      change_it();
      changed.notify_all();
    }

    template <typename Condition>
    bool wait(Condition condition) {
      std::unique_lock lock(mutex);
      return changed.wait_for(lock, kPatience, condition);
    }

    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> received;
    std::optional<absl::Status> closed;
  };

  const std::shared_ptr<News> news_ = std::make_shared<News>();
  std::unique_ptr<actors::AdsTransport::Stream> stream_;
};

}  // namespace signalbox::test
