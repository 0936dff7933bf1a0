// SPDX-License-Identifier: Apache-2.0
//
// KnownAddresses — the addresses that a cluster had in the last response. Copies of them are used
// again.
//
//   xds/parse/endpoints ─▶ the cluster's endpoints of the last response ─▶ [KnownAddresses]
//   xds/parse/lb_endpoint ─▶ text ─▶ address() ─▶ a copy of the known Address, or a new one
//
// In most updates nearly all endpoints stay. A copy of a known address takes no new memory, and the
// policies find it equal to their own copies by its pointer, without reading its text.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "messages/endpoints.hpp"
#include "messages/ids.hpp"

namespace signalbox::xds {

class KnownAddresses {
 public:
  KnownAddresses() = default;

  /// `last` outlives this object; null: no address is known.
  explicit KnownAddresses(const Endpoints* last);

  /// The address of this text. Cheapest if the texts come in the order of the last endpoints.
  Address address(std::string text);

 private:
  std::optional<std::size_t> place_of(absl::string_view text);

  std::vector<const Address*> list_;
  std::size_t next_ = 0;    ///< Where in list_ the next address should be.
  std::size_t misses_ = 0;  ///< So many addresses were not where they should be.
  /// The index of each text in list_. Empty while there are few misses.
  absl::flat_hash_map<absl::string_view, std::size_t> places_;
};

}  // namespace signalbox::xds
