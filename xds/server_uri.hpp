// SPDX-License-Identifier: Apache-2.0
//
// What can be said of a control plane's gRPC target without asking anybody.
//
//   "dns:///localhost:18000" ─▶ [is_loopback] ─▶ whether it is on this machine
//   "unix:////run/xds.sock"  ─▶ [dial_target] ─▶ what gRPC is given

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::xds {

/// Whether what is sent there stays on this machine: a unix socket, `localhost`, an address of
/// 127.0.0.0/8 or ::1. Other names are not resolved, and count as elsewhere.
bool is_loopback(absl::string_view server_uri);

/// What a gRPC channel to the server is made of. gRPC 1.51 takes apart the address of a socket once
/// more, and would find an authority in the path of `unix:////run/xds.sock`: an absolute path has
/// one slash.
std::string dial_target(absl::string_view server_uri);

}  // namespace signalbox::xds
