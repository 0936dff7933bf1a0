// SPDX-License-Identifier: Apache-2.0
//
// TlsFiles — certificates on disk as they are now, and as they last were good.
//
//   ca, certificate, key ─▶ [TlsFiles::read] ─▶ PEM texts that belong together
//
// Read for each new connection, which is where certificates matter: so a changed file is never
// noticed later than refresh_interval asks. Who makes very many connections at once lets a reading
// do for a while. While they cannot be used (gone, no PEM, a key that is
// another certificate's, half exchanged), the last good ones stay, and `complain` is told once.
//
// Thread-safe. Errors name the field, the file, and what is wrong with it.
//
// Source: gRFC A29, A65.

#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "xds/bootstrap.hpp"

namespace signalbox::actors {

struct PemTexts {
  std::string roots;  ///< Empty: the system's.
  std::string certificate_chain;
  std::string private_key;

  friend bool operator==(const PemTexts&, const PemTexts&) = default;
};

class TlsFiles {
 public:
  /// Called while read() runs, on its thread; it must not call back.
  using Complain = std::function<void(const std::string& text)>;

  /// `reuse_for`: what was read less long ago is not read again.
  TlsFiles(xds::CertificateFiles files, Complain complain, Duration reuse_for = Duration::zero())
      : files_(std::move(files)), complain_(std::move(complain)), reuse_for_(reuse_for) {}

  /// An error only where they were never good.
  absl::StatusOr<PemTexts> read();

 private:
  void read_again();

  const xds::CertificateFiles files_;
  const Complain complain_;
  const Duration reuse_for_;
  std::mutex mutex_;  ///< Guards all below.
  std::optional<PemTexts> good_;
  absl::Status failure_;            ///< Of the last reading.
  std::optional<Instant> read_at_;  ///< nullopt: there was none.
  std::string complained_;          ///< Of the files as they are; empty: they are good.
};

}  // namespace signalbox::actors
