// SPDX-License-Identifier: Apache-2.0
//
// RecordingObserver — a CallObserver that writes each event of each call as a short text.
//
//   "began /a.b/C", "delay connecting", "delay ends", "attempt 0", "sent orders", "attempt ends 0",
//   "ends 0"

#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "signalbox/call_observer.hpp"

namespace signalbox::testing {

class RecordingObserver final : public CallObserver {
 public:
  /// The events of all calls in the order of their arrival.
  std::string events() const {
    const std::lock_guard lock(mutex_);
    return absl::StrJoin(events_, ", ");
  }

  std::vector<std::string> reasons() const {
    const std::lock_guard lock(mutex_);
    return reasons_;
  }

  /// Whether an event had an earlier time than the event before it. call_began() is not compared.
  bool went_back() const {
    const std::lock_guard lock(mutex_);
    return went_back_;
  }

  std::string target() const {
    const std::lock_guard lock(mutex_);
    return target_;
  }

  std::string endpoint() const {
    const std::lock_guard lock(mutex_);
    return endpoint_;
  }

  std::unique_ptr<CallTrace> call_began(const CallBegan& call) override {
    if (!wants) return nullptr;
    {
      const std::lock_guard lock(mutex_);
      target_ = std::string(call.target);
      last_ = call.at;
    }
    note(call.at, absl::StrCat(call.context == nullptr ? "pick " : "began ", call.method));
    return std::make_unique<Trace>(*this);
  }

  bool wants = true;
  /// The text of an event, such as "attempt 0": when that event is recorded, the observer throws.
  /// Empty: it never throws.
  std::string throws_at;
  /// The header that each attempt sets; empty: none.
  std::string header;

 private:
  class Trace final : public CallTrace {
   public:
    explicit Trace(RecordingObserver& owner) : owner_(owner) {}

    void delay_began(const DelayBegan& delay) override {
      owner_.because(delay.reason);
      owner_.note(delay.at,
                  absl::StrCat(delay.in_attempt ? "delay " : "call's delay ", delay.type));
    }

    void delay_reason_changed(absl::string_view reason, Instant at) override {
      owner_.because(reason);
      owner_.note(at, "reason");
    }

    void delay_ended(Instant at) override { owner_.note(at, "delay ends"); }

    void attempt_began(const AttemptBegan& attempt) override {
      owner_.note(attempt.at,
                  absl::StrCat("attempt ",
                               attempt.previous_attempts,
                               attempt.is_transparent_retry ? " transparent" : ""));
    }

    void attempt_sent(const AttemptSent& sent, AttemptHeaders& headers) override {
      owner_.sent(sent.endpoint, headers, ++sent_);
      owner_.note(sent.at, absl::StrCat("sent ", sent.cluster));
    }

    void attempt_ended(const AttemptEnded& end) override {
      owner_.note(end.at, absl::StrCat("attempt ends ", end.code, end.retry_after ? " retry" : ""));
    }

    void call_ended(const CallEnded& end) override {
      owner_.note(end.at, absl::StrCat("ends ", end.code));
    }

   private:
    RecordingObserver& owner_;
    int sent_ = 0;
  };

  void because(absl::string_view reason) {
    const std::lock_guard lock(mutex_);
    reasons_.emplace_back(reason);
  }

  void sent(absl::string_view endpoint, AttemptHeaders& headers, int attempt) {
    if (!header.empty()) headers.set(header, absl::StrCat("attempt ", attempt));
    const std::lock_guard lock(mutex_);
    endpoint_ = std::string(endpoint);
  }

  void note(Instant at, std::string event) {
    const bool throws = event == throws_at;
    const std::lock_guard lock(mutex_);
    went_back_ |= at < last_;
    last_ = at;
    events_.push_back(std::move(event));
    if (throws) throw std::runtime_error("no room");
  }

  mutable std::mutex mutex_;
  std::vector<std::string> events_;
  std::vector<std::string> reasons_;
  std::string target_;
  std::string endpoint_;
  Instant last_;
  bool went_back_ = false;
};

}  // namespace signalbox::testing
