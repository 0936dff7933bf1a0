// SPDX-License-Identifier: Apache-2.0
//
// CookieSeal — cookies that say nothing to who has them, and that nobody else can make.
//
//   key file ─▶ read_seal_keys ─▶ [CookieSeal] ◀─ seal, open ◀─ calls of sessions
//                                     └ exchange(): new keys; the old ones are destroyed later
//
//   value = base64( version 1 │ nonce, 12 bytes │ AES-256-GCM(text) │ tag, 16 bytes )
//
// What is authenticated beside the text, and not in the value, is its purpose: the cookie's name
// and the target. The nonce is by chance, from OpenSSL's generator: with one key no more than 2^32
// cookies should be sealed.
//
// The first key seals, all of them open. A key is changed in two steps: every process knows the new
// one as the second, then every process has it first.

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

/// Of AES-256.
using SealKey = std::array<unsigned char, 32>;
/// The first seals. Never empty.
using SealKeys = std::vector<SealKey>;

inline constexpr std::size_t kMostSealKeys = 8;

/// A key on each line, as `openssl rand -base64 32` writes it; empty lines are left out, and those
/// that begin with '#'. The error says which line is wrong, and never what is in it.
absl::StatusOr<SealKeys> read_seal_keys(absl::string_view text);

class CookieSeal {
 public:
  /// Precondition: `keys` is not empty.
  explicit CookieSeal(SealKeys keys);
  ~CookieSeal();
  CookieSeal(const CookieSeal&) = delete;
  CookieSeal& operator=(const CookieSeal&) = delete;

  /// Appends the value to `into`. False, and `into` is as it was: there was no chance to be had.
  /// Thread-safe, lock-free, inside a read section of any SnapshotCell; so is open().
  bool seal(absl::string_view text, absl::string_view purpose, std::string& into) const;

  enum class Opened : std::uint8_t {
    kNo,  ///< No key of ours has sealed it, for this purpose. `text` means nothing.
    kYes,
    kByOldKey,  ///< By another than the first.
  };

  Opened open(absl::string_view value, absl::string_view purpose, std::string& text) const;

  /// How much longer a sealed text is than a plain one, before base64.
  static constexpr std::size_t kOverhead = 1 + 12 + 16;

  /// Seals with others from now on. Destroy what is returned after
  /// SnapshotCell::wait_for_readers().
  std::unique_ptr<const SealKeys> exchange(SealKeys keys);

 private:
  std::atomic<const SealKeys*> keys_;
};

using CookieSealPtr = std::shared_ptr<const CookieSeal>;

}  // namespace signalbox::lb
