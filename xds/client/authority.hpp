// SPDX-License-Identifier: Apache-2.0
//
// Authority — which of its servers an authority uses: the best, and after failures more (A71).
//
//   servers   primary ─▶ second ─▶ third
//   in use    ├──────────────┤           the last of them is the active one
//
// All servers in use are asked for everything that is watched. The better ones than the active
// one have failed, and are asked so that it is known when they are back.

#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

#include "messages/xds_events.hpp"

namespace signalbox::xds {

class Authority {
 public:
  /// Best first, each once, at least one.
  explicit Authority(std::vector<ServerId> servers);

  absl::Span<const ServerId> in_use() const { return {servers_.data(), in_use_}; }

  ServerId active() const { return servers_[in_use_ - 1]; }

  bool uses(ServerId server) const;

  bool has_next() const { return in_use_ < servers_.size(); }

  /// Makes the next one active. Precondition: there is one.
  ServerId fall_back();

  /// Makes `server`, which is in use, the active one; gives back those that are in use no longer.
  std::vector<ServerId> return_to(ServerId server);

  /// What is wrong with its servers, as the watchers were told.
  absl::Status error;

 private:
  std::vector<ServerId> servers_;
  std::size_t in_use_ = 1;
};

}  // namespace signalbox::xds
