// SPDX-License-Identifier: Apache-2.0
//
// The callback API's side of conversation.cpp: each reactor has one whole conversation.

#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <utility>

#include <catch2/catch.hpp>
#include <grpcpp/support/client_callback.h>

#include "tests/e2e/conversation.hpp"

namespace signalbox::test {

/// Hands the final status of a call to the thread that waits for it.
class Ending {
 public:
  void come(grpc::Status status) { promise_.set_value(std::move(status)); }

  grpc::Status wait() {
    auto future = promise_.get_future();
    REQUIRE(future.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    return future.get();
  }

 private:
  std::promise<grpc::Status> promise_;
};

/// Shared parts of all reactors. OnDone comes last, and the reactor may be destroyed after it.
template <typename Reactor>
class Talk : public Reactor {
 public:
  explicit Talk(Transcript& transcript) : transcript_(transcript) {}

  void OnReadInitialMetadataDone(bool ok) override { transcript_.awaited = ok; }

  void OnDone(const grpc::Status& status) override { ending_.come(status); }

 protected:
  void start_and_wait() {
    this->StartCall();
    transcript_.status = ending_.wait();
  }

  void add(const EchoReply& reply) { transcript_.replies.push_back(reply.SerializeAsString()); }

  Transcript& transcript_;

 private:
  Ending ending_;
};

class UnaryTalk final : public Talk<grpc::ClientUnaryReactor> {
 public:
  using Talk::Talk;

  void run() {
    start_and_wait();
    if (transcript_.status.ok()) add(reply);
  }

  EchoReply reply;
};

class ExpandTalk final : public Talk<grpc::ClientReadReactor<EchoReply>> {
 public:
  using Talk::Talk;

  void run() {
    StartRead(&reply_);
    start_and_wait();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    add(reply_);
    StartRead(&reply_);
  }

 private:
  EchoReply reply_;
};

class CollectTalk final : public Talk<grpc::ClientWriteReactor<EchoRequest>> {
 public:
  CollectTalk(const Manner& manner, Transcript& transcript) : Talk(transcript), manner_(manner) {}

  void run() {
    write();
    start_and_wait();
    if (transcript_.status.ok()) add(reply);
  }

  void OnWriteDone(bool ok) override {
    if (ok) write();
  }

  EchoReply reply;

 private:
  void write() {
    if (next_ == manner_.requests.size()) {
      if (!manner_.corked) StartWritesDone();
      return;
    }
    const bool is_last = manner_.corked && next_ + 1 == manner_.requests.size();
    const EchoRequest& request = manner_.requests[next_++];
    if (is_last) {
      StartWriteLast(&request, grpc::WriteOptions());
    } else {
      StartWrite(&request);
    }
  }

  const Manner& manner_;
  std::size_t next_ = 0;
};

/// The reactor of a bidirectional stream: writes, reads the answer, writes again.
class ChatTalk final : public Talk<grpc::ClientBidiReactor<EchoRequest, EchoReply>> {
 public:
  ChatTalk(const Manner& manner, Transcript& transcript) : Talk(transcript), manner_(manner) {}

  void run() {
    begin_round();
    start_and_wait();
  }

  void OnWriteDone(bool ok) override {
    if (ok) progress();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    add(reply_);
    if (is_closing_) {
      StartRead(&reply_);
    } else {
      progress();
    }
  }

 private:
  void begin_round() {
    if (next_ == manner_.requests.size()) {
      is_closing_ = true;
      if (!manner_.corked) StartWritesDone();
    } else {
      left_ = 2;
      const bool is_last = manner_.corked && next_ + 1 == manner_.requests.size();
      const EchoRequest& request = manner_.requests[next_++];
      if (is_last) {
        StartWriteLast(&request, grpc::WriteOptions());
      } else {
        StartWrite(&request);
      }
    }
    StartRead(&reply_);
  }

  void progress() {
    if (left_.fetch_sub(1) == 1) begin_round();
  }

  const Manner& manner_;
  std::size_t next_ = 0;
  bool is_closing_ = false;
  std::atomic<int> left_{0};  ///< The unfinished operations of a write and a read.
  EchoReply reply_;
};

}  // namespace signalbox::test
