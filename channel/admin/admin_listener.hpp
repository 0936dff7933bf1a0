// SPDX-License-Identifier: Apache-2.0
//
// AdminListener — the socket that an AdminServer listens on.
//
//   AdminAddress ─▶ [open] ─▶ a listening descriptor ─▶ AdminServer
//
// Invariants
//   L1  A unix socket has mode 0660 before anybody can connect to it.
//   L2  A socket that a dead process left behind is replaced; one that somebody listens on, or a
//       file that is no socket, is left alone, and open() fails.
//   L3  At its end it takes its own socket out of the file system, and nobody else's.

#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include <sys/types.h>

#include "channel/admin/admin_address.hpp"

namespace signalbox::channel {

class AdminListener {
 public:
  /// UNAVAILABLE: the address, and why nobody can listen there. Port 0 takes a free one.
  static absl::StatusOr<AdminListener> open(const AdminAddress& address);

  AdminListener(AdminListener&& other) noexcept;
  AdminListener& operator=(AdminListener&&) = delete;
  ~AdminListener();

  /// The address that is listened on, with the port that was taken.
  const AdminAddress& address() const { return address_; }

  /// Gives the descriptor away, with the duty to close it.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  /// Which file it is, whatever becomes of its name.
  struct File {
    dev_t device = 0;
    ino_t number = 0;

    friend bool operator==(const File&, const File&) = default;
  };

  AdminListener(AdminAddress address, int descriptor)
      : address_(std::move(address)), descriptor_(descriptor) {}

  absl::Status bind_unix();
  absl::Status bind_loopback();
  absl::Status listen();
  static File file_at(const std::string& path);

  AdminAddress address_;
  int descriptor_ = -1;
  File file_;  ///< Of a unix socket that was bound.
};

}  // namespace signalbox::channel
