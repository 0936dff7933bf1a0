// SPDX-License-Identifier: Apache-2.0
//
// DropBook — the picks that leaf clusters dropped, for the load reports' books.
//
//   pick: kDrop, status ─▶ [DropBook::note] ─▶ counts() ─▶ books: what the load server was told
//
// Policies count every pick that they drop. So each pick is noted here, those of the simulator's
// own checks included. The text of a drop's status names the leaf cluster and the category.

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace signalbox::sim {

class DropBook {
 public:
  /// Notes the status of a dropped pick. Does nothing if neither a category nor a circuit breaker
  /// caused the drop.
  void note(const absl::Status& status);

  /// For each leaf cluster, the dropped picks by category. Key "": drops of the circuit breaker
  /// (A32), which have no category.
  const std::map<std::string, std::map<std::string, std::uint64_t>>& counts() const {
    return counts_;
  }

 private:
  std::map<std::string, std::map<std::string, std::uint64_t>> counts_;
};

}  // namespace signalbox::sim
