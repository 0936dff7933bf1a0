// SPDX-License-Identifier: Apache-2.0
#include "tools/load/reflection.hpp"

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include "actors/io/grpc_bytes.hpp"
#include "tools/load/reflected_types.hpp"

namespace signalbox::tools {
namespace {

using Instant = std::chrono::system_clock::time_point;

constexpr std::array<const char*, 2> kMethods{
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};

// A stream of questions and answers. Every operation waits for its end, which the deadline bounds.
class Stream {
 public:
  Stream(const std::shared_ptr<grpc::ChannelInterface>& channel,
         const char* method,
         const SidePlan& plan,
         Instant deadline)
      : stub_(channel) {
    context_.set_deadline(deadline);
    for (const auto& [name, value] : plan.calls.headers)
      context_.AddMetadata(name, value);
    stream_ = stub_.PrepareCall(&context_, method, &queue_);
    stream_->StartCall(this);
    is_open_ = wait();
  }

  ~Stream() {
    stream_ = nullptr;
    queue_.Shutdown();
    wait();
  }

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Sends the question and returns its answer. nullopt: the stream has ended; finish() says why.
  std::optional<std::string> ask(const std::string& question) {
    if (!is_open_) return std::nullopt;
    stream_->Write(actors::to_buffer(question), this);
    // An answer may say why the write failed, so it is read in any case.
    wait();
    return read();
  }

  /// Says that there is no further question, so that the server ends the stream.
  void leave() {
    stream_->WritesDone(this);
    wait();
    if (read()) context_.TryCancel();  // A message without a question: the server may go on.
    finish();
  }

  grpc::Status finish() {
    grpc::Status status;
    stream_->Finish(&status, this);
    wait();
    return status;
  }

 private:
  std::optional<std::string> read() {
    grpc::ByteBuffer answer;
    stream_->Read(&answer, this);
    if (!wait()) return std::nullopt;
    return actors::to_bytes(answer);
  }

  // Waits for the end of the operation. False: it failed, or the queue is shut down.
  bool wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool is_open_ = false;
};

std::string reason_of(const grpc::Status& status, const SidePlan& plan) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return "its server reflection ended the stream without an answer";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::StrCat("its server reflection did not answer within ",
                          std::chrono::duration<double>(plan.start_timeout).count(),
                          " s, which --start-timeout sets");
    default:
      return absl::StrCat("the call of server reflection failed with code ",
                          static_cast<int>(status.error_code()),
                          ": ",
                          status.error_message());
  }
}

// Asks for the types of `service`, and returns the bytes of a FileDescriptorSet. UNIMPLEMENTED: the
// endpoint does not have the version of server reflection that `stream` calls.
absl::StatusOr<std::string> ask_one_version(Stream& stream,
                                            const SidePlan& plan,
                                            std::string service) {
  ReflectedTypes types(std::move(service));
  while (const auto question = types.question()) {
    const auto answer = stream.ask(*question);
    if (!answer) {
      const grpc::Status status = stream.finish();
      const std::string reason = reason_of(status, plan);
      return status.error_code() == grpc::StatusCode::UNIMPLEMENTED
                 ? absl::UnimplementedError(reason)
                 : absl::UnavailableError(reason);
    }
    if (auto status = types.take(*answer); !status.ok()) {
      stream.leave();
      return status;
    }
  }
  stream.leave();
  return types.protoset();
}

}  // namespace

absl::StatusOr<std::string> ask_for_types(const std::shared_ptr<grpc::ChannelInterface>& channel,
                                          const SidePlan& plan,
                                          Instant deadline) {
  const std::string service = plan.calls.method.substr(1, plan.calls.method.rfind('/') - 1);
  std::string reason = "it has no gRPC server reflection, neither v1 nor v1alpha";
  for (const char* method : kMethods) {
    Stream stream(channel, method, plan, deadline);
    auto protoset = ask_one_version(stream, plan, service);
    if (protoset.ok()) return protoset;
    if (absl::IsUnimplemented(protoset.status())) continue;
    reason = std::string(protoset.status().message());
    break;
  }
  return absl::UnavailableError(absl::StrCat("--reflection: ",
                                             plan.target,
                                             ": ",
                                             reason,
                                             "; give the types of ",
                                             plan.calls.method,
                                             " with --protoset FILE"));
}

}  // namespace signalbox::tools
