// SPDX-License-Identifier: Apache-2.0
//
// AdminListener — the socket that an AdminServer listens on.
//
//   AdminAddress ─▶ [open] ─▶ a listening descriptor ─▶ AdminServer
//
// Invariants
//   L1  A unix socket has mode 0660 before a client can connect to it.
//   L2  A socket that a dead process left behind is replaced. A socket on which a process listens,
//       or a file that is no socket, is left alone, and open() fails.
//   L3  The destructor removes the AdminListener's own socket from the file system. If another file
//       has the socket's name by then, the destructor leaves that file alone.

#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include <sys/types.h>

#include "channel/admin/admin_address.hpp"

namespace signalbox::channel {

class AdminListener {
 public:
  /// Binds the address and listens on it. Port 0 takes a free port. Errors are UNAVAILABLE, and
  /// name the address and the reason.
  static absl::StatusOr<AdminListener> open(const AdminAddress& address);

  AdminListener(AdminListener&& other) noexcept;
  AdminListener& operator=(AdminListener&&) = delete;
  ~AdminListener();

  /// The address of the listening socket; port 0 is replaced by the port that was taken.
  const AdminAddress& address() const { return address_; }

  /// Gives up the descriptor, which the caller must close.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  /// Device and inode identify a file even if another file has its name now (L3).
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
  File file_;  ///< The unix socket that was bound.
};

}  // namespace signalbox::channel
