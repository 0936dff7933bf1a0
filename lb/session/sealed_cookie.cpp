// SPDX-License-Identifier: Apache-2.0
#include "lb/session/sealed_cookie.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

constexpr char kVersion = 1;
constexpr std::size_t kNonce = 12;
constexpr std::size_t kTag = 16;
static_assert(CookieSeal::kOverhead == 1 + kNonce + kTag);

struct Free {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

using Context = std::unique_ptr<EVP_CIPHER_CTX, Free>;

// Each thread keeps one context for sealing and one for opening, because setting a new context up
// costs more than the encryption of a cookie.
EVP_CIPHER_CTX* context(bool seals) {
  const auto made = [](bool which) {
    Context fresh(EVP_CIPHER_CTX_new());
    const int done =
        EVP_CipherInit_ex(fresh.get(), EVP_aes_256_gcm(), nullptr, nullptr, nullptr, which ? 1 : 0);
    SIGNALBOX_INVARIANT(done == 1, "OpenSSL has AES-256-GCM");
    return fresh;
  };
  thread_local const Context sealing = made(true);
  thread_local const Context opening = made(false);
  return seals ? sealing.get() : opening.get();
}

const unsigned char* bytes_of(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* bytes_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

bool feed(EVP_CIPHER_CTX* with, unsigned char* out, absl::string_view text) {
  int written = 0;
  return EVP_CipherUpdate(with, out, &written, bytes_of(text), static_cast<int>(text.size())) == 1;
}

// Decrypts `sealed` into `text`. False: `sealed` was not made with this key and purpose. OpenSSL
// compares the tag in constant time, so the duration tells an attacker nothing. Precondition:
// `text` has space for the whole text.
bool open_with(const SealKey& key,
               absl::string_view sealed,
               absl::string_view purpose,
               char* text) {
  EVP_CIPHER_CTX* const with = context(false);
  const absl::string_view nonce = sealed.substr(1, kNonce);
  const absl::string_view tag = sealed.substr(sealed.size() - kTag);
  const absl::string_view hidden = sealed.substr(1 + kNonce, sealed.size() - CookieSeal::kOverhead);
  std::array<unsigned char, kTag> expected{};
  std::copy(tag.begin(), tag.end(), expected.begin());
  auto* const out = reinterpret_cast<unsigned char*>(text);
  int written = 0;
  return EVP_CipherInit_ex(with, nullptr, nullptr, key.data(), bytes_of(nonce), -1) == 1 &&
         feed(with, nullptr, purpose) && feed(with, out, hidden) &&
         EVP_CIPHER_CTX_ctrl(with, EVP_CTRL_GCM_SET_TAG, kTag, expected.data()) == 1 &&
         EVP_CipherFinal_ex(with, out, &written) == 1;
}

}  // namespace

absl::StatusOr<SealKeys> read_seal_keys(absl::string_view text) {
  SealKeys keys;
  std::size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    std::string bytes;
    if (!absl::Base64Unescape(line, &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": must be 32 bytes in base64, found what is not base64"));
    }
    SealKey key{};
    if (bytes.size() != key.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, ": must be 32 bytes in base64, found ", bytes.size(), " bytes"));
    }
    std::ranges::copy(bytes, key.begin());
    OPENSSL_cleanse(bytes.data(), bytes.size());
    keys.push_back(key);
  }
  if (keys.empty()) return absl::InvalidArgumentError("must hold a key, found none");
  if (keys.size() > kMostSealKeys) {
    return absl::InvalidArgumentError(
        absl::StrCat("must hold at most ", kMostSealKeys, " keys, found ", keys.size()));
  }
  return keys;
}

CookieSeal::CookieSeal(SealKeys keys) : keys_(new SealKeys(std::move(keys))) {
  SIGNALBOX_INVARIANT(!keys_.load()->empty(), "a seal has a key");
}

CookieSeal::~CookieSeal() {
  delete keys_.load();
}

std::unique_ptr<const SealKeys> CookieSeal::exchange(SealKeys keys) {
  SIGNALBOX_INVARIANT(!keys.empty(), "a seal has a key");
  return std::unique_ptr<const SealKeys>(
      keys_.exchange(new SealKeys(std::move(keys)), std::memory_order_acq_rel));
}

bool CookieSeal::seal(absl::string_view text, absl::string_view purpose, std::string& into) const {
  const SealKey& key = keys_.load(std::memory_order_acquire)->front();
  thread_local std::string sealed;
  sealed.resize(text.size() + kOverhead);
  sealed[0] = kVersion;
  unsigned char* const nonce = bytes_of(sealed) + 1;
  unsigned char* const hidden = nonce + kNonce;
  EVP_CIPHER_CTX* const with = context(true);
  int written = 0;
  const bool is_done =
      RAND_bytes(nonce, kNonce) == 1 &&
      EVP_CipherInit_ex(with, nullptr, nullptr, key.data(), nonce, -1) == 1 &&
      feed(with, nullptr, purpose) && feed(with, hidden, text) &&
      EVP_CipherFinal_ex(with, hidden + text.size(), &written) == 1 &&
      EVP_CIPHER_CTX_ctrl(with, EVP_CTRL_GCM_GET_TAG, kTag, hidden + text.size()) == 1;
  if (!is_done) return false;
  thread_local std::string encoded;
  absl::Base64Escape(sealed, &encoded);
  into += encoded;
  return true;
}

CookieSeal::Opened CookieSeal::open(absl::string_view value,
                                    absl::string_view purpose,
                                    std::string& text) const {
  thread_local std::string sealed;
  if (!absl::Base64Unescape(value, &sealed)) return Opened::kNo;
  if (sealed.size() < kOverhead || sealed.front() != kVersion) return Opened::kNo;
  text.resize(sealed.size() - kOverhead);
  const SealKeys& keys = *keys_.load(std::memory_order_acquire);
  const auto opener = std::ranges::find_if(
      keys, [&](const SealKey& key) { return open_with(key, sealed, purpose, text.data()); });
  if (opener == keys.end()) return Opened::kNo;
  return opener == keys.begin() ? Opened::kYes : Opened::kByOldKey;
}

}  // namespace signalbox::lb
