// SPDX-License-Identifier: Apache-2.0
//
// lb_endpoints_yaml — the endpoints of a locality in an EDS resource.
//
//   addresses ─▶ [lb_endpoints_yaml] ─▶ runtime_world, runtime_zone_test: localities

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace signalbox::test {

/// The elements of `lb_endpoints: […]`. An address is a host and a port: "127.0.0.1:80".
inline std::string lb_endpoints_yaml(const std::vector<std::string>& addresses) {
  return absl::StrJoin(addresses, ", ", [](std::string* out, const std::string& address) {
    const std::size_t colon = address.rfind(':');
    absl::StrAppend(out,
                    "{endpoint: {address: {socket_address: {address: ",
                    address.substr(0, colon),
                    ", port_value: ",
                    address.substr(colon + 1),
                    "}}}}");
  });
}

}  // namespace signalbox::test
