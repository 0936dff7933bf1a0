// SPDX-License-Identifier: Apache-2.0
//
// NameLookup — turns "host:port" into addresses. Blocks; called on the detached dns actor only.

#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "messages/ids.hpp"

namespace signalbox::actors {

class NameLookup {
 public:
  virtual ~NameLookup() = default;

  /// Returns the addresses in the resolver's order, and never an empty list. If the name has no
  /// address, returns an error that names the host. Thread-safe.
  virtual absl::StatusOr<std::vector<Address>> resolve(const DnsName& name) = 0;
};

}  // namespace signalbox::actors
