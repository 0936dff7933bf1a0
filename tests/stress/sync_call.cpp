// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/calls.hpp"

namespace signalbox::stress {
namespace {

void write_all(CallBody& body, grpc::ClientWriterInterface<Request>& stream) {
  const Request request = body.plan.request();
  while (body.written < body.plan.messages && stream.Write(request))
    ++body.written;
  stream.WritesDone();
}

void read_all(CallBody& body, grpc::internal::ReaderInterface<Reply>& stream) {
  Reply reply;
  while (stream.Read(&reply))
    body.got(reply);
}

void unary(CallBody& body, Load::Stub& stub) {
  Reply reply;
  const grpc::Status status = stub.Unary(&body.context, body.plan.request(), &reply);
  if (status.ok()) body.got(reply);
  body.end(status);
}

// If the call sends no message, the server has no text to repeat. The expected text is then put
// into its reply.
void collect(CallBody& body, Load::Stub& stub) {
  Reply reply;
  const auto stream = stub.Collect(&body.context, &reply);
  if (body.plan.abandon) return body.abandon();
  write_all(body, *stream);
  const grpc::Status status = stream->Finish();
  if (status.ok() && body.plan.messages == 0) reply.set_text(body.plan.request().text());
  if (status.ok()) body.got(reply);
  body.end(status);
}

void feed(CallBody& body, Load::Stub& stub) {
  const auto stream = stub.Feed(&body.context, body.plan.request());
  if (body.plan.abandon) return body.abandon();
  read_all(body, *stream);
  body.end(stream->Finish());
}

void chat(CallBody& body, Load::Stub& stub) {
  const Request request = body.plan.request();
  Reply reply;
  const auto stream = stub.Chat(&body.context);
  while (body.written < body.plan.messages && stream->Write(request)) {
    ++body.written;
    if (body.plan.abandon) return body.abandon();
    if (stream->Read(&reply)) body.got(reply);
  }
  stream->WritesDone();
  read_all(body, *stream);
  body.end(stream->Finish());
}

}  // namespace

void run_sync(const Means& means, const ChannelPtr& channel, const Plan& plan) {
  const auto body = std::make_shared<CallBody>(means, plan);
  body->begin(body);
  const auto stub = Load::NewStub(channel);
  switch (plan.shape) {
    case Shape::kUnary:
      return unary(*body, *stub);
    case Shape::kCollect:
      return collect(*body, *stub);
    case Shape::kFeed:
      return feed(*body, *stub);
    case Shape::kChat:
      return chat(*body, *stub);
  }
}

}  // namespace signalbox::stress
