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

/// How a call ended.
struct EchoEnd {
  grpc::Status status;
  bool is_stream = false;
  int replies = 0;  ///< The messages that the call has received from the server.
};

inline EchoEnd make_call(Echo::Stub& stub) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  EchoReply reply;
  EchoEnd end{stub.Unary(&context, EchoRequest(), &reply)};
  if (end.status.ok()) end.replies = 1;
  return end;
}

inline EchoEnd make_stream(Echo::Stub& stub) {
  constexpr int kMessages = 4;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto chat = stub.Chat(&context);
  EchoEnd end{.status = {}, .is_stream = true};
  EchoRequest request;
  EchoReply reply;
  while (end.replies < kMessages && chat->Write(request) && chat->Read(&reply))
    ++end.replies;
  chat->WritesDone();
  end.status = chat->Finish();
  return end;
}

/// Whether a GOAWAY that left the stream out came amid one of the stream's sends. gRPC does not say
/// then that the server has not processed the stream, so the stream is not made again
/// (actors/io/call_reach.hpp). A stream with a reply was not left out.
inline bool is_caught_by_goaway(const EchoEnd& end) {
  return end.is_stream && end.replies == 0 &&
         end.status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         absl::StrContains(end.status.error_message(), ": GOAWAY received");
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
  /// Whether a restart of the server excuses that the call failed so. Called on all threads.
  using Excuse = bool (*)(const EchoEnd& failed);

  EchoLoad(const std::shared_ptr<grpc::ChannelInterface>& channel, Excuse is_excused) {
    for (const bool streams : {false, false, true, true}) {
      threads_.emplace_back([this, channel, streams, is_excused] {
        Echo::Stub stub(channel);
        while (!is_ending_) {
          const EchoEnd end = streams ? make_stream(stub) : make_call(stub);
          ++(streams ? streams_ : unaries_);
          if (end.status.ok()) {
            ++served_;
          } else if (is_excused(end)) {
            ++excused_;
          } else {
            note(end);
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

  /// Calls that succeeded.
  int served() const { return served_; }

  /// Calls that failed, and were excused.
  int excused() const { return excused_; }

  /// The texts of all other calls that failed.
  std::vector<std::string> lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  void note(const EchoEnd& end) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(absl::StrCat(end.is_stream ? "stream after " : "call after ",
                                 end.replies,
                                 " replies: ",
                                 end.status.error_code(),
                                 " ",
                                 end.status.error_message()));
  }

  std::atomic<bool> is_ending_{false};
  std::atomic<int> unaries_{0};
  std::atomic<int> streams_{0};
  std::atomic<int> served_{0};
  std::atomic<int> excused_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> lost_;
  std::vector<std::thread> threads_;
};

}  // namespace signalbox::test
