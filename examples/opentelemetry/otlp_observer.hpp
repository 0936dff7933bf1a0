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
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include <httplib.h>
#include <nlohmann/json.hpp>

#include "signalbox/call_observer.hpp"

using Json = nlohmann::json;

inline Json attribute(const char* key, const Json& value, const char* type = "stringValue") {
  return {{"key", key}, {"value", {{type, value}}}};
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
    const auto is_due = [this] { return !spans_.empty(); };
    for (std::unique_lock lock(mutex_); changed_.wait(lock, stop, is_due);) {
      const Json scope = {{"spans", std::exchange(spans_, Json::array())}};
      lock.unlock();
      const Json service = attribute("service.name", "traced_call");
      const Json resource = {{"resource", {{"attributes", Json::array({service})}}},
                             {"scopeSpans", Json::array({scope})}};
      const Json body = {{"resourceSpans", Json::array({resource})}};
      // A server's status may hold bytes that are no UTF-8; dump() replaces them.
      const std::string text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
      const auto answer = http_.Post("/v1/traces", text, "application/json");
      if (!answer || answer->status != 200) std::cerr << "the collector has not taken spans\n";
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
    delay_["attributes"] = Json::array({attribute("grpc.delay_type", std::string(delay.type))});
    was_picking_ |= delay.in_attempt;
    delay_reason_changed(delay.reason, delay.at);
  }

  void delay_reason_changed(absl::string_view reason, signalbox::Instant at) override {
    const Json text = attribute("grpc.delay_reason", std::string(reason));
    event(delay_, "Delay triggered", at)["attributes"] = Json::array({text});
  }

  void delay_ended(signalbox::Instant at) override {
    const bool is_of_call = delay_["parentSpanId"] == call_["spanId"];
    if (is_of_call) event(call_, "Delayed name resolution complete", at);
    end(delay_, signalbox::CallEnded{.at = at});
  }

  void attempt_began(const signalbox::AttemptBegan& attempt) override {
    attempt_ = begin("Attempt." + method_, call_["spanId"], attempt.at);
    attempt_["attributes"] =
        Json::array({attribute("previous-rpc-attempts", attempt.previous_attempts, "intValue"),
                     attribute("transparent-retry", attempt.is_transparent_retry, "boolValue")});
  }

  void attempt_sent(const signalbox::AttemptSent& sent, signalbox::AttemptHeaders& out) override {
    if (std::exchange(was_picking_, false)) event(attempt_, "Delayed LB pick complete", sent.at);
    attempt_["attributes"].push_back(attribute("server.address", std::string(sent.endpoint)));
    out.set("traceparent", absl::StrCat("00-", id_, "-", std::string(attempt_["spanId"]), "-01"));
  }

  void attempt_ended(const signalbox::AttemptEnded& last) override { end(attempt_, last); }

  void call_ended(const signalbox::CallEnded& last) override { end(call_, last); }

 private:
  static std::string hex() {
    thread_local std::mt19937_64 random{std::random_device{}()};
    return absl::StrCat(absl::Hex(random() | 1U, absl::kZeroPad16));
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
