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

  /// `hint` is the answer of session_hint(); null: the picker has no hint.
  explicit ScriptedPicker(Script script, const SessionHint* hint = nullptr)
      : script_(std::move(script)), hint_(hint) {}

  const SessionHint* session_hint() const override { return hint_; }

  PickResult pick(const PickArgs& args) const override { return script_(args); }

 private:
  Script script_;
  const SessionHint* hint_;
};

inline PickerPtr answering(ScriptedPicker::Script script, const SessionHint* hint = nullptr) {
  return std::make_shared<ScriptedPicker>(std::move(script), hint);
}

/// A picker that queues every pick, and has this session hint.
inline PickerPtr hinting(const SessionHint* hint) {
  return answering([](const PickArgs&) { return PickResult(); }, hint);
}

}  // namespace signalbox::testing
