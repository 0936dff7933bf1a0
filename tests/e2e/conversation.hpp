// SPDX-License-Identifier: Apache-2.0
//
// Conversations — calls as applications make them: every kind of method through every API.
//
//   Way (API × kind of method) × Manner (what is said, and how) ─▶ converse ─▶ Transcript
//
// A transcript is what the application learns of a call: replies, status, metadata and peer. The
// same conversation over gRPC's own channel gives the transcript that signalbox's channel must
// give.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "tests/e2e/echo_server.hpp"

namespace signalbox::test {

/// The parts of two transcripts that must agree. The error text may differ when each channel words
/// the error itself. Only the code must agree when the call's progress is a race.
enum class Agreement { kAll, kAllButMessage, kCode };

struct Transcript {
  std::vector<std::string> replies;
  grpc::Status status{grpc::StatusCode::UNKNOWN, "the call has not ended"};
  std::string initial;  ///< Server metadata, as text.
  std::string trailing;
  std::string peer;
  /// The initial metadata came by an operation or a callback of their own.
  bool awaited = false;

  std::string text(Agreement agreement) const;
};

/// The content of a conversation. Methods with one request send only the first.
struct Manner {
  std::string name;
  std::vector<EchoRequest> requests;
  std::function<void(grpc::ClientContext&)> prepare;  ///< May be empty.
  /// The first message goes out together with the metadata, and the last one together with the end
  /// of the writes, where the API can do that.
  bool corked = false;
  Agreement agreement = Agreement::kAll;
  bool is_interrupted = false;  ///< Another thread calls TryCancel() once the server has the call.
  /// Called after the call's end, while its context still exists.
  std::function<void()> talked = nullptr;
};

struct Way {
  std::string name;
  std::function<void(const std::shared_ptr<grpc::ChannelInterface>& channel,
                     grpc::ClientContext& context,
                     const Manner& manner,
                     Transcript& transcript)>
      talk;
  bool has_reactor = false;
};

/// Sync, async and callback API for the four kinds of method, and the generic stubs.
const std::vector<Way>& ways();

/// Makes the call, to its end. `service`: where an interrupted call arrives; others do not use it.
Transcript converse(const Way& way,
                    const Manner& manner,
                    const std::shared_ptr<grpc::ChannelInterface>& channel,
                    const EchoService& service);

}  // namespace signalbox::test
