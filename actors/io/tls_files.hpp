// SPDX-License-Identifier: Apache-2.0
//
// TlsFiles — certificates on disk: the present files, or the last good ones.
//
//   ca, certificate, key ─▶ [TlsFiles::read] ─▶ PEM texts that fit each other
//
// Only a TLS handshake uses the files, so they are read for each new connection. No timer is needed
// to notice a changed file. A caller that makes very many connections at once can use the result of
// one reading for a while (`reuse_for`). While the files cannot be used (gone, no PEM, a key of
// another certificate, half replaced), their last good content stays in use, and `complain` is
// called once for the fault.
//
// Thread-safe. Errors name the field, the file and the fault.
//
// Source: gRFC A29, A65.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "messages/certificate_ends.hpp"
#include "xds/bootstrap.hpp"

namespace signalbox::actors {

struct PemTexts {
  std::string roots;  ///< The PEM text of the roots; empty: the system's roots.
  std::string certificate_chain;
  std::string private_key;
  CertificateEnds ends = {};

  friend bool operator==(const PemTexts&, const PemTexts&) = default;
};

class TlsFiles {
 public:
  /// Gets the text of a fault. Called inside read(), on the caller's thread. It must not call
  /// read().
  using Complain = std::function<void(const std::string& text)>;

  /// read() opens the files only if the last reading is older than `reuse_for`. Until then it
  /// returns the result of that reading, be it texts or an error.
  TlsFiles(xds::CertificateFiles files, Complain complain, Duration reuse_for = Duration::zero())
      : files_(std::move(files)), complain_(std::move(complain)), reuse_for_(reuse_for) {}

  /// Returns the present files, or the last good files. Returns an error only if the files were
  /// never good.
  absl::StatusOr<PemTexts> read();

  /// When the certificates that read() returns become invalid; empty if the files were never good.
  /// Calls read(), so that replaced files are noticed even if no connection is made.
  CertificateEnds ends();

 private:
  void read_again();

  const xds::CertificateFiles files_;
  const Complain complain_;
  const Duration reuse_for_;
  std::mutex mutex_;  ///< Guards the members below.
  std::optional<PemTexts> good_;
  absl::Status failure_;            ///< The last reading's error.
  std::optional<Instant> read_at_;  ///< When the files were last read; nullopt: never.
  std::string complained_;  ///< The last reported fault; empty: none since the files were good.
};

/// Receives each TlsFiles in use, once. The receiver keeps it, and calls ends() at any time. May be
/// empty.
using ShowFiles = std::function<void(const std::shared_ptr<TlsFiles>&)>;

}  // namespace signalbox::actors
