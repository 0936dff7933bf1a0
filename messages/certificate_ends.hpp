// SPDX-License-Identifier: Apache-2.0
//
// CertificateEnds — when certificates in files become invalid.
//
//   actors/io/tls_files ─▶ [CertificateEnds] ─▶ metrics: signalbox_certificate_expiry_…

#pragma once

#include <chrono>
#include <optional>

namespace signalbox {

struct CertificateEnds {
  using Time = std::chrono::system_clock::time_point;

  /// The earliest end among the certificates of the chain that signalbox presents; nullopt: there
  /// is no chain.
  std::optional<Time> identity;
  /// The latest end among the root certificates that signalbox trusts: until then, at least one of
  /// them is valid. nullopt: no root certificates are configured in files.
  std::optional<Time> roots;

  friend bool operator==(const CertificateEnds&, const CertificateEnds&) = default;
};

}  // namespace signalbox
