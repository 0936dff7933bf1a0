// SPDX-License-Identifier: Apache-2.0
//
// MetricsServer — GET /metrics for Prometheus, on an address that the program chooses.
//
//   "0.0.0.0:9464" ─▶ [MetricsServer] ─▶ text()
//   "9464" ─▶ 127.0.0.1:9464: other machines may ask only where an address says so
//
// It only reads, and knows no other page. Its threads and limits: HttpServer.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "channel/admin/http_server.hpp"

namespace signalbox::channel {

class MetricsServer {
 public:
  /// `address`: "host:port", where an IPv6 address stands in brackets, or a port of 127.0.0.1; port
  /// 0 takes a free one. `text` is asked on the server's thread. INVALID_ARGUMENT, UNAVAILABLE: the
  /// address is none, or the server cannot listen there.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> start(const std::string& address,
                                                              std::function<std::string()> text);

  /// The port that is listened on, also where 0 was asked for.
  int port() const { return port_; }

 private:
  MetricsServer(int port, std::unique_ptr<HttpServer> http) : port_(port), http_(std::move(http)) {}

  int port_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace signalbox::channel
