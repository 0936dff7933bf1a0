// SPDX-License-Identifier: Apache-2.0
//
// AdsTransport — byte streams to an xDS server. AdsSession (ADS) or LrsSession (load reports)
// interprets the bytes.
//
//   ads_stream actor ─▶ open(events) ─▶ Stream ─▶ send(bytes)
//                    ◀─ opened, received(bytes) …, written …, closed
//
// The callbacks (opened, received, written, closed) run on a thread of the transport. `received`
// may also run inside read_next(), on the caller's thread.
//
// Invariants
//   T1  For a stream, `opened` is called at most once and before any `received`. `closed` is called
//       exactly once and last, unless the Stream was destroyed before. No callback runs inside
//       open().
//   T2  After ~Stream, no callback of that stream runs. ~Stream waits for a running callback. So a
//       callback is short, takes no lock that is held around ~Stream, and neither uses nor destroys
//       its Stream.
//   T3  Messages are sent in the order of send(), and received in the order of arrival. `written`
//       is called in the same order, at most once for each sent message, when the server's flow
//       control has let the message pass. `written` is not called after `closed`, and never inside
//       open().
//   T4  `closed` has RESOURCE_EXHAUSTED when a received message was longer than the transport
//       allows. The status's text names the limit and the remedy. A server's own RESOURCE_EXHAUSTED
//       becomes UNAVAILABLE, unless its text is gRPC's text for a message that is too long.
//       `closed` has OK when the server ended the stream with the status OK.
//   T5  After each `received`, the next `received` comes only after read_next(). Meanwhile a
//       transport over the network reads at most one message; flow control limits how much more the
//       server can send. The transport over a file queues its messages. `closed` may come before
//       read_next().

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace signalbox::actors {

class AdsTransport {
 public:
  struct Events {
    /// The stream has a connection to the server, so sent messages can reach the server.
    std::function<void()> opened;
    std::function<void(std::string bytes)> received;
    /// The server's flow control has let a message pass: the oldest sent message that had no
    /// `written` yet (T3).
    std::function<void()> written;
    std::function<void(absl::Status why)> closed;
  };

  class Stream {
   public:
    Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    virtual ~Stream() = default;

    /// Queues one message. Never blocks; after `closed` it does nothing.
    virtual void send(std::string bytes) = 0;

    /// Permits one more `received`. Never blocks; after `closed` it does nothing.
    virtual void read_next() = 0;
  };

  virtual ~AdsTransport() = default;

  /// Opens AggregatedDiscoveryService/StreamAggregatedResources, or the stream of load reports
  /// (LoadReportingService/StreamLoadStats). Thread-safe, never blocks.
  virtual std::unique_ptr<Stream> open(Events events) = 0;

  /// The server's name, for error texts and labels of metrics.
  virtual const std::string& server() const = 0;
};

}  // namespace signalbox::actors
