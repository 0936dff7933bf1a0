// SPDX-License-Identifier: Apache-2.0
//
// admin_pages — what a runtime answers to those who look into it.
//
//   AdminServer ─▶ AdminRequest ─▶ [answer] ─▶ AdminResponse
//
//   GET /              lists these
//   GET /config_dump   JSON (xds/dump_json.hpp); ?type=LDS|RDS|CDS|EDS, ?name=NAME: only these
//   GET /explain       JSON (xds/explanation_json.hpp): where a call would go, and why
//   GET /metrics       Prometheus' text
//
// Invariants
//   A1  It only reads: every method but GET is refused (405).
//   A2  A browser is refused (403): what has an Origin, and on a network socket what names another
//       host than the loopback.
//   A3  A request that says what is not understood is refused (400), never answered with more than
//       it asked for.

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
  std::string host;                               ///< The header; empty: none.
  bool has_origin = false;
  bool over_network = false;  ///< By way of the loopback, not of a unix socket.
};

struct AdminResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Where the pages come from.
struct AdminSources {
  std::function<absl::StatusOr<ResourceDump>()> dump;
  std::function<std::string()> metrics;
  /// INVALID_ARGUMENT: what is wrong with the question. JSON.
  std::function<absl::StatusOr<std::string>(const ExplainQuestion&)> explain;
};

/// Errors are a line of text.
AdminResponse answer(const AdminRequest& request, const AdminSources& sources);

}  // namespace signalbox::channel
