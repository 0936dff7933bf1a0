// SPDX-License-Identifier: Apache-2.0
//
// DumpReply — the answer to one DumpRequested, passed from an actor to a waiting thread.
//
//   Runtime::dump ─▶ supervisor ─▶ xds_client ─▶ [answer()] ─▶ the future
//
// Invariants
//   D1  When the last owner drops the reply without an answer (the actor that held the reply died,
//       or the runtime ends), the future gets the answer UNAVAILABLE. So a thread waits in vain
//       only for an actor that is stuck.
//   D2  Only the first call of answer() has an effect.
//
// One message owns the reply, so only one thread at a time uses it.

#pragma once

#include <future>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "messages/resource_dump.hpp"

namespace signalbox::actors {

class DumpReply {
 public:
  using Answer = absl::StatusOr<ResourceDump>;

  DumpReply() = default;

  ~DumpReply() {
    answer(absl::UnavailableError("the xDS client ended before it answered; ask again"));
  }

  DumpReply(const DumpReply&) = delete;
  DumpReply& operator=(const DumpReply&) = delete;

  /// The future that gets the answer. Call future() at most once.
  std::future<Answer> future() { return promise_.get_future(); }

  void answer(Answer answer) {
    if (std::exchange(answered_, true)) return;
    promise_.set_value(std::move(answer));
  }

 private:
  std::promise<Answer> promise_;
  bool answered_ = false;
};

}  // namespace signalbox::actors
