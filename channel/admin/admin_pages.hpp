// SPDX-License-Identifier: Apache-2.0
//
// admin_pages — the responses of a runtime's admin server.
//
//   AdminServer ─▶ AdminRequest ─▶ [answer] ─▶ AdminResponse
//
//   GET /              lists the pages
//   GET /config_dump   JSON (xds/dump_json.hpp); filters: ?type=LDS|RDS|CDS|EDS, ?name=NAME
//   GET /explain       JSON (xds/explanation_json.hpp): where a call would go, and why
//   GET /metrics       Prometheus' text
//
// Invariants
//   A1  It only reads: every method but GET is refused (405).
//   A2  A request of a web page is refused (403). Such a request has an Origin or a Sec-Fetch-Site
//       header, or on a network socket a Host other than the loopback.
//   A3  A request with an unknown parameter or value is refused (400). The response never has more
//       than the request asked for.

#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"

#include "channel/admin/explain_page.hpp"
#include "messages/resource_dump.hpp"

namespace signalbox::channel {

struct AdminRequest {
  std::string method;
  std::string path;                               ///< Decoded, without the query.
  std::multimap<std::string, std::string> query;  ///< Decoded.
  std::string host;                               ///< The Host header; empty: none.
  /// Has an Origin or a Sec-Fetch-Site header: browsers send them for web pages.
  bool has_origin = false;
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
};

/// An error is plain text.
AdminResponse answer(const AdminRequest& request, const AdminSources& sources);

}  // namespace signalbox::channel
