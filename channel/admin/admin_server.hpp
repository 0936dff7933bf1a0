// SPDX-License-Identifier: Apache-2.0
//
// AdminServer — shows a runtime to users of this machine: HTTP, read-only.
//
//   curl, a browser, `signalbox dump` ─▶ [AdminServer] ─▶ admin_pages ─▶ Runtime: dump, status, …
//
// HttpServer has the threads and limits. /ready has a thread of its own (HttpServer's quick lane),
// so it is answered at once, even while a large dump is made.

#pragma once

#include <memory>

#include "absl/status/statusor.h"

#include "channel/admin/admin_listener.hpp"
#include "channel/admin/admin_pages.hpp"
#include "channel/admin/http_server.hpp"

namespace signalbox::channel {

class AdminServer {
 public:
  /// `sources` and `hit` are called on the server's threads, `sources` by at most two at a time.
  /// INVALID_ARGUMENT: `address` is invalid. UNAVAILABLE: the server cannot listen there.
  static absl::StatusOr<std::unique_ptr<AdminServer>> start(
      absl::string_view address, AdminSources sources, LimitHit hit = [](AdminLimit) {});

  /// The address to connect to: port 0 is replaced by the port that was taken.
  std::string address() const { return to_string(listener_.address()); }

 private:
  explicit AdminServer(AdminListener listener) : listener_(std::move(listener)) {}

  AdminListener listener_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace signalbox::channel
