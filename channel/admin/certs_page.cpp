// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/certs_page.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <nlohmann/json.hpp>

#include "actors/io/watched_file.hpp"
#include "channel/admin/html.hpp"
#include "channel/admin/status_json.hpp"

namespace signalbox::channel {
namespace {

using actors::CertificateFacts;
using Json = nlohmann::ordered_json;
using Days = std::chrono::duration<std::int64_t, std::ratio<86400>>;

constexpr std::size_t kMostBytes = std::size_t{4} << 20U;
constexpr std::size_t kMostOnPage = 20;  // A file of roots may have hundreds.
// In days. A certificate that expires sooner has a badge of a warning colour. The alerts in
// conf/prometheus/alerts.yml have the same limit.
constexpr std::int64_t kSoon = 7;

CertificateFile read(const std::string& path) {
  CertificateFile file{.path = path};
  if (path.empty()) return file;
  const auto text = actors::read_file(path, kMostBytes);
  if (!text.ok()) {
    file.status = text.status();
    return file;
  }
  file.certificates = actors::facts_in(*text);
  if (file.certificates.empty())
    file.status = absl::InvalidArgumentError(absl::StrCat(path, ": the file has no certificate"));
  return file;
}

CertificateUse use(std::string name, const xds::CertificateFiles& files) {
  return {std::move(name), read(files.ca_certificate_file), read(files.certificate_file)};
}

std::int64_t days_left(const CertificateFacts& certificate, WallTime now) {
  return std::chrono::floor<Days>(certificate.expires - now).count();
}

std::string validity(const CertificateFacts& certificate, WallTime now) {
  if (certificate.expires <= now) return badge("bad", "expired");
  if (certificate.valid_from > now) return badge("bad", "not valid yet");
  const std::int64_t days = days_left(certificate, now);
  return badge(days < kSoon ? "fair" : "good",
               absl::StrCat(days, days == 1 ? " day left" : " days left"));
}

std::string names_of(const CertificateFacts& certificate) {
  std::vector<std::string> names = certificate.dns;
  names.insert(names.end(), certificate.other.begin(), certificate.other.end());
  return escape(absl::StrJoin(names, ", "));
}

std::string file_section(absl::string_view what,
                         absl::string_view without,
                         const CertificateFile& file,
                         WallTime now) {
  if (file.path.empty()) return absl::StrCat("<p>", what, ": ", without, "</p>\n");
  std::string html = absl::StrCat("<p>", what, ": <code>", escape(file.path), "</code></p>\n");
  if (!file.status.ok())
    return absl::StrCat(html, "<p class=\"bad\">", escape(file.status.message()), "</p>\n");
  html +=
      "<table><thead><tr><th>subject</th><th>names</th><th>validity</th><th>from</th>"
      "<th>until</th><th>serial number</th></tr></thead>\n<tbody>\n";
  const std::size_t shown = std::min(kMostOnPage, file.certificates.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const CertificateFacts& one = file.certificates[i];
    absl::StrAppend(&html,
                    "<tr><th scope=\"row\">",
                    escape(one.subject),
                    "</th><td data-label=\"names\">",
                    names_of(one),
                    "</td><td data-label=\"validity\">",
                    validity(one, now),
                    "</td><td data-label=\"from\">",
                    rfc3339(one.valid_from),
                    "</td><td data-label=\"until\">",
                    rfc3339(one.expires));
    absl::StrAppend(
        &html, "</td><td class=\"mono\" data-label=\"serial\">", one.serial, "</td></tr>\n");
  }
  html += "</tbody></table>\n";
  if (shown < file.certificates.size())
    absl::StrAppend(&html, "<p>and ", file.certificates.size() - shown, " more</p>\n");
  return html;
}

Json details(const CertificateFile& file, WallTime now) {
  Json out = Json::array();
  for (const CertificateFacts& one : file.certificates) {
    Json names = Json::array();
    for (const std::string& name : one.dns)
      names.push_back({{"dns", name}});
    for (const std::string& name : one.other)
      names.push_back({{name.find("://") == std::string::npos ? "ip_address" : "uri", name}});
    out.push_back(
        {{"path", file.path},
         {"serial_number", one.serial},
         {"subject_alt_names", std::move(names)},
         {"days_until_expiration", absl::StrCat(std::max<std::int64_t>(0, days_left(one, now)))},
         {"valid_from", rfc3339(one.valid_from)},
         {"expiration_time", rfc3339(one.expires)}});
  }
  return out;
}

}  // namespace

std::vector<CertificateUse> certificate_files(const xds::Bootstrap& bootstrap) {
  std::vector<CertificateUse> uses;
  // Two authorities may name one server with different certificate files.
  std::vector<std::pair<std::string, xds::CertificateFiles>> known;
  const auto add_server = [&](const xds::ServerConfig& server) {
    const auto* tls = std::get_if<xds::TlsCredentials>(&server.channel_creds);
    if (tls == nullptr) return;
    std::pair one("xDS server " + server.server_uri, tls->files);
    if (std::ranges::find(known, one) != known.end()) return;
    uses.push_back(use(one.first, one.second));
    known.push_back(std::move(one));
  };
  for (const xds::ServerConfig& server : bootstrap.servers)
    add_server(server);
  for (const auto& [name, authority] : bootstrap.authorities) {
    for (const xds::ServerConfig& server : authority.servers)
      add_server(server);
  }
  for (const auto& [name, files] : bootstrap.certificate_providers)
    uses.push_back(use("certificate provider " + name, files));
  return uses;
}

std::string certs_page(const std::vector<CertificateUse>& uses, const RuntimeStatus& status) {
  std::string body =
      "<p class=\"quiet\">The files of the bootstrap as they are now. A connection that was made "
      "earlier keeps its certificates. <a href=\"/certs?format=json\">As JSON</a>.</p>\n";
  if (uses.empty()) body += "<p>The bootstrap names no certificate files.</p>\n";
  for (const CertificateUse& use : uses) {
    absl::StrAppend(&body,
                    "<h2>",
                    escape(use.use),
                    "</h2>\n",
                    file_section("Trusted roots", "those of the system", use.roots, status.made),
                    file_section("Own certificate", "none is presented", use.chain, status.made));
  }
  return page("Certificates", "/certs", status, body);
}

std::string certs_json(const std::vector<CertificateUse>& uses, WallTime now) {
  Json certificates = Json::array();
  for (const CertificateUse& use : uses) {
    certificates.push_back(
        {{"ca_cert", details(use.roots, now)}, {"cert_chain", details(use.chain, now)}});
  }
  const Json out{{"certificates", std::move(certificates)}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace signalbox::channel
