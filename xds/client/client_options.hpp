// SPDX-License-Identifier: Apache-2.0
//
// ClientOptions — whom the client asks for what: the bootstrap, with its servers as numbers.
//
//   Bootstrap ─▶ [client_options] ─▶ client_core
//           └──▶ distinct_servers ─▶ a transport for each, in the same order
//
// Source: gRFC A47 (authorities), A71 (order of servers), A81, A88 and A53 (server features).
// `ignore_resource_deletion` is accepted: a deletion never takes a resource away unless the server
// has `fail_on_data_errors`.

#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "messages/xds_events.hpp"
#include "xds/bootstrap.hpp"

namespace signalbox::xds {

struct ServerOptions {
  std::string name;
  /// A NACK or a deletion takes a cached resource away (A88).
  bool fail_on_data_errors = false;
  /// A resource that does not come in time is UNAVAILABLE rather than NOT_FOUND, and has twice the
  /// time (A88).
  bool resource_timer_is_transient_error = false;
  /// It may say what authority calls have (A81): trusted_xds_server. A resource file may.
  bool trusted = false;
};

struct ClientOptions {
  std::string node_id;
  Duration resource_timeout = std::chrono::seconds(15);
  std::vector<ServerOptions> servers = {ServerOptions{}};  ///< By ServerId.
  /// Of names without an authority; best first (A71).
  std::vector<ServerId> default_servers = {0};
  std::map<std::string, std::vector<ServerId>> authorities = {};
};

/// A resource file is server 0, and the only one of whoever has none of their own. The servers of
/// the bootstrap follow in the order of distinct_servers().
ClientOptions client_options(const Bootstrap& bootstrap);

}  // namespace signalbox::xds
