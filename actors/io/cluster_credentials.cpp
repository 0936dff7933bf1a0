// SPDX-License-Identifier: Apache-2.0
#include "actors/io/cluster_credentials.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "actors/io/peer_certificate.hpp"
#include "lb/subchannel/peer_names.hpp"

namespace signalbox::actors {
namespace {

// Connections that are made within this time after a reading of the files use that reading, unless
// refresh_interval is shorter. So ten thousand connections that are made at once read each file
// about once a second.
constexpr Duration kLongestReuse = std::chrono::seconds(1);

// The most credentials in the cache, which has one for each UpstreamTls. A full cache is emptied,
// and credentials are made anew when they are needed.
constexpr std::size_t kMostKept = 1024;

class NameVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit NameVerifier(const std::vector<TextMatcher>& allowed) : check_(allowed) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* sync_status) override {
    const grpc::string_ref pem = request->peer_cert();
    const absl::Status status = check_.check(names_in({pem.data(), pem.size()}));
    if (!status.ok())
      *sync_status = {grpc::StatusCode::UNAUTHENTICATED, std::string(status.message())};
    return true;
  }

  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const lb::PeerNameCheck check_;
};

// The files of one certificate provider instance. Reading the roots and reading the identity fail
// independently, because a cluster may need only one of them.
class Provider {
 public:
  Provider(const std::string& name,
           const xds::CertificateFiles& files,
           const TlsFiles::Complain& complain,
           const ShowFiles& show)
      : name_(absl::StrCat("certificate provider instance \"", name, "\"")),
        ca_(files.ca_certificate_file),
        has_roots_(!ca_.empty()),
        has_identity_(!files.certificate_file.empty()),
        roots_(std::make_shared<TlsFiles>(
            xds::CertificateFiles{.ca_certificate_file = files.ca_certificate_file},
            prefixed(complain),
            std::min(files.refresh_interval, kLongestReuse))),
        identity_(std::make_shared<TlsFiles>(
            xds::CertificateFiles{.certificate_file = files.certificate_file,
                                  .private_key_file = files.private_key_file},
            prefixed(complain),
            std::min(files.refresh_interval, kLongestReuse))) {
    if (show && has_roots_) show(roots_);
    if (show && has_identity_) show(identity_);
  }

  absl::StatusOr<PemTexts> roots() { return read(*roots_, has_roots_, "ca_certificate_file"); }

  std::string roots_name() const {
    return absl::StrCat("ca_certificate_file ", ca_, " of ", name_);
  }

  absl::StatusOr<PemTexts> identity() {
    return read(*identity_, has_identity_, "certificate_file");
  }

 private:
  TlsFiles::Complain prefixed(const TlsFiles::Complain& complain) const {
    return [name = name_, complain](const std::string& text) {
      if (complain) complain(absl::StrCat(name, ": ", text));
    };
  }

  // Returns an error if the provider has no such file. Otherwise the empty text of the missing file
  // would make gRPC use the system's root certificates, or present no certificate.
  absl::StatusOr<PemTexts> read(TlsFiles& files, bool is_there, absl::string_view field) const {
    if (!is_there) return absl::FailedPreconditionError(absl::StrCat(name_, ": it has no ", field));
    auto texts = files.read();
    if (texts.ok()) return texts;
    return absl::FailedPreconditionError(absl::StrCat(name_, ": ", texts.status().message()));
  }

  const std::string name_;
  const std::string ca_;
  const bool has_roots_;
  const bool has_identity_;
  const std::shared_ptr<TlsFiles> roots_;
  const std::shared_ptr<TlsFiles> identity_;
};

// Makes credentials from the settings and the files' texts. `roots` says in the text of a refusal
// where the root certificates are from.
ConnectionCredentials make(const UpstreamTls& tls, const PemTexts& texts, std::string roots) {
  std::vector<grpc::experimental::IdentityKeyCertPair> identity;
  if (tls.identity) identity.push_back({texts.private_key, texts.certificate_chain});
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(texts.roots, identity));
  options.watch_root_certs();
  if (tls.identity) options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<NameVerifier>(tls.subject_alt_names));
  options.set_check_call_host(false);
  return {grpc::experimental::TlsCredentials(options),
          explaining_credentials(texts.roots, std::move(roots))};
}

class Source {
 public:
  Source(const std::map<std::string, xds::CertificateFiles>& providers,
         const TlsFiles::Complain& complain,
         const ShowFiles& show) {
    for (const auto& [name, files] : providers)
      providers_.emplace(name, std::make_unique<Provider>(name, files, complain, show));
  }

  // Returns the same credentials object for equal `tls` while the files do not change and the cache
  // is not emptied (kMostKept), so that connections share it.
  absl::StatusOr<ConnectionCredentials> get(const UpstreamTls& tls) {
    auto texts = read(tls);
    if (!texts.ok()) return texts.status();
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= kMostKept && !kept_.contains(tls)) kept_.clear();
    Kept& kept = kept_[tls];
    if (kept.credentials.grpc == nullptr || kept.texts != *texts) {
      const Provider& from = *find(std::get<CertificateProvider>(tls.roots));
      kept = {*texts, make(tls, *texts, from.roots_name())};
    }
    return kept.credentials;
  }

 private:
  struct Kept {
    PemTexts texts;
    ConnectionCredentials credentials;
  };

  absl::StatusOr<PemTexts> read(const UpstreamTls& tls) {
    const auto* roots = std::get_if<CertificateProvider>(&tls.roots);
    if (roots == nullptr)
      return absl::UnimplementedError("system_root_certs cannot be used yet (A82)");
    Provider* const from = find(*roots);
    if (from == nullptr) return unknown(*roots);
    auto texts = from->roots();
    if (!texts.ok() || !tls.identity) return texts;
    Provider* const shown = find(*tls.identity);
    if (shown == nullptr) return unknown(*tls.identity);
    auto identity = shown->identity();
    if (!identity.ok()) return identity.status();
    identity->roots = texts->roots;
    return identity;
  }

  Provider* find(const CertificateProvider& wanted) {
    const auto found = providers_.find(wanted.instance_name);
    return found == providers_.end() ? nullptr : found->second.get();
  }

  // The parser refuses clusters that name an unknown instance. This check is for other callers.
  static absl::Status unknown(const CertificateProvider& wanted) {
    return absl::FailedPreconditionError(absl::StrCat("certificate provider instance \"",
                                                      wanted.instance_name,
                                                      "\": the bootstrap has none of that name"));
  }

  std::map<std::string, std::unique_ptr<Provider>> providers_;
  std::mutex mutex_;
  std::map<UpstreamTls, Kept> kept_;
};

}  // namespace

ClusterCredentials make_cluster_credentials(
    const std::map<std::string, xds::CertificateFiles>& providers,
    TlsFiles::Complain complain,
    const ShowFiles& show) {
  return [source = std::make_shared<Source>(providers, complain, show)](const UpstreamTls& tls) {
    return source->get(tls);
  };
}

}  // namespace signalbox::actors
