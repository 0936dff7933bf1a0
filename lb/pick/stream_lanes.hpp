// SPDX-License-Identifier: Apache-2.0
//
// StreamLanes — the streams of all connections to one endpoint, when it may have more than one
// (A105). Counts the calls of each connection, gives each call the oldest connection that has a
// free stream, and keeps the calls for which there is none, in order.
//
//   subchannel ─ add, remove ─▶ [StreamLanes: lane, lane, …] ◀─ take ─ call, after its pick
//              ◀─ wanted() ───── calls that wait ▲      │            ◀─ kTaken
//              ── has_demand() ─▶                └ wait ┴ granted ──▶ call
//
// A lane is one connection with the number of its calls. A call takes a stream when its pick is
// complete, and gives it back at the end of its attempt: the lane is one of the pick's trackers.
//
// Invariants
//   L1  A lane never has more calls than the connection's stream_limit(), however many threads take
//       streams at once. A connection without a known limit has the limit that was known last.
//       Exception: a connection that is shared with calls that take no stream, of which only the
//       uses are known.
//   L2  The lanes are in the order in which their connections were made.
//   L3  Calls get streams in the order in which they began to wait. While calls wait, a new call
//       waits behind them.
//   L4  No call waits while a lane has a free stream, except for the moment in which another thread
//       gives it that stream. The end of a call that took no stream (L1) is only found by
//       has_demand().
//   L5  Calls that wait learn it when no connection is left. They need another pick.
//   L6  `wanted` is called when calls begin to wait, and then not before has_demand() was asked, or
//       all waits have ended (L5). So there is one message for each attempt to connect, not one for
//       each call.
//
// take() takes no lock while a stream is free and no call waits: each lane has one atomic word,
// which all threads change. Without free streams, calls share a mutex. Only endpoints that may have
// several connections have a StreamLanes, so calls of all others count nothing.
//
// Thread-safe. add(), remove() and has_demand() are called by one thread at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lb/pick/router.hpp"
#include "messages/counting/tracked.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// A call's place among the calls that wait for a stream. Destroying it gives the place up.
class StreamWait {
 public:
  enum class Answer : std::uint8_t {
    kWaiting,  ///< No stream is free yet.
    kTaken,    ///< The pick has a stream and its connection.
    kLost,     ///< As kTaken, but the connection has died meanwhile: put the pick off.
    kGone,     ///< The endpoint has no connection any more.
  };

  class Place;

  explicit StreamWait(std::shared_ptr<Place> place);
  ~StreamWait();
  StreamWait(const StreamWait&) = delete;
  StreamWait& operator=(const StreamWait&) = delete;

  /// Whether the wait is over: claim() will not return kWaiting.
  bool is_over() const;

  /// Moves the stream that the call was given to the call's `pick`, which is complete. kTaken or
  /// kLost is returned at most once.
  Answer claim(Pick& pick);

 private:
  const std::shared_ptr<Place> place_;
};

class StreamLanes {
 public:
  enum class Answer : std::uint8_t {
    kTaken,  ///< The pick has a stream and its connection.
    kFull,   ///< All streams are in use: wait().
    kGone,   ///< No connection takes calls: pick again.
  };

  /// The most lanes that a StreamLanes can have.
  static constexpr std::uint32_t kMost = 64;

  /// `wanted`: see L6. It runs on any thread, never blocks, and calls nothing of this object.
  /// `retirement` destroys lanes when no call uses them.
  StreamLanes(std::shared_ptr<Retirement> retirement, std::function<void()> wanted);

  /// Ends all waits (L5). Calls that have a stream keep it.
  ~StreamLanes();
  StreamLanes(const StreamLanes&) = delete;
  StreamLanes& operator=(const StreamLanes&) = delete;

  /// Adds a connection. Calls that wait get its streams. `number` names the connection in remove().
  /// `is_shared`: see L1. Precondition: there are fewer than kMost lanes.
  void add(std::uint64_t number, ConnectionPtr connection, bool is_shared);

  /// No call takes a stream of the connection any more. Unknown numbers are ignored.
  void remove(std::uint64_t number);

  /// Gives free streams to the calls that wait. Returns whether calls still wait. If not, `wanted`
  /// is called when the next call waits.
  bool has_demand();

  /// Ends all waits (L5), and removes all lanes.
  void close();

  /// Takes a stream for a complete pick, which then has the stream's connection.
  Answer take(Pick& pick) const;

  /// Waits for a stream, behind the calls that wait already. `wake` is called once when the wait is
  /// over, perhaps before wait() returns. It runs on any thread, without a lock of this object, and
  /// must be short: the thread may be ending another call.
  std::unique_ptr<StreamWait> wait(std::function<void()> wake) const;

  /// The number of calls that use the connections now, with those that took no stream (L1) and
  /// without those that wait.
  std::int64_t calls() const;

  /// "all 200 streams of 2 connections are in use", for the texts of errors.
  std::string text() const;

 private:
  class Lane;
  struct Hall;

  const std::shared_ptr<Retirement> retirement_;
  const std::shared_ptr<Hall> hall_;

  friend class StreamWait;
};

}  // namespace signalbox::lb
