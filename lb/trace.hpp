// SPDX-License-Identifier: Apache-2.0
//
// Trace — lets one function of a picker serve both pick() and explain().
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
// The sink (Silent or Telling) receives the steps of a pick. It also decides whether pickers below
// are picked or explained, and whether side effects happen: leave(). With Silent a step costs
// nothing: its texts are made in a lambda that tell() never calls.
//
// A policy may know more about its choice than its picker needs, such as which priorities failed.
// Such knowledge goes into a PickNote beside the picker. pick() does not touch the note: see
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

/// The sink of pick(): ignores the steps, and lets side effects happen.
struct Silent {
  static constexpr bool kTells = false;

  /// Does nothing. With Telling, `step` is called to make the PickStep.
  template <typename Step>
  void tell(const Step& /*step*/) const {}

  /// Runs `mark`, which does what only a pick may do: write, count, send an ask.
  template <typename Mark>
  void leave(const Mark& mark) const {
    mark();
  }

  PickResult ask(const Picker& picker, const PickArgs& args) const { return picker.pick(args); }
};

/// The sink of explain(): gives the steps to the trace, which it borrows, and suppresses side
/// effects.
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

/// A trace with two facts for pickers: the current time, to say how long something has lasted
/// (now_of()), and which turn round_robin and weighted_round_robin show (turns_of()).
class TimedTrace final : public PickTrace {
 public:
  using To = std::function<void(PickStep)>;

  /// `now`: nullopt if the time is not known.
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

/// The current time, from a TimedTrace; nullopt: it is not known, or the trace is of another type.
std::optional<Instant> now_of(const PickTrace& trace);

/// Whether an explained pick of round_robin or weighted_round_robin shows the next turn, or one
/// drawn by the seed (messages/explanation.hpp). From a TimedTrace; for any other trace kAsTheyAre.
Turns turns_of(const PickTrace& trace);

/// A trace that adds names to the sources of steps and passes the steps on to `to`. The pickers of
/// cluster_impl and below name only the type of a resource: "CDS" becomes "CDS orders", "EDS"
/// becomes "EDS orders-endpoints".
/// `service`: the name in EDS; empty for LOGICAL_DNS, where endpoints come from CDS. All arguments
/// are borrowed.
TimedTrace cluster_trace(PickTrace& to, const std::string& cluster, const std::string& service);

/// Why a policy chose as it did, as of the time when its picker was made. Immutable. Making a note
/// is cheap: its texts are made when an explanation needs them.
class PickNote {
 public:
  virtual ~PickNote() = default;
  virtual void tell(const PickArgs& args, PickTrace& trace) const = 0;
};

using PickNotePtr = std::shared_ptr<const PickNote>;

/// Picks as `picker` does. explain() first gives the note's steps to the trace. A parent that picks
/// with picked() skips this wrapper.
PickerPtr make_explained_picker(PickerPtr picker, PickNotePtr note);

/// The picker inside all wrappers of make_explained_picker(). Its pick() gives the same result,
/// more directly. Lives as long as `picker`.
const Picker* picked(const PickerPtr& picker);

/// `picker` with the notes that `explained` has; `picker` itself if `explained` has none.
PickerPtr explained_as(const PickerPtr& explained, PickerPtr picker);

/// A child's picker, kept by a parent. Picks skip the wrappers of make_explained_picker();
/// explanations include their notes.
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

// --- texts of explanations ---

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
