// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <type_traits>
#include <utility>

#include <grpcpp/generic/generic_stub.h>

#include "tests/stress/calls.hpp"

namespace signalbox::stress {
namespace {

// A reactor that owns itself until gRPC is done with it (OnDone).
template <typename Reactor>
class SelfOwned : public Reactor, public CallBody {
 public:
  using CallBody::CallBody;

  void own(std::shared_ptr<SelfOwned> self) {
    begin(self);
    self_ = std::move(self);
  }

 protected:
  void over(const grpc::Status& status) {
    end(status);
    const auto last = std::exchange(self_, nullptr);
  }

 private:
  std::shared_ptr<SelfOwned> self_;
};

template <typename Outgoing, typename Incoming>
class CallbackUnary final : public SelfOwned<grpc::ClientUnaryReactor> {
 public:
  using SelfOwned::SelfOwned;

  Outgoing request = outgoing<Outgoing>();
  Incoming reply;

 private:
  void OnDone(const grpc::Status& status) override {
    if (status.ok()) got(reply);
    over(status);
  }
};

class CallbackCollect final : public SelfOwned<grpc::ClientWriteReactor<Request>> {
 public:
  using SelfOwned::SelfOwned;

  void write_next() {
    if (written < plan.messages) return StartWrite(&request_);
    StartWritesDone();
  }

  Reply reply;

 private:
  void OnWriteDone(bool ok) override {
    if (!ok) return;
    ++written;
    write_next();
  }

  void OnDone(const grpc::Status& status) override {
    if (status.ok() && plan.messages == 0) reply.set_text(request_.text());
    if (status.ok()) got(reply);
    over(status);
  }

  Request request_ = plan.request();
};

class CallbackFeed final : public SelfOwned<grpc::ClientReadReactor<Reply>> {
 public:
  using SelfOwned::SelfOwned;

  Request request = plan.request();
  Reply reply;

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    got(reply);
    StartRead(&reply);
  }

  void OnDone(const grpc::Status& status) override { over(status); }
};

// Writes and reads at the same time.
template <typename Outgoing, typename Incoming>
class CallbackChat final : public SelfOwned<grpc::ClientBidiReactor<Outgoing, Incoming>> {
 public:
  using SelfOwned<grpc::ClientBidiReactor<Outgoing, Incoming>>::SelfOwned;

  void write_next() {
    if (this->written < this->plan.messages) return this->StartWrite(&request_);
    this->StartWritesDone();
  }

  Incoming reply;

 private:
  void OnWriteDone(bool ok) override {
    if (!ok) return;
    ++this->written;
    write_next();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    this->got(reply);
    this->StartRead(&reply);
  }

  void OnDone(const grpc::Status& status) override { this->over(status); }

  Outgoing request_ = this->template outgoing<Outgoing>();
};

template <typename Call>
Call& own(const Means& means, const Plan& plan) {
  auto call = std::make_shared<Call>(means, plan);
  Call& owned = *call;
  owned.own(std::move(call));
  return owned;
}

// Both reading and writing begin with the call.
template <typename Call>
void start_chat(Call& call) {
  call.StartRead(&call.reply);
  call.write_next();
  call.StartCall();
}

void start_generic(const Means& means, const ChannelPtr& channel, const Plan& plan) {
  using Bytes = grpc::ByteBuffer;
  grpc::GenericStub stub(channel);
  const std::string method = method_of(plan.shape);
  if (plan.shape == Shape::kUnary) {
    auto& call = own<CallbackUnary<Bytes, Bytes>>(means, plan);
    stub.PrepareUnaryCall(
        &call.context, method, grpc::StubOptions(), &call.request, &call.reply, &call);
    return call.StartCall();
  }
  auto& call = own<CallbackChat<Bytes, Bytes>>(means, plan);
  stub.PrepareBidiStreamingCall(&call.context, method, grpc::StubOptions(), &call);
  start_chat(call);
}

}  // namespace

void start_callback(const Means& means, const ChannelPtr& channel, const Plan& plan) {
  if (plan.api == Api::kGenericCallback) return start_generic(means, channel, plan);
  const auto stub = Load::NewStub(channel);
  switch (plan.shape) {
    case Shape::kUnary: {
      auto& call = own<CallbackUnary<Request, Reply>>(means, plan);
      stub->async()->Unary(&call.context, &call.request, &call.reply, &call);
      return call.StartCall();
    }
    case Shape::kCollect: {
      auto& call = own<CallbackCollect>(means, plan);
      stub->async()->Collect(&call.context, &call.reply, &call);
      call.write_next();
      return call.StartCall();
    }
    case Shape::kFeed: {
      auto& call = own<CallbackFeed>(means, plan);
      stub->async()->Feed(&call.context, &call.request, &call);
      call.StartRead(&call.reply);
      return call.StartCall();
    }
    case Shape::kChat: {
      auto& call = own<CallbackChat<Request, Reply>>(means, plan);
      stub->async()->Chat(&call.context, &call);
      return start_chat(call);
    }
  }
}

}  // namespace signalbox::stress
