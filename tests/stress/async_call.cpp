// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <type_traits>
#include <utility>

#include <grpcpp/generic/generic_stub.h>

#include "tests/stress/calls.hpp"

namespace signalbox::stress {
namespace {

// A call with one operation at a time. The call owns itself until the last operation is complete.
class OneAtATime : public AsyncCall, public CallBody {
 public:
  using CallBody::CallBody;

 protected:
  void own(std::shared_ptr<OneAtATime> self) {
    begin(self);
    self_ = std::move(self);
  }

  void over() {
    end(status_);
    const auto last = std::exchange(self_, nullptr);
  }

  void* tag() { return static_cast<AsyncCall*>(this); }

  grpc::Status status_;

 private:
  std::shared_ptr<OneAtATime> self_;
};

template <typename Response>
class AsyncUnary final : public OneAtATime {
 public:
  using OneAtATime::OneAtATime;

  template <typename Prepare>
  void start(std::shared_ptr<AsyncUnary> self, const Prepare& prepare) {
    own(std::move(self));
    reader_ = prepare(&context);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, tag());
  }

  void proceed(bool) override {
    if (status_.ok()) got(response_);
    over();
  }

 private:
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader_;
  Response response_;
};

// A streaming call. A client stream writes all messages, then does WritesDone and Finish. A server
// stream reads all replies, then does Finish. A chat (both directions stream) writes and reads in
// turn, then does WritesDone, reads the other replies, and does Finish.
template <typename Outgoing, typename Incoming, typename Stream>
class AsyncStream final : public OneAtATime {
 public:
  using OneAtATime::OneAtATime;

  template <typename Prepare>
  void start(std::shared_ptr<AsyncStream> self, const Prepare& prepare) {
    own(std::move(self));
    stream_ = prepare(&context, &incoming_);
    stream_->StartCall(tag());
  }

  void proceed(bool ok) override {
    if (step_ == Step::kFinish) {
      if constexpr (!kReads) {
        if (status_.ok()) {
          if (plan.messages == 0) incoming_.set_text(plan.request().text());
          got(incoming_);
        }
      }
      return over();
    }
    if (ok && step_ == Step::kWrite) ++written;
    if constexpr (kReads) {
      if (ok && (step_ == Step::kRead || step_ == Step::kReadOn)) got(incoming_);
    }
    next(ok);
  }

 private:
  enum class Step { kStart, kWrite, kRead, kWritesDone, kReadOn, kFinish };

  static constexpr bool kReads =
      requires(Stream& stream, Incoming* into, void* tag) { stream.Read(into, tag); };
  static constexpr bool kWrites =
      requires(Stream& stream, const Outgoing& message, void* tag) { stream.Write(message, tag); };

  void next(bool ok) {
    if (!ok) return finish();
    if constexpr (kWrites) {
      const bool writes = step_ == Step::kStart || step_ == Step::kRead || step_ == Step::kWrite;
      if (kReads && step_ == Step::kWrite) return read(Step::kRead);
      if (writes && written < plan.messages) return write();
      if (writes) {
        step_ = Step::kWritesDone;
        return stream_->WritesDone(tag());
      }
    }
    if constexpr (kReads) return read(Step::kReadOn);
    finish();
  }

  void write() {
    if constexpr (kWrites) {
      step_ = Step::kWrite;
      stream_->Write(outgoing<Outgoing>(), tag());
    }
  }

  void read(Step step) {
    if constexpr (kReads) {
      step_ = step;
      stream_->Read(&incoming_, tag());
    }
  }

  void finish() {
    step_ = Step::kFinish;
    stream_->Finish(&status_, tag());
  }

  Step step_ = Step::kStart;
  Incoming incoming_;
  std::unique_ptr<Stream> stream_;
};

template <typename Call, typename Prepare>
void start(const Means& means, const Plan& plan, const Prepare& prepare) {
  auto call = std::make_shared<Call>(means, plan);
  Call& started = *call;
  started.start(std::move(call), prepare);
}

void start_generic(const Means& means,
                   const ChannelPtr& channel,
                   const Plan& plan,
                   grpc::CompletionQueue& queue) {
  using Bytes = grpc::ByteBuffer;
  grpc::GenericStub stub(channel);
  const std::string method = method_of(plan.shape);
  if (plan.shape == Shape::kUnary) {
    return start<AsyncUnary<Bytes>>(means, plan, [&](auto* context) {
      return stub.PrepareUnaryCall(context, method, to_wire(plan.request()), &queue);
    });
  }
  start<AsyncStream<Bytes, Bytes, grpc::GenericClientAsyncReaderWriter>>(
      means, plan, [&](auto* context, Bytes*) {
        return stub.PrepareCall(context, method, &queue);
      });
}

}  // namespace

void start_async(const Means& means,
                 const ChannelPtr& channel,
                 const Plan& plan,
                 grpc::CompletionQueue& queue) {
  if (plan.api == Api::kGenericAsync) return start_generic(means, channel, plan, queue);
  const auto stub = Load::NewStub(channel);
  switch (plan.shape) {
    case Shape::kUnary:
      return start<AsyncUnary<Reply>>(means, plan, [&](auto* context) {
        return stub->PrepareAsyncUnary(context, plan.request(), &queue);
      });
    case Shape::kCollect:
      return start<AsyncStream<Request, Reply, grpc::ClientAsyncWriter<Request>>>(
          means, plan, [&](auto* context, Reply* reply) {
            return stub->PrepareAsyncCollect(context, reply, &queue);
          });
    case Shape::kFeed:
      return start<AsyncStream<Request, Reply, grpc::ClientAsyncReader<Reply>>>(
          means, plan, [&](auto* context, Reply*) {
            return stub->PrepareAsyncFeed(context, plan.request(), &queue);
          });
    case Shape::kChat:
      return start<AsyncStream<Request, Reply, grpc::ClientAsyncReaderWriter<Request, Reply>>>(
          means, plan, [&](auto* context, Reply*) {
            return stub->PrepareAsyncChat(context, &queue);
          });
  }
}

}  // namespace signalbox::stress
