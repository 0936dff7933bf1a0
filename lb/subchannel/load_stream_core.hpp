// SPDX-License-Identifier: Apache-2.0
//
// load_stream_core — decides when an endpoint is asked for its load, on the stream of one
// connection (gRFC A51).
//
//   listeners ─ LoadWatched, LoadUnwatched ─▶ [LoadStreamCore] ─▶ OpenLoadStream, CloseLoadStream
//   stream ─ LoadReported, LoadStreamClosed ─▶                 ─▶ StartLoadTimer: back-off
//
//            first listener                 closed               timer
//      Idle ───────────────▶ Open ───────────────────▶ Waiting ───────▶ Open
//        ▲                    │  └─ UNIMPLEMENTED ─▶ Refused
//        └ last listener gone ┴──────── (also from Waiting)      any ─ connection lost ─▶ Lost
//
// Waiting: for the end of the back-off (L3). If the back-off is over already, `closed` leads back
// to Open. If it is not over, the first listener leads to Waiting.
//
// Invariants
//   L1  A connection has at most one stream, and only while it has a listener. The stream asks for
//       the smallest of the listeners' periods. When the smallest period changes, the stream is
//       opened anew at once.
//   L2  An endpoint that answers UNIMPLEMENTED is not asked again on this connection, whichever
//       listeners come and go.
//   L3  After any other end the stream is opened again. The back-off grows with each stream that
//       ended without a report. A report resets it. The wait is measured from the opening of the
//       stream that ended, so a stream that had reports for a while is opened again at once.
//   L4  An end, a report or a timer of an earlier stream is ignored.
//
// L3 is A51's rule with one difference: A51 opens a stream again at once after any stream with a
// report. An endpoint that ends each stream after one report would get streams without end.

#pragma once

#include <cstdint>
#include <map>
#include <variant>

#include "messages/back_off.hpp"
#include "messages/ids.hpp"
#include "messages/load_stream_events.hpp"

namespace signalbox::lb {

struct LoadStreamOptions {
  BackoffOptions backoff;
  std::uint64_t seed = 0;  ///< The source of all draws of the core.
};

class LoadStreamCore {
 public:
  explicit LoadStreamCore(const LoadStreamOptions& options) : options_(options) {}

  LoadStreamEffects step(const LoadStreamEvent& event, Instant now);

  /// Whether the endpoint has answered UNIMPLEMENTED. Then no further stream is opened on this
  /// connection (L2). False again once the connection is lost.
  bool is_refused() const { return std::holds_alternative<Refused>(state_); }

  bool is_watched() const { return !periods_.empty(); }

 private:
  struct Idle {};

  struct Open {
    std::uint64_t stream = 0;
    Duration period{};
    Instant since{};
    bool has_reported = false;
  };

  struct Waiting {
    std::uint64_t timer = 0;
  };

  struct Refused {};

  struct Lost {};

  void on(const LoadWatched& event, Instant now, LoadStreamEffects& effects);
  void on(const LoadUnwatched& event, Instant now, LoadStreamEffects& effects);
  void on(const LoadReported& event, Instant now, LoadStreamEffects& effects);
  void on(const LoadStreamClosed& event, Instant now, LoadStreamEffects& effects);
  void on(const LoadRetryDue& event, Instant now, LoadStreamEffects& effects);
  void on(const LoadConnectionLost& event, Instant now, LoadStreamEffects& effects);

  void suit_listeners(Instant now, LoadStreamEffects& effects);
  void open_or_wait(Instant now, LoadStreamEffects& effects);
  void leave(LoadStreamEffects& effects) const;
  Duration wanted_period() const;
  Duration next_backoff(bool had_report);

  LoadStreamOptions options_;
  std::variant<Idle, Open, Waiting, Refused, Lost> state_;
  std::map<std::uint64_t, Duration> periods_;  ///< By listener.
  std::uint64_t number_ = 0;                   ///< The number of the last stream or timer.
  Duration backoff_{};                         ///< Without jitter; 0: no stream has ended yet.
  Instant not_before_ = Instant::min();        ///< When the next stream may be opened (L3).
};

}  // namespace signalbox::lb
