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

  /// The first certificate of our own chain to end; nullopt: there is no chain.
  std::optional<Time> identity;
  /// The last of the roots to end: until then a bundle may verify servers. nullopt: there are no
  /// roots of our own.
  std::optional<Time> roots;

  friend bool operator==(const CertificateEnds&, const CertificateEnds&) = default;
};

}  // namespace signalbox
