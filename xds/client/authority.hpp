// SPDX-License-Identifier: Apache-2.0
//
// Authority — the servers that an authority uses: the best server, and more after failures (A71).
//
//   servers   primary ─▶ second ─▶ third
//   in use    ├──────────────┤           the last server in use is the active server
//
// All servers in use are asked for all watched resources of the authority. The servers before the
// active server have failed. They are still asked, so that the client notices their recovery.

#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

#include "messages/xds_events.hpp"

namespace signalbox::xds {

class Authority {
 public:
  /// `servers`: best first, without duplicates, not empty.
  explicit Authority(std::vector<ServerId> servers);

  absl::Span<const ServerId> in_use() const { return {servers_.data(), in_use_}; }

  ServerId active() const { return servers_[in_use_ - 1]; }

  bool uses(ServerId server) const;

  bool has_next() const { return in_use_ < servers_.size(); }

  /// Makes the next server active. Precondition: has_next().
  ServerId fall_back();

  /// Makes `server` the active server. Precondition: it is in use. Returns the servers that are no
  /// longer in use.
  std::vector<ServerId> return_to(ServerId server);

  /// The error of the authority's servers that was last reported to the watchers.
  absl::Status error;

 private:
  std::vector<ServerId> servers_;
  std::size_t in_use_ = 1;
};

}  // namespace signalbox::xds
