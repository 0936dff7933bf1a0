// SPDX-License-Identifier: Apache-2.0
//
// Trace — lets one body of a picker serve both pick() and explain().
//
//   pick(args)           ─▶ decide(args, Silent{}) ───┐
//   explain(args, trace) ─▶ decide(args, Telling{…}) ─┴▶ the one body, a template of its sink
//
//   PickResult pick(const PickArgs& args) const override { return decide(args, Silent{}); }
//
//   PickResult explain(const PickArgs& args, PickTrace& trace) const override {
//     return decide(args, Telling{trace});
//   }
//
// A sink receives the steps of a pick, and decides whether pickers below are picked or explained,
// and whether marks are left. With Silent a step costs nothing: its texts are made in a lambda that
// tell() never calls.
//
// A policy may know more of its choice than its picker needs (failed priorities, for example). That
// knowledge is in a PickNote beside the picker. pick() never passes the note: see
// make_explained_picker().

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "messages/explanation.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// The sink of pick().
struct Silent {
  static constexpr bool kTells = false;

  /// `step` makes the PickStep.
  template <typename Step>
  void tell(const Step& /*step*/) const {}

  /// Does what only a pick may do: write a mark, count, ask.
  template <typename Mark>
  void leave(const Mark& mark) const {
    mark();
  }

  PickResult ask(const Picker& picker, const PickArgs& args) const { return picker.pick(args); }
};

/// The sink of explain(). Borrows the trace.
class Telling {
 public:
  static constexpr bool kTells = true;

  explicit Telling(PickTrace& trace) : trace_(&trace) {}

  template <typename Step>
  void tell(const Step& step) const {
    trace_->tell(step());
  }

  template <typename Mark>
  void leave(const Mark& /*mark*/) const {}

  PickResult ask(const Picker& picker, const PickArgs& args) const {
    return picker.explain(args, *trace_);
  }

  PickTrace& trace() const { return *trace_; }

 private:
  PickTrace* trace_;
};

/// A trace that knows the time, for pickers that tell how long something has been going on.
class TimedTrace final : public PickTrace {
 public:
  using To = std::function<void(PickStep)>;

  /// `now` is nullopt when the time is not known.
  TimedTrace(std::optional<Instant> now, To to, Turns turns = Turns::kAsTheyAre)
      : now_(now), turns_(turns), to_(std::move(to)) {}

  void tell(PickStep step) override { to_(std::move(step)); }

  std::optional<Instant> now() const { return now_; }

  Turns turns() const { return turns_; }

 private:
  const std::optional<Instant> now_;
  const Turns turns_;
  const To to_;
};

/// The time of a TimedTrace; nullopt: the time is not known, or the trace is of another type.
std::optional<Instant> now_of(const PickTrace& trace);

/// Where an explained pick takes its turns from (messages/explanation.hpp), as a TimedTrace knows
/// it; any other trace: kAsTheyAre.
Turns turns_of(const PickTrace& trace);

/// Completes the sources of one cluster's steps, in which pickers name only the type of the
/// resource: "CDS" becomes "CDS orders", "EDS" becomes "EDS orders-endpoints". All arguments are
/// borrowed. `service`: the name in EDS; empty for LOGICAL_DNS, where the endpoints come from CDS.
TimedTrace cluster_trace(PickTrace& to, const std::string& cluster, const std::string& service);

/// The reasons of a policy for the choice behind its picker, from the time when the picker was
/// made. Immutable. A publication makes a note of pointers only; its texts are made when an
/// explanation needs them.
class PickNote {
 public:
  virtual ~PickNote() = default;
  virtual void tell(const PickArgs& args, PickTrace& trace) const = 0;
};

using PickNotePtr = std::shared_ptr<const PickNote>;

/// Picks as `picker` does, but its explanation begins with the note. A holder that calls pick() on
/// picked() saves the detour through this picker.
PickerPtr make_explained_picker(PickerPtr picker, PickNotePtr note);

/// `picker` without the wrappers of make_explained_picker(): pick() gives the same answer, with
/// fewer steps. The result lives as long as `picker`.
const Picker* picked(const PickerPtr& picker);

/// `picker` with the same notes as `explained` has; without notes, `picker` itself.
PickerPtr explained_as(const PickerPtr& explained, PickerPtr picker);

/// A child's picker, as a parent keeps it. pick() skips the wrappers of make_explained_picker().
class ChildPicker {
 public:
  ChildPicker() = default;

  explicit ChildPicker(PickerPtr picker) : picker_(std::move(picker)), picked_(picked(picker_)) {}

  const PickerPtr& get() const { return picker_; }

  const SessionHint* session_hint() const {
    return picked_ == nullptr ? nullptr : picked_->session_hint();
  }

  PickResult ask(const PickArgs& args, const Silent& /*sink*/) const { return picked_->pick(args); }

  PickResult ask(const PickArgs& args, const Telling& sink) const {
    return sink.ask(*picker_, args);
  }

 private:
  PickerPtr picker_;
  const Picker* picked_ = nullptr;
};

// --- for texts ---

/// The source of a step: the configuration of HTTP filters.
inline constexpr char kFilterSource[] = "LDS http_filters, RDS typed_per_filter_config";

/// "3 s", "1.5 s", "20 ms".
std::string shown(Duration duration);

/// "10.0.0.1:80", with its locality when that has a name. An endpoint is shown by its first
/// address. "no connection" when `complete` has none.
std::string shown(const Complete& complete);
std::string shown(const Endpoint& endpoint, const LocalityPtr& locality);

/// "drew 37 of 100".
std::string shown_draw(std::uint64_t drawn, std::uint64_t bound);

/// "25 %", "0.05 %".
std::string percent(std::uint64_t part, std::uint64_t whole);

}  // namespace signalbox::lb
