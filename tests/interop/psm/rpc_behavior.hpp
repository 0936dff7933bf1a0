// SPDX-License-Identifier: Apache-2.0
//
// The header rpc-behavior, by which a test tells a backend how to answer an RPC.
//
//   "hostname=a error-code-14,sleep-2" ─▶ reaction_to ─▶ Reaction of this backend
//
// A header has behaviours with commas between them, and may stand several times. A behaviour is one
// of these, with "hostname=NAME " in front if only that backend shall have it:
//   keep-open                    the RPC stays open until the client ends it
//   sleep-N                      the answer comes N seconds later
//   error-code-N                 the answer has gRPC's status code N
//   succeed-on-retry-attempt-N   the RPC succeeds if N attempts were made before
// The behaviours hold in their order. The first one that ends the RPC is the last one that counts.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include <grpcpp/support/status.h>

namespace signalbox::psm {

struct Reaction {
  std::chrono::seconds delay{0};
  bool keeps_open = false;
  grpc::Status status;

  bool answers_at_once() const { return !keeps_open && delay.count() == 0; }
};

/// `headers`: the values of rpc-behavior. `host`: the name of this backend. `previous_attempts`:
/// the value of grpc-previous-rpc-attempts; 0 without that header. INVALID_ARGUMENT: a behaviour is
/// unknown, or its number is wrong.
absl::StatusOr<Reaction> reaction_to(const std::vector<std::string>& headers,
                                     const std::string& host,
                                     int previous_attempts);

}  // namespace signalbox::psm
