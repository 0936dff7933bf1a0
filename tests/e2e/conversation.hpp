// SPDX-License-Identifier: Apache-2.0
//
// Conversations — calls as applications make them: every kind of method through every API.
//
//   Way (API × kind of method) × Manner (what is said, and how) ─▶ converse ─▶ Transcript
//
// A transcript is all that the application learnt of a call. The same conversation over two
// channels must give the same transcript: so gRPC's own channel is the oracle of ours.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "tests/e2e/echo_server.hpp"

namespace signalbox::test {

/// What two channels must agree on: where they word the error themselves, not on its text; where it
/// is a race how far the call came, on its code alone.
enum class Agreement { kAll, kAllButMessage, kCode };

struct Transcript {
  std::vector<std::string> replies;
  grpc::Status status{grpc::StatusCode::UNKNOWN, "the call has not ended"};
  std::string initial;  ///< Server metadata, as text.
  std::string trailing;
  std::string peer;
  bool awaited = false;  ///< The initial metadata came apart, before anything else was asked for.

  std::string text(Agreement agreement) const;
};

/// What is said; how each way says it is its own business. Those that send one message say the
/// first.
struct Manner {
  std::string name;
  std::vector<EchoRequest> requests;
  std::function<void(grpc::ClientContext&)> prepare;  ///< May be empty.
  bool corked = false;  ///< The first message goes out with the metadata, where it can.
  Agreement agreement = Agreement::kAll;
  bool is_interrupted = false;             ///< TryCancel() once the server has the call.
  std::function<void()> talked = nullptr;  ///< The call is over, and its context still there.
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

/// Makes the call, to its end. The service is the one that is led to.
Transcript converse(const Way& way,
                    const Manner& manner,
                    const std::shared_ptr<grpc::ChannelInterface>& channel,
                    const EchoService& service);

}  // namespace signalbox::test
