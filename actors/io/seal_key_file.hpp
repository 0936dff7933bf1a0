// SPDX-License-Identifier: Apache-2.0
//
// SealKeyFile — keeps the keys that encrypt session cookies up to date with their file.
//
//   key file ─▶ [SealKeyFile]: a thread of its own ─▶ exchange() ─▶ CookieSeal ◀─ calls
//                     ├▶ complain: the file is bad now; the last good keys stay in use
//                     └▶ warn: the file is used, but other users can read it
//
// A file that other users can write is refused: they could forge cookies.
//
// Source: lb/session/sealed_cookie.hpp (the file's format).

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "actors/io/socket_loop.hpp"
#include "actors/io/watched_file.hpp"
#include "lb/session/sealed_cookie.hpp"

namespace signalbox::actors {

class SealKeyFile final : private SocketLoop::Handler {
 public:
  /// Called on this object's thread. The text has the file's name, the fault, and the line if one
  /// is bad. It never has the file's content.
  using Complain = std::function<void(const std::string& text)>;

  /// Reads the file, and follows its changes from now on. Returns an error if the file is bad or
  /// cannot be watched; the error names the file, and the line if one is bad. Returns
  /// RESOURCE_EXHAUSTED if the file is too long, or if no file descriptor is left for this object's
  /// thread. `warn` is called like `complain`; unset: no warnings.
  static absl::StatusOr<std::unique_ptr<SealKeyFile>> start(const std::string& path,
                                                            Complain complain,
                                                            Complain warn = nullptr);

  /// Joins this object's thread.
  ~SealKeyFile() override;
  SealKeyFile(const SealKeyFile&) = delete;
  SealKeyFile& operator=(const SealKeyFile&) = delete;

  /// The seal with the current keys. It may outlive this object; its keys then no longer change.
  lb::CookieSealPtr seal() const { return seal_; }

 private:
  SealKeyFile(WatchedFile file,
              lb::SealKeys keys,
              std::unique_ptr<SocketLoop> loop,
              Complain complain,
              Complain warn);

  void happened(SocketLoop::Id file) override;
  void is_due(SocketLoop::Id file) override;

  void follow();
  void complain_when_due();
  void take_change();
  void warn_of_readers();

  WatchedFile file_;
  const std::shared_ptr<lb::CookieSeal> seal_;
  const Complain complain_;
  const Complain warn_;
  bool is_forbidden_ = false;  // Other users can write the present file.
  bool has_readers_ = false;   // Other users could read the file at the last check.
  std::string trouble_;        // The present file's fault, not reported yet.
  Instant settled_at_;         // The time to report `trouble_`, unless the file changes again.
  const std::unique_ptr<SocketLoop> loop_;
};

}  // namespace signalbox::actors
