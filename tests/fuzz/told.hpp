// SPDX-License-Identifier: Apache-2.0
//
// Told — what a watcher was told last of one resource, as a number and two codes.
//
//   ResourceChanged, AmbientErrorChanged ─▶ [note] ─▶ Told ─▶ a model: is it right?

#pragma once

#include <optional>

#include "absl/status/status.h"

#include "messages/xds_events.hpp"
#include "tests/fuzz/ads_resources.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace signalbox::fuzz {

struct Told {
  std::optional<int> content;
  absl::StatusCode error = absl::StatusCode::kOk;    ///< Without content.
  absl::StatusCode ambient = absl::StatusCode::kOk;  ///< Beside it.
};

inline void note(Told& told, const ResourceChanged& changed) {
  if (changed.resource.ok()) {
    told.content = content_of(*changed.resource);
    told.error = absl::StatusCode::kOk;
  } else {
    told = Told{{}, changed.resource.status().code(), absl::StatusCode::kOk};
  }
}

inline void note(Told& told, const AmbientErrorChanged& changed) {
  SIGNALBOX_FUZZ_EXPECT(
      told.content.has_value(), "an ambient error is beside something", changed.key.name);
  told.ambient = changed.status.code();
}

}  // namespace signalbox::fuzz
