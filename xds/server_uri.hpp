// SPDX-License-Identifier: Apache-2.0
//
// Facts about a control plane's gRPC target that need no name resolution.
//
//   "dns:///localhost:18000" ─▶ [is_loopback] ─▶ whether it is on this machine
//   "dns:///xds.example:443" ─▶ [server_host] ─▶ "xds.example"
//   "unix:////run/xds.sock"  ─▶ [dial_target] ─▶ the target for gRPC

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::xds {

/// Whether traffic to the server stays on this machine: the target is a unix socket, `localhost`,
/// an address of 127.0.0.0/8, or ::1. Other names are not resolved, and count as remote.
bool is_loopback(absl::string_view server_uri);

/// The host in an address: "::1" for "[::1]:80". A bare IPv6 address is returned unchanged.
absl::string_view host_of(absl::string_view address);

/// The host that the target names. Empty for unix sockets.
std::string server_host(absl::string_view server_uri);

/// The target from which a gRPC channel to the server is made. gRPC 1.51 parses the address of a
/// socket twice, and would find an authority in the path of `unix:////run/xds.sock`. Leading
/// slashes of an absolute path are therefore reduced to one.
std::string dial_target(absl::string_view server_uri);

}  // namespace signalbox::xds
