// SPDX-License-Identifier: Apache-2.0
//
// The names in a certificate, read by us: gRPC hands them on as C strings, which end at a NUL.
//
//   handshake: the server's certificate in PEM ─▶ [names_in] ─▶ lb/subchannel/peer_names

#pragma once

#include "absl/strings/string_view.h"

#include "lb/subchannel/peer_names.hpp"

namespace signalbox::actors {

/// Of the first certificate of `pem`. A name with a NUL in it is left out: it was forged. What
/// cannot be read has no names.
lb::PeerNames names_in(absl::string_view pem);

}  // namespace signalbox::actors
