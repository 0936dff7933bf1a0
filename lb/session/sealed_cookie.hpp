// SPDX-License-Identifier: Apache-2.0
//
// CookieSeal — encrypts session cookies. Without a key a client can neither read nor forge them.
//
//   key file ─▶ read_seal_keys ─▶ [CookieSeal] ◀─ seal, open ◀─ calls of sessions
//                                     └ exchange(): new keys; the old ones are destroyed later
//
//   value = base64( version 1 │ nonce, 12 bytes │ AES-256-GCM(text) │ tag, 16 bytes )
//
// The cookie's name and the target (the purpose) are authenticated too, but are not part of the
// value. So a cookie cannot be used under another name or for another target. The nonce is random,
// from OpenSSL's generator, so one key should seal at most 2^32 cookies.
//
// The first key seals, and every key opens. To replace a key, first give every process the new key
// in second place, so that all can open its cookies. Then move the new key to first place
// everywhere.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace signalbox::lb {

/// A key of AES-256.
using SealKey = std::array<unsigned char, 32>;
/// The keys that open cookies; the first key also seals. Never empty.
using SealKeys = std::vector<SealKey>;

inline constexpr std::size_t kMostSealKeys = 8;

/// Reads one key per line, as `openssl rand -base64 32` writes it. Empty lines and lines that begin
/// with '#' are skipped. INVALID_ARGUMENT: a line is no key (the text names the line, never its
/// content), there is no key, or there are more than kMostSealKeys.
absl::StatusOr<SealKeys> read_seal_keys(absl::string_view text);

class CookieSeal {
 public:
  /// Precondition: `keys` is not empty.
  explicit CookieSeal(SealKeys keys);
  ~CookieSeal();
  CookieSeal(const CookieSeal&) = delete;
  CookieSeal& operator=(const CookieSeal&) = delete;

  /// Appends the sealed, base64-encoded text to `into`. False, with `into` unchanged: there were no
  /// random bytes, or OpenSSL failed. Thread-safe. Takes no lock, but OpenSSL may take one while it
  /// makes the random bytes. Call seal() and open() in a read section of any SnapshotCell: the keys
  /// that they use are then not destroyed, even if exchange() replaces them meanwhile.
  bool seal(absl::string_view text, absl::string_view purpose, std::string& into) const;

  enum class Opened : std::uint8_t {
    kNo,  ///< No known key sealed it for this purpose; ignore `text`.
    kYes,
    kByOldKey,  ///< Sealed with one of the keys after the first.
  };

  Opened open(absl::string_view value, absl::string_view purpose, std::string& text) const;

  /// How many bytes sealing adds to a text, before base64.
  static constexpr std::size_t kOverhead = 1 + 12 + 16;

  /// Seals with `keys` from now on. Returns the previous keys, to be destroyed after
  /// SnapshotCell::wait_for_readers().
  std::unique_ptr<const SealKeys> exchange(SealKeys keys);

 private:
  std::atomic<const SealKeys*> keys_;
};

using CookieSealPtr = std::shared_ptr<const CookieSeal>;

}  // namespace signalbox::lb
