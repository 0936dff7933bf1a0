// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/conversation.hpp"

#include <map>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>

#include "tests/e2e/conversation_reactors.hpp"

namespace signalbox::test {
namespace {

using std::chrono::seconds;
using Channel = std::shared_ptr<grpc::ChannelInterface>;

constexpr const char* kUnary = "/signalbox.test.Echo/Unary";
constexpr const char* kChat = "/signalbox.test.Echo/Chat";

using EchoStub = grpc::TemplatedGenericStub<EchoRequest, EchoReply>;

std::string metadata_text(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    text.append(" ").append(key.data(), key.size()).append("=");
    text += absl::BytesToHexString(absl::string_view(value.data(), value.size()));
  }
  return text;
}

// The completion queue of one call. The test awaits each operation before it starts the next.
class Tags {
 public:
  ~Tags() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    CHECK_FALSE(queue_.Next(&tag, &ok));
  }

  grpc::CompletionQueue* queue() { return &queue_; }

  /// One tag is enough for all operations, because they follow one another.
  void* tag() { return this; }

  bool next() {
    void* tag = nullptr;
    bool ok = false;
    const auto limit = std::chrono::system_clock::now() + seconds(20);
    REQUIRE(queue_.AsyncNext(&tag, &ok, limit) == grpc::CompletionQueue::GOT_EVENT);
    CHECK(tag == this);
    return ok;
  }

 private:
  grpc::CompletionQueue queue_;
};

grpc::WriteOptions options_of(const Manner& manner, std::size_t index) {
  grpc::WriteOptions options;
  if (manner.corked && index + 1 == manner.requests.size()) options.set_last_message();
  return options;
}

// --- the synchronous API ----------------------------------------------------------

void sync_unary(const Channel& channel,
                grpc::ClientContext& context,
                const Manner& manner,
                Transcript& transcript) {
  EchoReply reply;
  transcript.status = Echo::NewStub(channel)->Unary(&context, manner.requests.front(), &reply);
  if (transcript.status.ok()) transcript.replies.push_back(reply.SerializeAsString());
}

void sync_collect(const Channel& channel,
                  grpc::ClientContext& context,
                  const Manner& manner,
                  Transcript& transcript) {
  EchoReply reply;
  const auto writer = Echo::NewStub(channel)->Collect(&context, &reply);
  for (std::size_t i = 0; i < manner.requests.size(); ++i) {
    if (!writer->Write(manner.requests[i], options_of(manner, i))) break;
  }
  if (!manner.corked) writer->WritesDone();
  transcript.status = writer->Finish();
  if (transcript.status.ok()) transcript.replies.push_back(reply.SerializeAsString());
}

template <typename Reader>
void read_all(Reader& reader, Transcript& transcript) {
  EchoReply reply;
  while (reader.Read(&reply))
    transcript.replies.push_back(reply.SerializeAsString());
}

void sync_expand(const Channel& channel,
                 grpc::ClientContext& context,
                 const Manner& manner,
                 Transcript& transcript) {
  const auto reader = Echo::NewStub(channel)->Expand(&context, manner.requests.front());
  reader->WaitForInitialMetadata();
  transcript.awaited = true;
  read_all(*reader, transcript);
  transcript.status = reader->Finish();
}

void sync_chat(const Channel& channel,
               grpc::ClientContext& context,
               const Manner& manner,
               Transcript& transcript) {
  const auto stream = Echo::NewStub(channel)->Chat(&context);
  EchoReply reply;
  for (std::size_t i = 0; i < manner.requests.size(); ++i) {
    if (!stream->Write(manner.requests[i], options_of(manner, i))) break;
    if (i == 0) stream->WaitForInitialMetadata();
    transcript.awaited = true;
    if (!stream->Read(&reply)) break;
    transcript.replies.push_back(reply.SerializeAsString());
  }
  if (!manner.corked) stream->WritesDone();
  read_all(*stream, transcript);
  transcript.status = stream->Finish();
}

// --- the asynchronous API ---------------------------------------------------------

void finish_unary(grpc::ClientAsyncResponseReader<EchoReply>& reader,
                  bool apart,
                  Tags& tags,
                  Transcript& transcript) {
  if (apart) {
    reader.ReadInitialMetadata(tags.tag());
    transcript.awaited = tags.next();
  }
  EchoReply reply;
  reader.Finish(&reply, &transcript.status, tags.tag());
  CHECK(tags.next());
  if (transcript.status.ok()) transcript.replies.push_back(reply.SerializeAsString());
}

void async_unary(const Channel& channel,
                 grpc::ClientContext& context,
                 const Manner& manner,
                 Transcript& transcript) {
  Tags tags;
  const auto stub = Echo::NewStub(channel);
  finish_unary(
      *stub->AsyncUnary(&context, manner.requests.front(), tags.queue()), false, tags, transcript);
}

void prepared_unary(const Channel& channel,
                    grpc::ClientContext& context,
                    const Manner& manner,
                    Transcript& transcript) {
  Tags tags;
  const auto stub = Echo::NewStub(channel);
  auto reader = stub->PrepareAsyncUnary(&context, manner.requests.front(), tags.queue());
  reader->StartCall();
  finish_unary(*reader, true, tags, transcript);
}

void async_collect(const Channel& channel,
                   grpc::ClientContext& context,
                   const Manner& manner,
                   Transcript& transcript) {
  Tags tags;
  EchoReply reply;
  const auto writer = Echo::NewStub(channel)->PrepareAsyncCollect(&context, &reply, tags.queue());
  writer->StartCall(tags.tag());
  if (!manner.corked) tags.next();
  for (std::size_t i = 0; i < manner.requests.size(); ++i) {
    writer->Write(manner.requests[i], options_of(manner, i), tags.tag());
    if (!tags.next()) break;
  }
  if (!manner.corked) {
    writer->WritesDone(tags.tag());
    tags.next();
  }
  writer->Finish(&transcript.status, tags.tag());
  CHECK(tags.next());
  if (transcript.status.ok()) transcript.replies.push_back(reply.SerializeAsString());
}

template <typename Reader>
void read_all(Reader& reader, Tags& tags, Transcript& transcript) {
  for (;;) {
    EchoReply reply;
    reader.Read(&reply, tags.tag());
    if (!tags.next()) return;
    transcript.replies.push_back(reply.SerializeAsString());
  }
}

void async_expand(const Channel& channel,
                  grpc::ClientContext& context,
                  const Manner& manner,
                  Transcript& transcript) {
  Tags tags;
  const auto reader = Echo::NewStub(channel)->AsyncExpand(
      &context, manner.requests.front(), tags.queue(), tags.tag());
  tags.next();
  reader->ReadInitialMetadata(tags.tag());
  transcript.awaited = tags.next();
  read_all(*reader, tags, transcript);
  reader->Finish(&transcript.status, tags.tag());
  CHECK(tags.next());
}

template <typename Stream>
void chat(Stream& stream, const Manner& manner, Tags& tags, Transcript& transcript) {
  stream.StartCall(tags.tag());
  if (!manner.corked) tags.next();
  for (std::size_t i = 0; i < manner.requests.size(); ++i) {
    stream.Write(manner.requests[i], options_of(manner, i), tags.tag());
    if (!tags.next()) break;
    EchoReply reply;
    stream.Read(&reply, tags.tag());
    if (!tags.next()) break;
    transcript.replies.push_back(reply.SerializeAsString());
  }
  if (!manner.corked) {
    stream.WritesDone(tags.tag());
    tags.next();
  }
  read_all(stream, tags, transcript);
  stream.Finish(&transcript.status, tags.tag());
  CHECK(tags.next());
}

void async_chat(const Channel& channel,
                grpc::ClientContext& context,
                const Manner& manner,
                Transcript& transcript) {
  Tags tags;
  const auto stub = Echo::NewStub(channel);
  chat(*stub->PrepareAsyncChat(&context, tags.queue()), manner, tags, transcript);
}

// --- the generic stubs --------------------------------------------------------------

void generic_unary(const Channel& channel,
                   grpc::ClientContext& context,
                   const Manner& manner,
                   Transcript& transcript) {
  Tags tags;
  grpc::GenericStub stub(channel);
  const grpc::Slice slice(manner.requests.front().SerializeAsString());
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  const auto reader = stub.PrepareUnaryCall(&context, kUnary, request, tags.queue());
  reader->StartCall();
  reader->Finish(&response, &transcript.status, tags.tag());
  CHECK(tags.next());
  grpc::Slice bytes;
  if (!transcript.status.ok()) return;
  REQUIRE(response.DumpToSingleSlice(&bytes).ok());
  transcript.replies.emplace_back(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

void generic_function(const Channel& channel,
                      grpc::ClientContext& context,
                      const Manner& manner,
                      Transcript& transcript) {
  Ending ending;
  grpc::GenericStub stub(channel);
  const grpc::Slice slice(manner.requests.front().SerializeAsString());
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  stub.UnaryCall(
      &context, kUnary, grpc::StubOptions(), &request, &response, [&](grpc::Status status) {
        ending.come(std::move(status));
      });
  transcript.status = ending.wait();
  grpc::Slice bytes;
  if (!transcript.status.ok()) return;
  REQUIRE(response.DumpToSingleSlice(&bytes).ok());
  transcript.replies.emplace_back(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

void typed_unary(const Channel& channel,
                 grpc::ClientContext& context,
                 const Manner& manner,
                 Transcript& transcript) {
  Tags tags;
  EchoStub stub(channel);
  auto reader = stub.PrepareUnaryCall(&context, kUnary, manner.requests.front(), tags.queue());
  reader->StartCall();
  finish_unary(*reader, true, tags, transcript);
}

void typed_reactor(const Channel& channel,
                   grpc::ClientContext& context,
                   const Manner& manner,
                   Transcript& transcript) {
  UnaryTalk talk(transcript);
  EchoStub(channel).PrepareUnaryCall(
      &context, kUnary, grpc::StubOptions(), &manner.requests.front(), &talk.reply, &talk);
  talk.run();
}

void typed_chat(const Channel& channel,
                grpc::ClientContext& context,
                const Manner& manner,
                Transcript& transcript) {
  Tags tags;
  EchoStub stub(channel);
  chat(*stub.PrepareCall(&context, kChat, tags.queue()), manner, tags, transcript);
}

void typed_chat_reactor(const Channel& channel,
                        grpc::ClientContext& context,
                        const Manner& manner,
                        Transcript& transcript) {
  ChatTalk talk(manner, transcript);
  EchoStub(channel).PrepareBidiStreamingCall(&context, kChat, grpc::StubOptions(), &talk);
  talk.run();
}

// --- the callback API ---------------------------------------------------------------

void callback_function(const Channel& channel,
                       grpc::ClientContext& context,
                       const Manner& manner,
                       Transcript& transcript) {
  Ending ending;
  EchoReply reply;
  const auto stub = Echo::NewStub(channel);
  stub->async()->Unary(&context, &manner.requests.front(), &reply, [&](grpc::Status status) {
    ending.come(std::move(status));
  });
  transcript.status = ending.wait();
  if (transcript.status.ok()) transcript.replies.push_back(reply.SerializeAsString());
}

void callback_unary(const Channel& channel,
                    grpc::ClientContext& context,
                    const Manner& manner,
                    Transcript& transcript) {
  UnaryTalk talk(transcript);
  Echo::NewStub(channel)->async()->Unary(&context, &manner.requests.front(), &talk.reply, &talk);
  talk.run();
}

void callback_collect(const Channel& channel,
                      grpc::ClientContext& context,
                      const Manner& manner,
                      Transcript& transcript) {
  CollectTalk talk(manner, transcript);
  Echo::NewStub(channel)->async()->Collect(&context, &talk.reply, &talk);
  talk.run();
}

void callback_expand(const Channel& channel,
                     grpc::ClientContext& context,
                     const Manner& manner,
                     Transcript& transcript) {
  ExpandTalk talk(transcript);
  Echo::NewStub(channel)->async()->Expand(&context, &manner.requests.front(), &talk);
  talk.run();
}

void callback_chat(const Channel& channel,
                   grpc::ClientContext& context,
                   const Manner& manner,
                   Transcript& transcript) {
  ChatTalk talk(manner, transcript);
  Echo::NewStub(channel)->async()->Chat(&context, &talk);
  talk.run();
}

}  // namespace

std::string Transcript::text(Agreement agreement) const {
  const std::string code = absl::StrCat("code ", static_cast<int>(status.error_code()));
  if (agreement == Agreement::kCode) return code;
  std::string text = absl::StrCat("replies ", absl::StrJoin(replies, " | "), "\n", code);
  if (agreement == Agreement::kAll) absl::StrAppend(&text, " ", status.error_message());
  absl::StrAppend(&text, "\ndetails ", status.error_details());
  absl::StrAppend(&text, "\ninitial", initial, "\ntrailing", trailing, "\npeer ", peer);
  // If a call fails, its initial metadata may or may not arrive before its end: a race, so the
  // transcript does not tell.
  if (status.ok() && awaited) absl::StrAppend(&text, "\ninitial metadata apart");
  return text;
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      {"sync unary", sync_unary},
      {"sync client streaming", sync_collect},
      {"sync server streaming", sync_expand},
      {"sync bidi streaming", sync_chat},
      {"async unary", async_unary},
      {"async unary, prepared, with its initial metadata apart", prepared_unary},
      {"async client streaming", async_collect},
      {"async server streaming", async_expand},
      {"async bidi streaming", async_chat},
      {"callback unary, with a function", callback_function},
      {"callback unary", callback_unary, /*has_reactor=*/true},
      {"callback client streaming", callback_collect, /*has_reactor=*/true},
      {"callback server streaming", callback_expand, /*has_reactor=*/true},
      {"callback bidi streaming", callback_chat, /*has_reactor=*/true},
      {"generic async unary", generic_unary},
      {"generic callback unary", generic_function},
      {"typed generic async unary", typed_unary},
      {"typed generic callback unary", typed_reactor, /*has_reactor=*/true},
      {"typed generic async bidi streaming", typed_chat},
      {"typed generic callback bidi streaming", typed_chat_reactor, /*has_reactor=*/true},
  };
  return all;
}

Transcript converse(const Way& way,
                    const Manner& manner,
                    const Channel& channel,
                    const EchoService& service) {
  Transcript transcript;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(60));
  if (manner.prepare) manner.prepare(context);
  context.set_initial_metadata_corked(manner.corked);
  std::thread interrupter;
  if (manner.is_interrupted) {
    interrupter = std::thread([&context, &service, before = service.calls.load()] {
      const auto limit = std::chrono::steady_clock::now() + seconds(20);
      while (service.calls == before && std::chrono::steady_clock::now() < limit)
        std::this_thread::yield();
      context.TryCancel();
    });
  }
  way.talk(channel, context, manner, transcript);
  if (interrupter.joinable()) interrupter.join();
  if (manner.talked) manner.talked();
  // Every API has the initial metadata at the latest when it has the status.
  transcript.initial = metadata_text(context.GetServerInitialMetadata());
  transcript.trailing = metadata_text(context.GetServerTrailingMetadata());
  transcript.peer = context.peer();
  return transcript;
}

}  // namespace signalbox::test
