// SPDX-License-Identifier: Apache-2.0
//
// LrsSession — the load reports to one server: one stream, re-opened while a cluster in use has its
// load reported to that server.
//
//   load_reporter ─▶ LoadReportsWanted, bytes, LoadRead ─▶ [LrsSession]
//   load_reporter ◀─ bytes, ReadLoad, SettleLoad ◀───────────────┘
//
//            load wanted            opened
//    Idle ────────────────▶ Opening ────────▶ Live ── the server has answered: each interval
//     ▲                     │   ▲              │      ReadLoad ─▶ report ─▶ written ─▶ SettleLoad
//     │ elapsed,     closed │   │ elapsed,     │ closed
//     │ not wanted          ▼   │ wanted       │
//     └──────────────────── Waiting ◀──────────┘
//                              and Live ─▶ Waiting or Idle, when nothing is in use, and all is
//                                          reported or the server has never answered
//
// Waiting: for the time that StreamPace demands before the next stream. If nothing is in use and
// that time is zero, the session is Idle at once. In use: this client uses a cluster that has its
// load reported to this server. Wanted: a cluster is in use, or there are unreported counts and the
// server has once said which load it wants.
//
// Invariants
//   R1  Only the first request of a stream carries the node. Reports begin when the server has
//       answered.
//   R2  The newest response decides which clusters are reported, and how often. An equal response
//       changes nothing.
//   R3  At most one request is unwritten. A report that is due meanwhile waits; it then has the
//       counts of the longer time, and its interval says so.
//   R4  A reading is a copy of the counts since the last settled reading. It is settled, and its
//       counts are not reported again, when the transport has written its report. There is no
//       answer to a report, so "written" is the best that can be known. If the stream ends before
//       that, the next report of the next stream has the counts of the unsettled reading.
//   R5  While a cluster is in use, a report without counts is sent once after a report with counts,
//       or as the first report of a stream. Further reports without counts are not sent.
//   R6  Streams are opened as far apart as those of ADS (StreamPace).
//   R7  A response that cannot be read ends the stream.
//   R8  The number of running timers is bounded, however often the server changes the interval. A
//       report uses any timer that is due up to a second after it. A timer that fires earlier
//       starts the next one.
//   R9  An interval begins with the last report, or with the stream that is opened after a rest:
//       nothing was in use. Other new streams do not begin it again, so a server that ends each
//       stream before the interval is over still gets its reports.
//
// Source: gRFC A27, A32, A64, A85; Envoy's LRS.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "messages/load_events.hpp"
#include "xds/client/stream_pace.hpp"
#include "xds/lrs/load_codec.hpp"

namespace signalbox::xds {

struct LrsSessionOptions {
  std::string node;  ///< A serialised envoy.config.core.v3.Node.
  std::uint64_t seed = 0;
  StreamPaceOptions pace = {};
  /// While the server has not answered, the session checks at this interval whether a cluster in
  /// use still has its load reported to the server.
  Duration patience = std::chrono::seconds(30);
};

class LrsSession {
 public:
  explicit LrsSession(LrsSessionOptions options);

  LrsSessionEffects step(const LrsSessionEvent& event, Instant now);

 private:
  struct Idle {};

  struct Opening {
    std::uint64_t stream = 0;
  };

  // A report that the transport was given, and has not written yet.
  struct Report {
    std::uint64_t reading = 0;
  };

  struct Nothing {};

  struct FirstRequest {};

  struct Live {
    std::uint64_t stream = 0;
    std::optional<LoadOrder> order;
    std::variant<Nothing, FirstRequest, Report> unwritten = FirstRequest{};
    bool is_due = false;     // A report is due, and an unwritten request is in its way (R3).
    bool was_empty = false;  // The last report had no counts (R5).
    Instant due;             // When the next report is due; set once there is an order.
    TimerId patience = {};   // Of a server that has not answered.
  };

  struct Waiting {
    TimerId timer;
    bool is_asking = false;
    bool is_rest = false;  // Nothing was in use when the last stream was closed.
  };

  using State = std::variant<Idle, Opening, Live, Waiting>;

  void on(const LoadReportsWanted& event, Instant now);
  void on(const AdsStreamOpened& event, Instant now);
  void on(const AdsBytesReceived& event, Instant now);
  void on(const AdsBytesWritten& event, Instant now);
  void on(const AdsStreamClosed& event, Instant now);
  void on(const LoadRead& event, Instant now);
  void on(const TimerFired& event, Instant now);

  // See the head of this file.
  bool is_wanted(const LoadReading& reading) const;

  void obey(Live& live, DecodedLoadOrder decoded, Instant now);
  void look(Live& live, Instant now);
  void report(Live& live, const LoadReading& reading, Instant now);
  void schedule(Live& live, Instant now);
  void open(Instant now);
  void leave(StreamPace::Ending ending, Instant now);
  void rest(const Live& live, Instant now);
  void fail(const std::string& why);
  void note(std::string text);
  TimerId start_timer(const char* name, Duration delay);

  LrsSessionOptions options_;
  StreamPace pace_;
  State state_;
  std::uint64_t streams_ = 0;
  std::uint64_t timers_ = 0;
  // When the last reading for a report came, or the stream after a rest was opened (R9).
  Instant reported_at_;
  // The running timers of reports, with the times when they are due. No two are due within a second
  // (R8).
  std::map<std::uint64_t, Instant> report_timers_;
  bool has_answered_ = false;  // The server has said, on some stream, which load it wants.
  // The notes that were reported; cleared when there are kMostTold of them. A note that is equal to
  // one of these is not reported again.
  std::set<std::string> told_;
  // The last failure since the last response. The next response removes it from told_, so that the
  // same failure is reported again if it comes back.
  std::string failure_;
  LrsSessionEffects effects_;
};

}  // namespace signalbox::xds
