// SPDX-License-Identifier: Apache-2.0
//
// resource_text — how an error names the resource that it is about: once, and first.
//
//   CDS resource "orders": connection refused

#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "messages/resource.hpp"

namespace signalbox::xds {

/// `CDS resource "orders"`, as the validation errors of xds/parse begin.
std::string describe(const ResourceKey& key);

/// The message with its resource before it, unless it begins with that already.
std::string with_resource(const ResourceKey& key, absl::string_view message);

}  // namespace signalbox::xds
