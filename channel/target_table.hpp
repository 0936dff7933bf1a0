// SPDX-License-Identifier: Apache-2.0
//
// TargetTable — the targets of a runtime that channels and routers hold, by name.
//
//   Runtime::channel, router ─▶ find_or_make() ─▶ [TargetTable] ─┬▶ in_use() ─▶ status, dump
//                                                                └ ReadyList ─▶ ready()
//
// Thread-safe. The table's lock is held while a target is made. ready() and readiness() take no
// lock, so /ready is answered meanwhile.

#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

#include "channel/ready_list.hpp"
#include "channel/target.hpp"

namespace signalbox::channel {

class TargetTable {
 public:
  using Make = absl::FunctionRef<std::shared_ptr<Target>()>;

  /// Returns the target of this name, or else the target that `make` returns, which must be open.
  std::shared_ptr<Target> find_or_make(const std::string& name, Make make);

  /// The targets that a channel or a router holds, in the order of their names.
  std::vector<std::pair<std::string, std::shared_ptr<Target>>> in_use() const;

  /// Whether calls of the target can be sent; with an empty `name`, whether those of every target
  /// can. nullopt: no channel and no router holds the target.
  std::optional<bool> ready(absl::string_view name) const;

  /// Whether calls can be sent, for each target that a channel or a router holds.
  std::map<std::string, bool> readiness() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Target>> targets_;
  ReadyList ready_;
};

}  // namespace signalbox::channel
