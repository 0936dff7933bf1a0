// SPDX-License-Identifier: Apache-2.0
//
// LoadListener — receives the load reports that an endpoint sends on a stream of its own (A51).
//
//   leaf policy ─ WatchLoad ─▶ shell ─▶ a stream on the connection ─▶ [LoadListener::reported]
//
// Streams are read on any thread, so a LoadListener writes only atomics.

#pragma once

#include <memory>

#include "messages/ids.hpp"
#include "messages/load_report.hpp"

namespace signalbox {

class LoadListener {
 public:
  virtual ~LoadListener() = default;

  /// A report came at `now`. The report is borrowed for the duration of this call. Lock-free.
  virtual void reported(const LoadReport& report, Instant now) const noexcept = 0;
};

using LoadListenerPtr = std::shared_ptr<const LoadListener>;

}  // namespace signalbox
