// SPDX-License-Identifier: Apache-2.0
//
// TlsFiles — certificates on disk as they are now, and as they last were good.
//
//   ca, certificate, key ─▶ [TlsFiles::read] ─▶ PEM texts that belong together
//
// Read for each new connection, which is where certificates matter: so a changed file is never
// noticed later than refresh_interval asks. While they cannot be used (gone, no PEM, a key that is
// another certificate's, half exchanged), the last good ones stay, and `complain` is told once.
//
// Thread-safe. Errors name the field, the file, and what is wrong with it.
//
// Source: gRFC A65.

#pragma once

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

  TlsFiles(xds::CertificateFiles files, Complain complain)
      : files_(std::move(files)), complain_(std::move(complain)) {}

  /// An error only where they were never good.
  absl::StatusOr<PemTexts> read();

 private:
  const xds::CertificateFiles files_;
  const Complain complain_;
  std::mutex mutex_;  ///< Guards all below.
  std::optional<PemTexts> good_;
  std::string complained_;  ///< Of the files as they are; empty: they are good.
};

}  // namespace signalbox::actors
