// SPDX-License-Identifier: Apache-2.0
//
// TransportStream — the stream that an actor has open on an AdsTransport.
//
//   ads_stream, load_reporter ─▶ [TransportStream] ─▶ AdsTransport::Stream
//            ▲                                              │
//            └── AdsStreamOpened, AdsBytesReceived, ────────┘
//                AdsBytesWritten, AdsStreamClosed
//
// Only the actor uses its TransportStream. read_next() and send() do nothing after close().

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"

#include "actors/io/ads_transport.hpp"
#include "actors/protocol/caf_version.hpp"
#include "messages/xds_events.hpp"

namespace signalbox::actors {

class TransportStream {
 public:
  /// Closes the earlier stream and opens a new one. All messages about the new stream go to the
  /// actor `owner`, and have `number` as the stream's number.
  template <typename Actor>
  void open(AdsTransport& transport, const Actor& owner, std::uint64_t number) {
    AdsTransport::Events events;
    events.opened = [owner, number] { protocol::post(owner, AdsStreamOpened{number}); };
    events.received = [owner, number](std::string bytes) {
      protocol::post(owner, AdsBytesReceived{number, std::move(bytes)});
    };
    events.written = [owner, number] { protocol::post(owner, AdsBytesWritten{number}); };
    events.closed = [owner, number](absl::Status why) {
      protocol::post(owner, AdsStreamClosed{number, std::move(why)});
    };
    stream_.reset();
    stream_ = transport.open(std::move(events));
  }

  void close() { stream_.reset(); }

  void read_next() {
    if (stream_) stream_->read_next();
  }

  void send(std::string bytes) {
    if (stream_) stream_->send(std::move(bytes));
  }

 private:
  std::unique_ptr<AdsTransport::Stream> stream_;
};

}  // namespace signalbox::actors
