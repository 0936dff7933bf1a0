// SPDX-License-Identifier: Apache-2.0
//
// peer_certificate — reads the names in a certificate, without gRPC. gRPC would pass the names on
// as C strings, which end at a NUL. So a forged name such as "good.example\0.evil.example" could
// look valid.
//
//   handshake: the server's certificate in PEM ─▶ [names_in] ─▶ lb/subchannel/peer_names

#pragma once

#include "absl/strings/string_view.h"

#include "lb/subchannel/peer_names.hpp"

namespace signalbox::actors {

/// The names of the first certificate in `pem`. A name with a NUL is left out, because it is
/// forged. A malformed certificate has no names.
lb::PeerNames names_in(absl::string_view pem);

}  // namespace signalbox::actors
