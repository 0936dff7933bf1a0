// SPDX-License-Identifier: Apache-2.0
//
// TargetTable — the targets of a runtime that are in use, by name: a channel, a router or one of
// their calls holds the target.
//
//   Runtime::channel, router ─▶ find_or_make() ─▶ [TargetTable] ─┬▶ in_use() ─▶ status, dump
//                                                                └▶ ready(), readiness() ─▶ /ready
//
// Thread-safe. No lock that a reader takes is held while a target is made, so /ready is answered
// meanwhile.

#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

#include "channel/target.hpp"

namespace signalbox::channel {

class TargetTable {
 public:
  using Make = absl::FunctionRef<std::shared_ptr<Target>()>;

  /// Returns the target of this name, or else the target that `make` returns, which must be open.
  std::shared_ptr<Target> find_or_make(const std::string& name, Make make);

  /// The targets in use, in the order of their names.
  std::vector<std::pair<std::string, std::shared_ptr<Target>>> in_use() const;

  /// Whether calls of the target can be sent; with an empty `name`, whether those of every target
  /// in use can. nullopt: the target is not in use.
  std::optional<bool> ready(absl::string_view name) const;

  /// Whether calls can be sent, for each target in use.
  std::map<std::string, bool> readiness() const;

 private:
  struct Known {
    std::weak_ptr<Target> target;
    /// TargetBoard::ready_flag(). ready() reads this flag and never holds the target: if ready()
    /// were the target's last holder, ready() would have to end the target.
    std::shared_ptr<const std::atomic<bool>> is_ready;
  };

  std::shared_ptr<Target> find(const std::string& name);

  std::mutex making_;         ///< Held while a target is made. Locked before mutex_.
  mutable std::mutex mutex_;  ///< Guards targets_.
  std::map<std::string, Known> targets_;
};

}  // namespace signalbox::channel
