// SPDX-License-Identifier: Apache-2.0
//
// AdminServer — lets people of this machine look into a runtime: HTTP, read-only.
//
//   curl, `signalbox dump` ─▶ [AdminServer] ─▶ admin_pages ─▶ Runtime::dump, metrics
//
// One thread, which sleeps when nobody asks, and answers one request after another. Ends at once:
// whoever is connected is cut off. Bounded: kMaxConnections at a time, each with
// kMaxConnectionBytes for all that it sends, and closed after kIdleTime without a word; who comes
// above that waits, and a request that is larger is refused (414, 431).

#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"

#include "channel/admin_listener.hpp"
#include "channel/admin_pages.hpp"

struct MHD_Daemon;

namespace signalbox::channel {

class AdminServer {
 public:
  static constexpr unsigned kMaxConnections = 16;
  static constexpr std::size_t kMaxConnectionBytes = std::size_t{16} << 10U;
  static constexpr unsigned kIdleSeconds = 10;

  /// `sources` are asked on the server's thread. INVALID_ARGUMENT, UNAVAILABLE: the address is
  /// none, or nobody can listen there.
  static absl::StatusOr<std::unique_ptr<AdminServer>> start(absl::string_view address,
                                                            AdminSources sources);

  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  /// As it can be connected to: with the port that was taken where 0 was asked for.
  std::string address() const { return to_string(listener_.address()); }

  AdminResponse respond(AdminRequest request) const;

 private:
  AdminServer(AdminListener listener, AdminSources sources)
      : listener_(std::move(listener)), sources_(std::move(sources)) {}

  AdminListener listener_;
  const AdminSources sources_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace signalbox::channel
