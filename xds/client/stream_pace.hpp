// SPDX-License-Identifier: Apache-2.0
//
// StreamPace — how long a server is left alone after a stream to it has ended.
//
//   ads_session ─▶ opened, answered, closed ─▶ [StreamPace] ─▶ the wait before the next stream
//
//   the stream ended               the next one is opened
//   without a response             after the back-off of failures, which a response ends   (A57)
//   answered, but within `lasting` after a back-off of its own, which only a stream that
//   of its opening, or refused     lasts ends                                              (B8, B7)
//   answered, later                at once
//
// A57 alone leaves out the server that answers once and then closes, for ever: gRFC A88 notes that
// such a server is asked as often as it can close. A routine end (of a connection's maximum age,
// of a server that moves its load) comes later than that, and costs nobody a wait.
//
// Invariant
//   Whatever the server does, streams are opened at least `min_interval` apart (B8).
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
  /// A stream that brought a response and is as old as this has proved its server.
  Duration lasting = std::chrono::seconds(10);
};

class StreamPace {
 public:
  enum class Ending {
    kByServer,  ///< Or by the network.
    kRefused,   ///< By us: what the server sent is of no use.
  };

  StreamPace(const StreamPaceOptions& options, std::uint64_t seed);

  void opened(Instant now);

  /// A response has come on the stream.
  void answered();

  /// The wait before the next stream is opened; zero: none.
  Duration closed(Ending ending, Instant now);

 private:
  StreamPaceOptions options_;
  Backoff failures_;     // Of streams without a response, in a row.
  Backoff short_lived_;  // Of answered ones that did not last, in a row.
  Instant opened_;
  bool answered_ = false;
};

}  // namespace signalbox::xds
