// SPDX-License-Identifier: Apache-2.0
//
// http_filters — the user's own HTTP filters, on their way to the parser.
//
//   RuntimeOptions::http_filters ─▶ [register_http_filters] ─▶ parsers ─▶ xds/parse: NACK
//                                                                 └▶ CallFilter ─▶ lb/route
//
// Here the user's exceptions end that nobody below expects: those of a parser, and those of a
// filter, which ends its call.

#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "metrics/instruments.hpp"
#include "signalbox/filter.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::channel {

/// INVALID_ARGUMENT names the first filter that cannot be, and why.
absl::StatusOr<std::shared_ptr<const xds::CustomFilters>> register_http_filters(
    const std::vector<CustomHttpFilter>& filters, metrics::Instruments& instruments);

}  // namespace signalbox::channel
