// SPDX-License-Identifier: Apache-2.0
//
// Told — what a watcher was last told about one resource, as a number and two status codes.
//
//   ResourceChanged, AmbientErrorChanged ─▶ [note] ─▶ Told ─▶ a model: is_right?
//   change_watches ─▶ a world: watchers watch and unwatch resources

#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "messages/xds_events.hpp"
#include "tests/fuzz/ads_resources.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace signalbox::fuzz {

struct Told {
  std::optional<int> content;
  absl::StatusCode error = absl::StatusCode::kOk;  ///< The error of a resource without content.
  /// The ambient error of a resource with content.
  absl::StatusCode ambient = absl::StatusCode::kOk;
};

/// Whether `told` is right for the resource's content, the error of the resource itself, and
/// whether its server has failed.
inline bool is_right(const Told& told,
                     const std::optional<int>& content,
                     absl::StatusCode wrong,
                     bool server_failed) {
  using Code = absl::StatusCode;
  if (told.content != content) return false;
  if (content) {
    if (wrong != Code::kOk) return told.ambient == wrong;
    return told.ambient == (server_failed ? Code::kUnavailable : Code::kOk);
  }
  if (wrong != Code::kOk) return told.error == wrong;
  if (server_failed) return told.error == Code::kUnavailable;
  // When the server works again, no event takes its error back. So UNAVAILABLE may still be the
  // last error that the watcher was told.
  return told.error == Code::kOk || told.error == Code::kUnavailable;
}

inline std::string content_text(const std::optional<int>& content) {
  return absl::StrCat("content ", content ? std::to_string(*content) : "none");
}

inline std::string text_of(const Told& told) {
  return absl::StrCat(content_text(told.content),
                      ", error ",
                      absl::StatusCodeToString(told.error),
                      ", ambient ",
                      absl::StatusCodeToString(told.ambient));
}

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

/// Makes the action with the number `action`. 0 and 1: `watcher` watches a resource that `make_key`
/// draws. 2: it unwatches such a resource. 3: the watcher leaves.
template <typename World, typename MakeKey>
void change_watches(World& world, std::size_t action, WatcherId watcher, MakeKey&& make_key) {
  if (action == 3) return world.watcher_gone(watcher);
  action == 2 ? world.unwatch(watcher, make_key()) : world.watch(watcher, make_key());
}

}  // namespace signalbox::fuzz
