// SPDX-License-Identifier: Apache-2.0
//
// http_filters — registers the program's custom HTTP filters with the parser.
//
//   RuntimeOptions::http_filters ─▶ [register_http_filters] ─▶ parsers ─▶ xds/parse: NACK
//                                                                 └▶ CallFilter ─▶ lb/route
//
// Exceptions of custom parsers and filters are caught here, because xds and lb expect none. An
// exception of a parser counts as an error: NACK. An exception of a filter ends the call that was
// passing the filter.

#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "metrics/instruments.hpp"
#include "signalbox/filter.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::channel {

/// Returns the parsers of the filters. INVALID_ARGUMENT names the first invalid filter, and the
/// reason.
absl::StatusOr<std::shared_ptr<const xds::CustomFilters>> register_http_filters(
    const std::vector<CustomHttpFilter>& filters, metrics::Instruments& instruments);

}  // namespace signalbox::channel
