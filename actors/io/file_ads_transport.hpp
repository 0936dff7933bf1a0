// SPDX-License-Identifier: Apache-2.0
//
// FileAdsTransport — a resource file in the place of an xDS server.
//
//   file ─▶ WatchedFile ─▶ xds::parse_resources_text ─▶ xds::DiscoveryServer ─▶ Stream ─▶ session
//                                                                    ◀─ requests, ACK, NACK
//
// Versions, nonces, NACKs and the last good resources work as with any server. This server reports
// missing resources at once (A88), and has no connection that could be lost.
//
// Invariants
//   F1  A file that cannot be read, or that is not a list of resources, changes nothing: the
//       resources of the last good file are still served.
//   F2  `complain` is called on the transport's thread, and never after the transport's end. A file
//       that is not used (F1) is reported once it has stayed bad for 200 ms, so a half-written file
//       is not reported. A resource that the client refuses (NACK) is reported at once.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "actors/io/ads_transport.hpp"
#include "xds/limits.hpp"

namespace signalbox::actors {

enum class FileTrouble {
  kUnreadable,       ///< The file cannot be read, and is not used.
  kUnparsable,       ///< The file cannot be parsed, and is not used.
  kBeyondLimit,      ///< The file is too long, or has too many entries, and is not used.
  kInvalidResource,  ///< The client refused some of the file's resources (NACK).
};

struct FileAdsOptions {
  std::string path;
  /// Only max_file_bytes, max_file_values and max_resources apply to the file.
  xds::Limits limits = {};
  /// The text names the file and the fault, and the line, the resource and the field if they are
  /// known.
  std::function<void(FileTrouble trouble, const std::string& text)> complain;
};

/// AdsTransport::server() of a transport that follows the file.
std::string file_server_name(absl::string_view path);

/// Makes a transport that follows the file until the transport is destroyed. Returns an error when
/// the present file cannot be read or watched, or is not a list of resources (F1), or when no file
/// descriptor is free.
absl::StatusOr<std::shared_ptr<AdsTransport>> make_file_ads_transport(FileAdsOptions options);

}  // namespace signalbox::actors
