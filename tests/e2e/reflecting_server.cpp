// SPDX-License-Identifier: Apache-2.0
//
// A server in a process of its own that describes its services by gRPC server reflection.
//
//   reflecting_server v1       grpc.reflection.v1, one file in each answer
//   reflecting_server silent   the same, but it never answers
//   reflecting_server none     no reflection
//   reflecting_server_v1alpha  grpc.reflection.v1alpha, by gRPC's own library
//
// It prints one line, its port, and runs until it is killed or its parent ends. Its services are
// Echo, and Reflected, which is an Echo with its types in another file.
#include <iostream>
#include <memory>
#include <string>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>
#ifdef SIGNALBOX_WITH_GRPC_REFLECTION
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#endif
#include <signal.h>

#include "actors/io/grpc_bytes.hpp"
#include "tests/e2e/echo_server.hpp"
#include "tests/e2e/reflected.grpc.pb.h"
#include "tools/proto/reflection.pb.h"

namespace signalbox::test {
namespace {

namespace pb = google::protobuf;

class ReflectedService final : public Reflected::Service {
 public:
  explicit ReflectedService(EchoService& echo) : echo_(echo) {}

  grpc::Status Unary(grpc::ServerContext* context,
                     const EchoRequest* request,
                     EchoReply* reply) override {
    return echo_.Unary(context, request, reply);
  }

  grpc::Status Expand(grpc::ServerContext* context,
                      const EchoRequest* request,
                      grpc::ServerWriter<EchoReply>* writer) override {
    return echo_.Expand(context, request, writer);
  }

 private:
  EchoService& echo_;
};

std::string answer_to(const std::string& question) {
  reflection::ServerReflectionRequest request;
  request.ParseFromString(question);
  const pb::DescriptorPool& pool = *pb::DescriptorPool::generated_pool();
  const pb::FileDescriptor* const file =
      request.file_containing_symbol().empty()
          ? pool.FindFileByName(request.file_by_filename())
          : pool.FindFileContainingSymbol(request.file_containing_symbol());
  reflection::ServerReflectionResponse response;
  if (file == nullptr) {
    response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  } else {
    pb::FileDescriptorProto proto;
    file->CopyTo(&proto);
    response.mutable_file_descriptor_response()->add_file_descriptor_proto(
        proto.SerializeAsString());
  }
  return response.SerializeAsString();
}

class ReflectionStream final : public grpc::ServerGenericBidiReactor {
 public:
  explicit ReflectionStream(bool is_silent) : is_silent_(is_silent) { StartRead(&question_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    if (is_silent_) return StartRead(&question_);
    answer_ = actors::to_buffer(answer_to(actors::to_bytes(question_)));
    StartWrite(&answer_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&question_);
  }

  void OnDone() override { delete this; }

 private:
  const bool is_silent_;
  grpc::ByteBuffer question_;
  grpc::ByteBuffer answer_;
};

class Unimplemented final : public grpc::ServerGenericBidiReactor {
 public:
  Unimplemented() { Finish({grpc::StatusCode::UNIMPLEMENTED, ""}); }

  void OnDone() override { delete this; }
};

class ReflectionV1 final : public grpc::CallbackGenericService {
 public:
  explicit ReflectionV1(bool is_silent) : is_silent_(is_silent) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (context->method() == "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
      return new ReflectionStream(is_silent_);
    return new Unimplemented;
  }

 private:
  const bool is_silent_;
};

int serve(const std::string& reflection) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#ifdef SIGNALBOX_WITH_GRPC_REFLECTION
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
#endif
  EchoService echo;
  ReflectedService reflected(echo);
  ReflectionV1 reflection_v1(reflection == "silent");
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&echo);
  builder.RegisterService(&reflected);
  if (reflection == "v1" || reflection == "silent")
    builder.RegisterCallbackGenericService(&reflection_v1);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << port << "\n" << std::flush;
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace signalbox::test

int main(int argc, char** argv) {
  return signalbox::test::serve(argc > 1 ? argv[1] : "none");
}
