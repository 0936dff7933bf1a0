// SPDX-License-Identifier: Apache-2.0
//
// RouterFixture — an lb::Router, and the cell from which it reads snapshots. The test publishes
// snapshots into the cell, with pickers that give the test's answers.

#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "lb/pick/router.hpp"
#include "messages/xds_config.hpp"
#include "tests/support/route_fixture.hpp"
#include "tests/support/scripted_picker.hpp"

namespace signalbox::testing {

/// Every call goes to the clusters of `action`.
inline XdsConfig all_to(const ForwardAction& action) {
  return config_of({route(prefix(""), action)});
}

inline PickResult result(std::variant<Complete, Queue, Fail, Drop> outcome) {
  PickResult answer;
  answer.outcome = std::move(outcome);
  return answer;
}

class AskLog final : public AskTarget {
 public:
  void tell(const PickAsk& ask) const override { asks.push_back(ask); }

  mutable std::vector<PickAsk> asks;
};

/// A router, its cell, and functions that publish into the cell.
class RouterFixture {
 public:
  void publish(std::optional<XdsConfig> config, PickerPtr picker, absl::Status failure = {}) {
    auto snapshot = std::make_unique<lb::Snapshot>();
    if (config) {
      for (const auto& [name, ref] : refs_for(*config, counts_calls))
        refs.try_emplace(name, ref);
      snapshot->selector = lb::make_config_selector(*config, refs, 0, faults);
    }
    snapshot->picker = std::move(picker);
    snapshot->failure = std::move(failure);
    snapshot->notes = notes;
    snapshot->sequence = ++sequence;
    snapshot->record_sessions();
    const auto old = cell->exchange(std::move(snapshot));
    lb::SnapshotCell::wait_for_readers();
  }

  const lb::ClusterRef& ref(const char* cluster) const { return *refs.at(ClusterName(cluster)); }

  std::shared_ptr<lb::SnapshotCell> cell = std::make_shared<lb::SnapshotCell>();
  lb::Router router{cell};
  lb::ClusterRefs refs;
  bool counts_calls = true;  ///< Whether clusters first published from now on have counters.
  std::uint64_t sequence = 0;
  ResolutionNotesPtr notes;  ///< The notes of snapshots published from now on.
  lb::FaultOptions faults;   ///< The fault options of snapshots published from now on.
  std::shared_ptr<Connection> backend = std::make_shared<Connection>(Address("10.0.0.1:80"));
};

}  // namespace signalbox::testing
