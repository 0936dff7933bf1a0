// SPDX-License-Identifier: Apache-2.0
//
// resource_text — begins an error text with the name of its resource, exactly once.
//
//   CDS resource "orders": connection refused

#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "messages/resource.hpp"

namespace signalbox::xds {

/// `CDS resource "orders"`: the prefix that validation errors of xds/parse have, too.
std::string describe(const ResourceKey& key);

/// The names as a list for an error text, at most eight of them: `"a", "b" and 3 more`.
std::string listed(absl::Span<const std::string> names);

/// Puts the resource before the message, unless the message begins with the resource already.
std::string with_resource(const ResourceKey& key, absl::string_view message);

}  // namespace signalbox::xds
