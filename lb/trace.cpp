// SPDX-License-Identifier: Apache-2.0
#include "lb/trace.hpp"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace signalbox::lb {
namespace {

class ToldPicker final : public Picker {
 public:
  ToldPicker(PickerPtr picker, PickNotePtr note)
      : picker_(std::move(picker)), note_(std::move(note)) {}

  PickResult pick(const PickArgs& args) const override { return picker_->pick(args); }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    note_->tell(args, trace);
    return picker_->explain(args, trace);
  }

  const PickerPtr& inner() const { return picker_; }

 private:
  PickerPtr picker_;
  PickNotePtr note_;
};

}  // namespace

std::optional<Instant> now_of(const PickTrace& trace) {
  const auto* timed = dynamic_cast<const TimedTrace*>(&trace);
  if (timed == nullptr) return std::nullopt;
  return timed->now();
}

void ClusterTrace::tell(PickStep step) {
  const bool is_of_eds = step.source == "EDS" && !service_.empty();
  if (is_of_eds) {
    absl::StrAppend(&step.source, " ", service_);
  } else if (step.source == "CDS" || step.source == "EDS") {
    step.source = absl::StrCat("CDS ", cluster_);
  }
  to_.tell(std::move(step));
}

PickerPtr make_told_picker(PickerPtr picker, PickNotePtr note) {
  return std::make_shared<const ToldPicker>(std::move(picker), std::move(note));
}

const Picker* picked(const PickerPtr& picker) {
  const Picker* asked = picker.get();
  while (const auto* told = dynamic_cast<const ToldPicker*>(asked))
    asked = told->inner().get();
  return asked;
}

std::string shown(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  if (seconds >= 1 || duration <= Duration::zero()) return absl::StrCat(seconds, " s");
  return absl::StrCat(std::chrono::duration<double, std::milli>(duration).count(), " ms");
}

}  // namespace signalbox::lb
