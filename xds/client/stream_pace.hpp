// SPDX-License-Identifier: Apache-2.0
//
// StreamPace — the wait between the end of a stream and the opening of the next stream.
//
//   ads_session ─▶ opened, answered, closed ─▶ [StreamPace] ─▶ the wait before the next stream
//
//   the stream ended               the next stream is opened
//   without a response             after the back-off of failures, reset by a response     (A57)
//   answered, but within `lasting` after another back-off, reset only by an answered
//   of its opening, or refused     stream that lasts
//   answered, later                at once
//   because it is not needed       at once
//
// A57 alone does not slow down a server that answers once and then closes, again and again. gRFC
// A88 notes that such a server is asked as often as it closes. A routine end (maximum age of a
// connection, moved load) usually comes later than `lasting`, so the client need not wait.
//
// Invariant
//   Streams are opened at least `min_interval` apart, whatever the server does.
//
// Source: gRFC A57, A88 (open issues).

#pragma once

#include <chrono>
#include <cstdint>

#include "messages/ids.hpp"
#include "xds/client/backoff.hpp"

namespace signalbox::xds {

struct StreamPaceOptions {
  BackoffOptions backoff;
  Duration min_interval = std::chrono::seconds(1);
  /// If the server ends an answered stream at this age or later, there is no back-off.
  Duration lasting = std::chrono::seconds(10);
};

class StreamPace {
 public:
  enum class Ending {
    kByServer,  ///< The server or the network closed the stream.
    kRefused,   ///< The client closed it, because the response is unusable.
    kUnneeded,  ///< The client closed it, because it needs nothing of the server.
  };

  StreamPace(const StreamPaceOptions& options, std::uint64_t seed);

  void opened(Instant now);

  /// Must be called when a response has come on the stream.
  void answered();

  /// Must be called when the stream has ended. Returns the wait before the next stream is opened;
  /// zero: no wait.
  Duration closed(Ending ending, Instant now);

 private:
  StreamPaceOptions options_;
  Backoff failures_;  // The waits after consecutive streams without a response.
  // The waits after consecutive streams that were refused, or were answered and ended soon.
  Backoff short_lived_;
  Instant opened_;
  bool answered_ = false;
};

}  // namespace signalbox::xds
