// SPDX-License-Identifier: Apache-2.0
//
// address_lookup — NameLookup by the system's resolver (getaddrinfo), or by the program's function.
// A look-up blocks its thread, so each dns actor runs on a thread of its own.

#pragma once

#include <functional>
#include <memory>

#include "actors/io/name_lookup.hpp"

namespace signalbox::actors {

std::shared_ptr<NameLookup> make_system_lookup();

using LookupFunction = std::function<absl::StatusOr<std::vector<Address>>(const DnsName&)>;
std::shared_ptr<NameLookup> make_lookup(LookupFunction lookup);

}  // namespace signalbox::actors
