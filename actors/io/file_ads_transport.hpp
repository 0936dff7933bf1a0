// SPDX-License-Identifier: Apache-2.0
//
// FileAdsTransport — a resource file behind the door of a server.
//
//   file ─▶ WatchedFile ─▶ xds::parse_resources_text ─▶ xds::DiscoveryServer ─▶ Stream ─▶ session
//                                                                    ◀─ requests, ACK, NACK
//
// The client's side knows no difference: versions, nonces, NACKs and the last good resources work
// as with any server. This one says at once what it does not have (A88), and is never lost.
//
// Invariants
//   F1  A file that cannot be read, or is not resources from beginning to end, changes nothing:
//       what was good before is served on.
//   F2  Complaints come from the transport's thread, and none after its end. A bad file is
//       complained of when it has stayed bad for a moment: one that is being written is not.

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
  kUnreadable,       ///< The file, and so nothing of it is used.
  kUnparsable,       ///< The same.
  kBeyondLimit,      ///< The same: the file is too long, or has too much in it.
  kInvalidResource,  ///< Some resources, which the client refused (NACK); the others are used.
};

struct FileAdsOptions {
  std::string path;
  /// max_file_bytes, max_file_values and max_resources are of the file.
  xds::Limits limits = {};
  /// The text names the file, the line or the resource, and the field.
  std::function<void(FileTrouble trouble, const std::string& text)> complain;
};

/// Follows the file until it is destroyed. Fails as F1 says of the file that is there now.
absl::StatusOr<std::shared_ptr<AdsTransport>> make_file_ads_transport(FileAdsOptions options);

}  // namespace signalbox::actors
