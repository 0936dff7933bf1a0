// SPDX-License-Identifier: Apache-2.0
//
// AdsTransport — a byte stream to an xDS server; what the bytes mean is the session's business.
//
//   ads_stream actor ─▶ open(server) ─▶ Stream ─▶ send(bytes)
//                    ◀─ opened, received(bytes) …, written …, closed
//
// These callbacks run on a thread of the transport.
//
// Invariants
//   T1  Of a stream, `opened` is called at most once and before any `received`; `closed` exactly
//       once and last, unless the Stream was destroyed before; none of them from inside open().
//   T2  Once ~Stream has returned, nothing of that stream is called any more. ~Stream waits for a
//       callback that is running on another thread; callbacks are short and take no such lock.
//   T3  Messages are sent in the order of send(), received in the order of arrival. `written` is
//       called once for each sent message, in the same order, when the server's flow control has
//       let the message pass; not after `closed`, and never from inside open().
//   T4  `closed` says RESOURCE_EXHAUSTED if and only if a message came that is beyond the
//       limit; its text names the limit, and what to do.
//   T5  After each `received` the next one comes only when read_next() was called, perhaps from
//       inside it. Meanwhile the transport holds one message at most; more of them stay at the
//       server, by its flow control. `closed` may come before read_next().

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace signalbox::actors {

class AdsTransport {
 public:
  struct Events {
    /// The stream is on a connected transport: what was sent has a way to the server.
    std::function<void()> opened;
    std::function<void(std::string bytes)> received;
    /// The oldest message that was sent and not told of yet has left for the server.
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

    /// One more message may be received. Never blocks; after `closed` it does nothing.
    virtual void read_next() = 0;
  };

  virtual ~AdsTransport() = default;

  /// Opens AggregatedDiscoveryService/StreamAggregatedResources. Thread-safe, never blocks.
  virtual std::unique_ptr<Stream> open(Events events) = 0;

  /// The server, for texts and labels.
  virtual const std::string& server() const = 0;
};

}  // namespace signalbox::actors
