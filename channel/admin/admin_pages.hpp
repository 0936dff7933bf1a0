// SPDX-License-Identifier: Apache-2.0
//
// admin_pages — the responses of a runtime's admin server.
//
//   AdminServer ─▶ AdminRequest ─▶ [answer] ─▶ AdminResponse
//
//   for people: HTML that needs no script
//   GET /                    what is wrong, every target and cluster
//   GET /clusters            every endpoint; ?format=json: envoy.admin.v3.Clusters
//   GET /priorities          which priority carried calls, and when
//   GET /certs               certificate files; ?format=json: envoy.admin.v3.Certificates
//   GET /help                lists the pages, as text
//
//   for programs
//   GET /ready               200 LIVE or 503; ?target=TARGET
//   GET /status              JSON of RuntimeStatus (status_json.hpp)
//   GET /server_info         JSON: version, state, uptime
//   GET /config_dump         JSON (xds/dump_json.hpp); filters: ?type=LDS|RDS|CDS|EDS, ?name=NAME
//   GET /explain             JSON (xds/explanation_json.hpp): where a call would go, and why
//   GET /stats               the metrics as "NAME: VALUE"; ?filter=REGEX
//   GET /metrics, /stats/prometheus   Prometheus' text
//
// Invariants
//   A1  The server only reads: every method but GET is refused (405, or 403 by A2).
//   A2  A request that seems to be made by another site's web page is refused (403): it has an
//       Origin header, or a Sec-Fetch-Site header that is neither "none" nor "same-origin", or, on
//       a network socket, a Host header other than the loopback. When a user types an admin
//       page's address into a browser, the request has none of these three.
//   A3  A request with an unknown parameter is refused (400). So is an unknown format or type, a
//       bad regular expression, and a target that is not in use (404 for /ready). A mistyped filter
//       therefore never returns the unfiltered page.

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "channel/admin/certs_page.hpp"
#include "channel/admin/explain_page.hpp"
#include "messages/resource_dump.hpp"
#include "signalbox/runtime_status.hpp"

namespace signalbox::channel {

struct AdminRequest {
  std::string method;
  std::string path;                               ///< Decoded, without the query.
  std::multimap<std::string, std::string> query;  ///< Names and values, decoded.
  std::string host;                               ///< The Host header; empty: none.
  bool is_foreign = false;    ///< A web page of another site asks; see is_foreign().
  bool over_network = false;  ///< Over the loopback interface, not over a unix socket.
};

struct AdminResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// The functions that supply the pages' data.
struct AdminSources {
  std::function<absl::StatusOr<ResourceDump>()> dump;
  std::function<std::string()> metrics;
  /// Returns JSON. INVALID_ARGUMENT: the error says what is wrong with the question.
  std::function<absl::StatusOr<std::string>(const ExplainQuestion&)> explain;
  std::function<RuntimeStatus()> status;
  /// Whether the target is ready; with an empty name, whether all targets are. nullopt: the target
  /// is not in use. Waits for no actor and for no other page.
  std::function<std::optional<bool>(const std::string& target)> ready;
  std::function<std::vector<CertificateUse>()> certificates;
};

/// Whether a browser sent the request for a page of another site. `fetch_site`: the Sec-Fetch-Site
/// header; empty: none.
bool is_foreign(bool has_origin, absl::string_view fetch_site);

/// Returns the page that the request asks for. Error responses are plain text.
AdminResponse answer(const AdminRequest& request, const AdminSources& sources);

}  // namespace signalbox::channel
