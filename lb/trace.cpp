// SPDX-License-Identifier: Apache-2.0
#include "lb/trace.hpp"

#include <chrono>
#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace signalbox::lb {
namespace {

class ExplainedPicker final : public Picker {
 public:
  ExplainedPicker(PickerPtr picker, PickNotePtr note)
      : picker_(std::move(picker)), note_(std::move(note)) {}

  PickResult pick(const PickArgs& args) const override { return picker_->pick(args); }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    note_->tell(args, trace);
    return picker_->explain(args, trace);
  }

  const PickerPtr& inner() const { return picker_; }

  const PickNotePtr& note() const { return note_; }

 private:
  PickerPtr picker_;
  PickNotePtr note_;
};

// Casts the picker; null: it is not an ExplainedPicker.
const ExplainedPicker* explained_picker(const PickerPtr& picker) {
  const Picker* const any = picker.get();
  if (any == nullptr || typeid(*any) != typeid(ExplainedPicker)) return nullptr;
  return static_cast<const ExplainedPicker*>(any);
}

}  // namespace

std::optional<Instant> now_of(const PickTrace& trace) {
  if (typeid(trace) != typeid(TimedTrace)) return std::nullopt;
  return static_cast<const TimedTrace&>(trace).now();
}

Turns turns_of(const PickTrace& trace) {
  if (typeid(trace) != typeid(TimedTrace)) return Turns::kAsTheyAre;
  return static_cast<const TimedTrace&>(trace).turns();
}

TimedTrace cluster_trace(PickTrace& to, const std::string& cluster, const std::string& service) {
  return {now_of(to),
          [&](PickStep step) {
            const bool is_of_eds = step.source == "EDS" && !service.empty();
            if (is_of_eds) {
              absl::StrAppend(&step.source, " ", service);
            } else if (step.source == "CDS" || step.source == "EDS") {
              step.source = absl::StrCat("CDS ", cluster);
            }
            to.tell(std::move(step));
          },
          turns_of(to)};
}

PickerPtr make_explained_picker(PickerPtr picker, PickNotePtr note) {
  return std::make_shared<const ExplainedPicker>(std::move(picker), std::move(note));
}

const Picker* picked(const PickerPtr& picker) {
  const PickerPtr* asked = &picker;
  while (const ExplainedPicker* const explained = explained_picker(*asked))
    asked = &explained->inner();
  return asked->get();
}

PickerPtr explained_as(const PickerPtr& explained, PickerPtr picker) {
  const ExplainedPicker* const outer = explained_picker(explained);
  if (outer == nullptr) return picker;
  return make_explained_picker(explained_as(outer->inner(), std::move(picker)), outer->note());
}

std::string shown(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  if (seconds >= 1 || duration <= Duration::zero()) return absl::StrCat(seconds, " s");
  return absl::StrCat(std::chrono::duration<double, std::milli>(duration).count(), " ms");
}

std::string shown(const Endpoint& endpoint, const LocalityPtr& locality) {
  const std::string& address = endpoint.addresses.front().str();
  if (locality == nullptr || locality->name == LocalityName()) return address;
  return absl::StrCat(address, " in ", to_string(locality->name));
}

std::string shown(const Complete& complete) {
  if (complete.connection == nullptr) return "no connection";
  const std::string& address = complete.connection->address().str();
  if (complete.endpoint == nullptr || complete.endpoint->locality == nullptr ||
      complete.endpoint->locality->name == LocalityName())
    return address;
  return absl::StrCat(address, " in ", to_string(complete.endpoint->locality->name));
}

std::string shown_draw(std::uint64_t drawn, std::uint64_t bound) {
  return absl::StrCat("drew ", drawn, " of ", bound);
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "0 %";
  const auto share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return absl::StrFormat("%.4g %%", share);
}

}  // namespace signalbox::lb
