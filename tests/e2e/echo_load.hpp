// SPDX-License-Identifier: Apache-2.0
//
// EchoLoad — unary calls and streams on four threads, one after the other, and how they ended.

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/e2e/echo_server.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/support/process.hpp"

namespace signalbox::test {

inline grpc::Status make_call(Echo::Stub& stub) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  EchoReply reply;
  return stub.Unary(&context, EchoRequest(), &reply);
}

inline grpc::Status make_stream(Echo::Stub& stub) {
  constexpr int kMessages = 4;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto chat = stub.Chat(&context);
  EchoRequest request;
  EchoReply reply;
  for (int i = 0; i < kMessages && chat->Write(request) && chat->Read(&reply); ++i) {
  }
  chat->WritesDone();
  return chat->Finish();
}

/// Whether the call failed because its server had closed the connection, or because a GOAWAY came
/// amid one of a stream's sends: gRPC does not tell then whether the server has the stream
/// (actors/io/call_reach.hpp).
inline bool is_broken(const grpc::Status& status, bool is_stream) {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return false;
  const std::string text = status.error_message();
  return absl::StrContains(text, ": Broken pipe") || absl::StrContains(text, ": Socket closed") ||
         absl::StrContains(text, ": Connection reset by peer") ||
         (is_stream && absl::StrContains(text, ": GOAWAY received"));
}

/// Options of a runtime with one maker of connections. Counts in `without_sockets` the lines of the
/// log that say that sockets are not used; it must outlive the runtime.
inline RuntimeOptions options_with(bool sockets,
                                   const std::string& plane,
                                   std::atomic<int>& without_sockets) {
  RuntimeOptions options = options_for(plane);
  options.socket_connections = sockets;
  options.channel_arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  options.log = [&without_sockets](const std::string& text) {
    if (absl::StrContains(text, "socket_connections has no effect")) ++without_sockets;
  };
  return options;
}

/// Two threads with unary calls and two with streams, until the destructor or stop().
class EchoLoad {
 public:
  explicit EchoLoad(const std::shared_ptr<grpc::ChannelInterface>& channel) {
    for (const bool streams : {false, false, true, true}) {
      threads_.emplace_back([this, channel, streams] {
        Echo::Stub stub(channel);
        while (!is_ending_) {
          const grpc::Status status = streams ? make_stream(stub) : make_call(stub);
          ++(streams ? streams_ : unaries_);
          if (status.error_code() == grpc::StatusCode::CANCELLED) {
            ++cancelled_;
          } else if (is_broken(status, streams)) {
            ++broken_;
          } else if (!status.ok()) {
            note(streams, status);
          }
        }
      });
    }
  }

  ~EchoLoad() { stop(); }

  EchoLoad(const EchoLoad&) = delete;
  EchoLoad& operator=(const EchoLoad&) = delete;

  void stop() {
    is_ending_ = true;
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  int unaries() const { return unaries_; }

  int streams() const { return streams_; }

  /// Calls that a server has cancelled.
  int cancelled() const { return cancelled_; }

  /// Calls under which a server has closed the connection.
  int broken() const { return broken_; }

  /// The texts of all other calls that failed.
  std::vector<std::string> lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  void note(bool streams, const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(absl::StrCat(
        streams ? "stream: " : "call: ", status.error_code(), " ", status.error_message()));
  }

  std::atomic<bool> is_ending_{false};
  std::atomic<int> unaries_{0};
  std::atomic<int> streams_{0};
  std::atomic<int> cancelled_{0};
  std::atomic<int> broken_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> lost_;
  std::vector<std::thread> threads_;
};

}  // namespace signalbox::test
