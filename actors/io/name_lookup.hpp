// SPDX-License-Identifier: Apache-2.0
//
// NameLookup — turns "host:port" into addresses. resolve() blocks, so only dns actors call it.

#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "messages/ids.hpp"

namespace signalbox::actors {

class NameLookup {
 public:
  virtual ~NameLookup() = default;

  /// Returns the addresses in the resolver's order. If the system's resolver has no address,
  /// returns an error that names the host. The program's own function may return an empty list.
  /// Thread-safe.
  virtual absl::StatusOr<std::vector<Address>> resolve(const DnsName& name) = 0;
};

}  // namespace signalbox::actors
