// SPDX-License-Identifier: Apache-2.0
//
// SealKeyFile — the keys that cookies are sealed with, as their file has them now.
//
//   key file ─▶ [SealKeyFile]: a thread of its own ─▶ exchange() ─▶ CookieSeal ◀─ calls
//                     ├▶ complain: it cannot be used now; the last good keys stay
//                     └▶ warn: it is used, and others can read it
//
// A file that others of the machine can write is not used: they could make cookies.
//
// Source: lb/session/sealed_cookie.hpp (what is in the file).

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
  /// Called on the file's thread, with the file's name, its line and what is wrong; never with what
  /// is in it.
  using Complain = std::function<void(const std::string& text)>;

  /// An error names the file, and the line where one is wrong. `warn` is called as `complain` is;
  /// unset: nothing is warned of.
  static absl::StatusOr<std::unique_ptr<SealKeyFile>> start(const std::string& path,
                                                            Complain complain,
                                                            Complain warn = nullptr);

  /// Joins the thread.
  ~SealKeyFile() override;
  SealKeyFile(const SealKeyFile&) = delete;
  SealKeyFile& operator=(const SealKeyFile&) = delete;

  /// May outlive the file: then its keys stay as they are.
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
  bool is_forbidden_ = false;  // Others can write the file as it is.
  bool has_readers_ = false;   // Others can read the file, and that was told.
  std::string trouble_;        // With the file as it is, not complained of yet.
  Instant settled_at_;         // When to complain, unless the file has changed again.
  const std::unique_ptr<SocketLoop> loop_;
};

}  // namespace signalbox::actors
