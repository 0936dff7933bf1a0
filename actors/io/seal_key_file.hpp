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

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

#include "actors/io/watched_file.hpp"
#include "lb/session/sealed_cookie.hpp"

namespace signalbox::actors {

class SealKeyFile {
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
  ~SealKeyFile();
  SealKeyFile(const SealKeyFile&) = delete;
  SealKeyFile& operator=(const SealKeyFile&) = delete;

  /// May outlive the file: then its keys stay as they are.
  lb::CookieSealPtr seal() const { return seal_; }

 private:
  SealKeyFile(WatchedFile file, lb::SealKeys keys, int stop, Complain complain, Complain warn);

  using Clock = std::chrono::steady_clock;

  void run();
  int patience() const;
  void take_change();
  void warn_of_readers();

  WatchedFile file_;
  const std::shared_ptr<lb::CookieSeal> seal_;
  const int stop_;  // Readable when it is the end.
  const Complain complain_;
  const Complain warn_;
  bool is_forbidden_ = false;     // Others can write the file as it is.
  bool has_readers_ = false;      // Others can read the file, and that was told.
  std::string trouble_;           // With the file as it is, not complained of yet.
  Clock::time_point settled_at_;  // When to complain, unless the file has changed again.
  std::thread thread_;
};

}  // namespace signalbox::actors
