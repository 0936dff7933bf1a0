// SPDX-License-Identifier: Apache-2.0
//
// ClientOptions — the servers of each authority, as the bootstrap lists them. A server is named by
// a number (ServerId): its index in ClientOptions::servers.
//
//   Bootstrap ─▶ [client_options] ─▶ client_core
//           └──▶ distinct_servers ─▶ a transport for each, in the same order
//
// The server feature `ignore_resource_deletion` is accepted and changes nothing: a deletion removes
// a resource only if the server has `fail_on_data_errors`.
//
// Source: gRFC A47 (authorities), A71 (order of servers), A81, A88 and A53 (server features).

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
  /// A NACK, a deletion, or a resource error NOT_FOUND or PERMISSION_DENIED removes the cached
  /// resource (A88), if this server sent the resource or is the active server. False: it stays.
  bool fail_on_data_errors = false;
  /// The error of a resource that does not come within its timeout is UNAVAILABLE instead of
  /// NOT_FOUND, and the timeout is twice as long (A88).
  bool resource_timer_is_transient_error = false;
  /// Resources of this server may set the authority of calls (A81). True for a server with the
  /// feature trusted_xds_server, and for a resource file.
  bool trusted = false;
};

struct ClientOptions {
  std::string node_id;
  Duration resource_timeout = std::chrono::seconds(15);
  /// All servers. A ServerId is an index into this list.
  std::vector<ServerOptions> servers = {ServerOptions{}};
  /// The servers of names without an authority; best first (A71).
  std::vector<ServerId> default_servers = {0};
  std::map<std::string, std::vector<ServerId>> authorities = {};
};

/// If the bootstrap names a resource file, the file is server 0. It serves the names without an
/// authority, and every authority that lists no servers. The servers of the bootstrap follow in the
/// order of distinct_servers().
ClientOptions client_options(const Bootstrap& bootstrap);

}  // namespace signalbox::xds
