// SPDX-License-Identifier: Apache-2.0
//
// recorded_options — the options of a runtime in the header of its recording, and back.
//
//   RuntimeOptions, Bootstrap, environment ─▶ [header_of] ─▶ RecordingHeader ─▶ file
//                             RuntimeOptions ◀─ [options_of] ◀──────┘
//
// Recorded are the options that decide what the control plane of signalbox does. Options of calls,
// logs, metrics and connections have no effect on a replay.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "channel/environment_parts.hpp"
#include "messages/recording.hpp"
#include "signalbox/runtime.hpp"
#include "xds/bootstrap.hpp"

namespace signalbox::channel {

/// `seed`: the seed that the runtime uses. Of the environment, the variables that signalbox reads
/// are recorded.
RecordingHeader header_of(const RuntimeOptions& options,
                          const xds::Bootstrap& bootstrap,
                          std::uint64_t seed,
                          const GetVariable& get);

/// Settings that this signalbox does not know are added to `unknown`; they come from a newer one.
/// DATA_LOSS: a setting has no valid value.
absl::StatusOr<RuntimeOptions> options_of(const RecordingHeader& header,
                                          std::vector<std::string>& unknown);

/// Returns the environment variables of the recording. The header must outlive the function.
GetVariable variables_of(const RecordingHeader& header);

}  // namespace signalbox::channel
