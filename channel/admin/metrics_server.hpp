// SPDX-License-Identifier: Apache-2.0
//
// MetricsServer — GET /metrics for Prometheus, on an address that the program chooses.
//
//   "0.0.0.0:9464" ─▶ [MetricsServer] ─▶ text()
//   "9464" ─▶ 127.0.0.1:9464: other machines have access only when the address says so
//
// The server is read-only and has only this page. HttpServer has the threads and limits.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "channel/admin/http_server.hpp"

namespace signalbox::channel {

class MetricsServer {
 public:
  /// `address`: "host:port", with an IPv6 address in brackets, or a port of 127.0.0.1; port 0 takes
  /// a free port. `text` and `hit` are called on the server's threads. INVALID_ARGUMENT: `address`
  /// is invalid. UNAVAILABLE: the server cannot listen there.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> start(
      const std::string& address, std::function<std::string()> text, LimitHit hit = [](AdminLimit) {
      });

  /// The port that the server listens on; never 0.
  int port() const { return port_; }

 private:
  MetricsServer(int port, std::unique_ptr<HttpServer> http) : port_(port), http_(std::move(http)) {}

  int port_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace signalbox::channel
