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
  /// is no chain, or no end in it can be read.
  std::optional<Time> identity;
  /// The latest end among the root certificates that signalbox trusts: after that, none of them is
  /// valid. nullopt: no root certificates are configured in files, or no end can be read.
  std::optional<Time> roots;

  friend bool operator==(const CertificateEnds&, const CertificateEnds&) = default;
};

}  // namespace signalbox
