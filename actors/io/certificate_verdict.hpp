// SPDX-License-Identifier: Apache-2.0
//
// certificate_verdict — why a server's certificate was refused, as an error text.
//
//   the server's chain, our roots, in PEM ─▶ [certificate_verdict] ─▶ "the server's certificate
//                                                                      expired 2020-02-01 …"
//
// The verdict is a text and nothing else: it has no part in the decision which certificates are
// trusted.

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::actors {

/// Says which certificate is at fault, and why. `chain` is the PEM text that the server sent, its
/// own certificate first. `roots`: PEM text; empty: the system's roots. `name` says in the text
/// where the roots are from. Empty result: OpenSSL accepts the chain, or a text has no certificate.
std::string certificate_verdict(absl::string_view chain,
                                absl::string_view roots,
                                absl::string_view name);

}  // namespace signalbox::actors
