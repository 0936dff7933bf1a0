// SPDX-License-Identifier: Apache-2.0
//
// AdminServer — lets people of this machine look into a runtime: HTTP, read-only.
//
//   curl, `signalbox dump` ─▶ [AdminServer] ─▶ admin_pages ─▶ Runtime::dump, metrics
//
// Its threads and limits: HttpServer.

#pragma once

#include <memory>

#include "absl/status/statusor.h"

#include "channel/admin/admin_listener.hpp"
#include "channel/admin/admin_pages.hpp"
#include "channel/admin/http_server.hpp"

namespace signalbox::channel {

class AdminServer {
 public:
  /// `sources` are asked on the server's thread. INVALID_ARGUMENT, UNAVAILABLE: the address is
  /// none, or the server cannot listen there.
  static absl::StatusOr<std::unique_ptr<AdminServer>> start(absl::string_view address,
                                                            AdminSources sources);

  /// As it can be connected to: with the port that was taken where 0 was asked for.
  std::string address() const { return to_string(listener_.address()); }

 private:
  explicit AdminServer(AdminListener listener) : listener_(std::move(listener)) {}

  AdminListener listener_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace signalbox::channel
