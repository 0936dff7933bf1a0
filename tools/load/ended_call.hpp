// SPDX-License-Identifier: Apache-2.0
//
// EndedCall, SentCall — facts about one call, as small values that the engine's threads put into
// rings (ring.hpp).
//
//   sender ─ SentCall ─▶ ring ─┐
//   taker ─ EndedCall ─▶ ring ─┴▶ LoadRecorder
//
// Times are nanoseconds since the beginning of the measured part; calls of the warm-up have been
// due before 0.

#pragma once

#include <cstdint>

namespace signalbox::tools {

struct SentCall {
  std::int64_t due_ns = 0;
  std::int64_t sent_ns = 0;
  bool is_dropped = false;  ///< The call was not sent; `sent_ns` is when that was decided.
};

struct EndedCall {
  /// The value of `endpoint` when the call reached no endpoint.
  static constexpr std::uint32_t kNoEndpoint = 0;
  static constexpr std::int32_t kNoSession = -1;
  /// The value of `message` of a call that did not fail, or with a message that is not counted.
  static constexpr std::uint32_t kNoMessage = 0;

  std::int64_t due_ns = 0;
  std::int64_t sent_ns = 0;
  std::int64_t ended_ns = 0;
  /// When the first message of the server's stream came, if `stream_messages` is not 0.
  std::int64_t first_message_ns = 0;
  /// The endpoint's number, from 1, in the order of OpenLoop::Drained::endpoints.
  std::uint32_t endpoint = kNoEndpoint;
  std::int32_t session = kNoSession;
  std::uint32_t stream_messages = 0;  ///< Messages of the server's stream; 0 for a unary call.
  /// The error message's number, from 1, in the order of OpenLoop::Drained::messages.
  std::uint32_t message = kNoMessage;
  std::uint16_t code = 0;       ///< See call_code.hpp; 0 is gRPC's OK.
  bool is_closed_loop = false;  ///< A closed loop would have sent it, too (open_loop.hpp).
};

}  // namespace signalbox::tools
