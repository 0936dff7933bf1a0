// SPDX-License-Identifier: Apache-2.0
//
// OtlpObserver — sends the spans of gRFCs A72 and A121 to an OpenTelemetry collector.
//
//   signalbox ─▶ events ─▶ OtlpTrace ─▶ [OtlpObserver] ─ a thread, batches ─▶ POST /v1/traces, JSON
//
// With opentelemetry-cpp, begin and end its spans in the same events. The thread's current span in
// call_began() is the parent.

#pragma once

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include <httplib.h>
#include <nlohmann/json.hpp>

#include "signalbox/call_observer.hpp"

using Json = nlohmann::json;

inline void add_attribute(Json& of, const char* key, Json value, const char* type = "stringValue") {
  of["attributes"].push_back(Json{{"key", key}, {"value", {{type, std::move(value)}}}});
}

class OtlpObserver final : public signalbox::CallObserver {
 public:
  explicit OtlpObserver(const std::string& collector) : http_(collector) {}

  std::unique_ptr<signalbox::CallTrace> call_began(const signalbox::CallBegan& call) override;

  void add(Json span) {  // Runs in an event, which must not block: spans beyond the limit are lost.
    const std::lock_guard lock(mutex_);
    if (spans_.size() < 2048) spans_.push_back(std::move(span));
    changed_.notify_one();
  }

 private:
  void run(const std::stop_token& stop) {
    http_.set_connection_timeout(2);  // Seconds. The destructor waits for the last batches.
    http_.set_read_timeout(2);
    const auto is_due = [this] { return !spans_.empty(); };
    for (std::unique_lock lock(mutex_); changed_.wait(lock, stop, is_due);) {
      Json body;
      body["resourceSpans"][0]["scopeSpans"][0]["spans"] = std::exchange(spans_, Json::array());
      lock.unlock();
      add_attribute(body["resourceSpans"][0]["resource"], "service.name", "traced_call");
      // A server's status may hold bytes that are no UTF-8; dump() replaces them.
      const std::string text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
      const auto answer = http_.Post("/v1/traces", text, "application/json");
      const auto result = answer ? std::to_string(answer->status) : to_string(answer.error());
      if (result != "200") std::cerr << "the collector has not taken spans: " << result << '\n';
      lock.lock();
    }
  }

  httplib::Client http_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Json spans_ = Json::array();
  // The last member is destroyed first: the thread sends the spans that are left, and ends.
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

class OtlpTrace final : public signalbox::CallTrace {
 public:
  OtlpTrace(OtlpObserver& owner, const signalbox::CallBegan& call)
      : owner_(owner), method_(call.method.substr(1)), id_(hex() + hex()) {
    call_ = begin("Sent." + method_, "", call.at);
  }

  void delay_began(const signalbox::DelayBegan& delay) override {
    delay_ = begin("Delay", (delay.in_attempt ? attempt_ : call_)["spanId"], delay.at);
    add_attribute(delay_, "grpc.delay_type", std::string(delay.type));
    was_picking_ |= delay.in_attempt;
    delay_reason_changed(delay.reason, delay.at);
  }

  void delay_reason_changed(absl::string_view reason, signalbox::Instant at) override {
    add_attribute(event(delay_, "Delay triggered", at), "grpc.delay_reason", std::string(reason));
  }

  void delay_ended(signalbox::Instant at) override {
    const bool is_of_call = delay_["parentSpanId"] == call_["spanId"];
    if (is_of_call) event(call_, "Delayed name resolution complete", at);
    end(delay_, signalbox::CallEnded{.at = at});
  }

  void attempt_began(const signalbox::AttemptBegan& attempt) override {
    attempt_ = begin("Attempt." + method_, call_["spanId"], attempt.at);
    add_attribute(attempt_, "previous-rpc-attempts", attempt.previous_attempts, "intValue");
    add_attribute(attempt_, "transparent-retry", attempt.is_transparent_retry, "boolValue");
  }

  void attempt_sent(const signalbox::AttemptSent& sent, signalbox::AttemptHeaders& out) override {
    if (std::exchange(was_picking_, false)) event(attempt_, "Delayed LB pick complete", sent.at);
    add_attribute(attempt_, "server.address", std::string(sent.endpoint));
    out.set("traceparent", absl::StrCat("00-", id_, "-", std::string(attempt_["spanId"]), "-01"));
  }

  void attempt_ended(const signalbox::AttemptEnded& last) override { end(attempt_, last); }

  void call_ended(const signalbox::CallEnded& last) override { end(call_, last); }

 private:
  static std::string hex() {
    thread_local absl::BitGen random;  // Its seed is long enough for a fleet.
    return absl::StrCat(absl::Hex(absl::Uniform<std::uint64_t>(random) | 1U, absl::kZeroPad16));
  }

  // Events have the steady clock's time, so steps of the wall clock do not bend a trace.
  std::string unix_nanos(signalbox::Instant at) const {
    return absl::StrCat((wall_.time_since_epoch() + (at - steady_)).count());
  }

  Json begin(const std::string& name, const Json& parent, signalbox::Instant at) const {
    Json span = {{"traceId", id_}, {"spanId", hex()}, {"parentSpanId", parent}};
    span.update({{"name", name}, {"kind", 3}, {"startTimeUnixNano", unix_nanos(at)}});
    return span;
  }

  Json& event(Json& span, const char* name, signalbox::Instant at) const {
    return span["events"].emplace_back(Json{{"name", name}, {"timeUnixNano", unix_nanos(at)}});
  }

  template <typename End>
  void end(Json& span, const End& last) const {
    span["endTimeUnixNano"] = unix_nanos(last.at);
    if (last.code != 0) span["status"] = {{"code", 2}, {"message", std::string(last.message)}};
    owner_.add(std::exchange(span, Json()));
  }

  OtlpObserver& owner_;
  const std::string method_, id_;
  const std::chrono::sys_time<signalbox::Duration> wall_ = std::chrono::system_clock::now();
  const signalbox::Instant steady_ = std::chrono::steady_clock::now();
  Json call_, attempt_, delay_;
  bool was_picking_ = false;
};

inline std::unique_ptr<signalbox::CallTrace> OtlpObserver::call_began(
    const signalbox::CallBegan& call) {
  return std::make_unique<OtlpTrace>(*this, call);
}
