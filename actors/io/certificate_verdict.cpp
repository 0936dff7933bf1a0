// SPDX-License-Identifier: Apache-2.0
#include "actors/io/certificate_verdict.hpp"

#include <cstddef>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "actors/io/pem_certificates.hpp"

namespace signalbox::actors {
namespace {

// The server chooses the names in its certificates, so their length is limited.
constexpr std::size_t kLongestName = 128;

struct Stack {
  Stack() = default;
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  ~Stack() { sk_X509_pop_free(certificates, X509_free); }

  STACK_OF(X509) * const certificates { sk_X509_new_null() };
};

// The name in quotes, cut off after kLongestName bytes.
std::string in_quotes(const X509_NAME* name) {
  const std::string text = name_text(name);
  return absl::StrCat(
      "\"", text.substr(0, kLongestName), text.size() > kLongestName ? "...\"" : "\"");
}

std::string time_text(const ASN1_TIME* time) {
  return absl::FormatTime(
      "%E4Y-%m-%d %H:%M:%S UTC", time_of(time).value_or(absl::UnixEpoch()), absl::UTCTimeZone());
}

// Names the certificate at fault by its place in the chain that OpenSSL has built.
std::string subject_in(X509_STORE_CTX& checked, const X509& certificate, absl::string_view roots) {
  const int place = X509_STORE_CTX_get_error_depth(&checked);
  if (place == 0) return "the server's certificate";
  const std::string name = in_quotes(X509_get_subject_name(&certificate));
  return place < X509_STORE_CTX_get_num_untrusted(&checked)
             ? absl::StrCat("certificate ", name, " of the server's chain")
             : absl::StrCat("certificate ", name, " of ", roots);
}

std::string fault_of(int error, const X509& certificate, absl::string_view roots) {
  const std::string unsigned_by = absl::StrCat(" signed by any certificate of ", roots);
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::StrCat(" expired ", time_text(X509_get0_notAfter(&certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::StrCat(" is not valid before ", time_text(X509_get0_notBefore(&certificate)));
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return absl::StrCat(" is self-signed, and not", unsigned_by);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return absl::StrCat(
          " (issuer ", in_quotes(X509_get_issuer_name(&certificate)), ") is not", unsigned_by);
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return absl::StrCat(" is not",
                          unsigned_by,
                          ": the certificate ",
                          in_quotes(X509_get_issuer_name(&certificate)),
                          " there has another key");
    default:
      return absl::StrCat(" does not verify: ", X509_verify_cert_error_string(error));
  }
}

// Fills the store with the roots, and sets the flags that gRPC sets. False: there are no roots.
bool add_roots(absl::string_view pem, X509_STORE& store) {
  X509_STORE_set_flags(&store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
  if (pem.empty()) return X509_STORE_set_default_paths(&store) == 1;
  bool has_any = false;
  for (const CertificatePtr& root : read_certificates(pem).certificates)
    has_any = X509_STORE_add_cert(&store, root.get()) == 1 || has_any;
  return has_any;
}

std::string verdict_of(absl::string_view chain, absl::string_view roots, absl::string_view name) {
  const Stack sent;
  for (CertificatePtr& certificate : read_certificates(chain).certificates) {
    X509* const owned = certificate.release();
    if (sk_X509_push(sent.certificates, owned) <= 0) X509_free(owned);
  }
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(),
                                                                      X509_STORE_free);
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check(X509_STORE_CTX_new(),
                                                                              X509_STORE_CTX_free);
  if (sk_X509_num(sent.certificates) == 0 || !add_roots(roots, *store)) return "";
  X509* const own = sk_X509_value(sent.certificates, 0);
  X509_STORE_CTX_init(check.get(), store.get(), own, sent.certificates);
  X509_STORE_CTX_set_default(check.get(), "ssl_server");
  if (X509_verify_cert(check.get()) == 1) return "";
  // OpenSSL stops at the first fault that it finds, which is that of the current certificate.
  X509* const current = X509_STORE_CTX_get_current_cert(check.get());
  const X509& certificate = current == nullptr ? *own : *current;
  return absl::StrCat(subject_in(*check, certificate, name),
                      fault_of(X509_STORE_CTX_get_error(check.get()), certificate, name));
}

}  // namespace

std::string certificate_verdict(absl::string_view chain,
                                absl::string_view roots,
                                absl::string_view name) {
  std::string verdict = verdict_of(chain, roots, name);
  ERR_clear_error();
  return verdict;
}

}  // namespace signalbox::actors
