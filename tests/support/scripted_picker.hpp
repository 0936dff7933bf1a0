// SPDX-License-Identifier: Apache-2.0
//
// ScriptedPicker — a picker that gives the test's answers.

#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "messages/pick.hpp"

namespace signalbox::testing {

class ScriptedPicker final : public Picker {
 public:
  using Script = std::function<PickResult(const PickArgs&)>;

  /// `seats`: see Picker.
  explicit ScriptedPicker(Script script, const Seats* seats = nullptr)
      : script_(std::move(script)), seats_(seats) {}

  const Seats* seats() const override { return seats_; }

  PickResult pick(const PickArgs& args) const override { return script_(args); }

 private:
  Script script_;
  const Seats* seats_;
};

inline PickerPtr answering(ScriptedPicker::Script script, const Seats* seats = nullptr) {
  return std::make_shared<ScriptedPicker>(std::move(script), seats);
}

/// Queues every pick, and has these seats.
inline PickerPtr seated(const Seats* seats) {
  return answering([](const PickArgs&) { return PickResult(); }, seats);
}

}  // namespace signalbox::testing
