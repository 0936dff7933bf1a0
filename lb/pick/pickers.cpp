// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/pickers.hpp"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/trace.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

class QueuePicker final : public Picker {
 public:
  PickResult pick(const PickArgs& /*args*/) const override { return {}; }

  PickResult explain(const PickArgs& /*args*/, PickTrace& trace) const override {
    trace.tell({"picker", "the call waits", "no endpoint that could take it is READY yet", ""});
    return {};
  }
};

/// Gives every pick the same outcome (Fail or Drop) with the same status.
template <typename Outcome>
class StatusPicker final : public Picker {
 public:
  explicit StatusPicker(absl::Status status) : status_(std::move(status)) {
    SIGNALBOX_INVARIANT(!status_.ok(), "a pick fails with a reason");
  }

  PickResult pick(const PickArgs& /*args*/) const override {
    PickResult result;
    result.outcome = Outcome{status_};
    return result;
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    constexpr bool kDrops = std::is_same_v<Outcome, Drop>;
    trace.tell({"picker",
                kDrops ? "the call is dropped" : "the call fails, or waits if wait_for_ready",
                std::string(status_.message()),
                ""});
    return pick(args);
  }

  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

class NotedPicker final : public Picker {
 public:
  NotedPicker(PickerPtr picker, std::string before, std::string after)
      : picker_(std::move(picker)), before_(std::move(before)), after_(std::move(after)) {}

  const SessionHint* session_hint() const override { return picker_.session_hint(); }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    PickResult result = picker_.ask(args, sink);
    if (auto* fail = std::get_if<Fail>(&result.outcome)) {
      fail->status = with_note(fail->status, before_, after_);
    } else if (auto* drop = std::get_if<Drop>(&result.outcome)) {
      drop->status = with_note(drop->status, before_, after_);
    }
    return result;
  }

  ChildPicker picker_;
  std::string before_;
  std::string after_;
};

class PriorityPicker final : public Picker {
 public:
  PriorityPicker(PickerPtr picker, std::uint8_t priority)
      : picker_(std::move(picker)), priority_(priority) {}

  const SessionHint* session_hint() const override { return picker_.session_hint(); }

  PickResult pick(const PickArgs& args) const override { return decide(args, Silent{}); }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

  const PickerPtr& inner() const { return picker_.get(); }

 private:
  template <typename Sink>
  PickResult decide(const PickArgs& args, const Sink& sink) const {
    PickResult result = picker_.ask(args, sink);
    if (!std::holds_alternative<Complete>(result.outcome)) result.priority = priority_;
    return result;
  }

  ChildPicker picker_;
  std::uint8_t priority_;
};

class ConnectionPicker final : public Picker {
 public:
  ConnectionPicker(ConnectionPtr connection, ChosenEndpoint endpoint, CallZone zone)
      : connection_(std::move(connection)), endpoint_(std::move(endpoint)), zone_(zone) {
    SIGNALBOX_INVARIANT(connection_ != nullptr, "a pick completes on a connection");
  }

  PickResult pick(const PickArgs& /*args*/) const override {
    PickResult result;
    Complete complete{connection_.get()};
    if (endpoint_.endpoint != nullptr) complete.endpoint = &endpoint_;
    complete.zone = zone_;
    result.outcome = complete;
    return result;
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    PickResult result = pick(args);
    trace.tell({"pick_first",
                shown(std::get<Complete>(result.outcome)),
                "pick_first stays on the first address that it could connect to",
                "CDS"});
    return result;
  }

 private:
  ConnectionPtr connection_;
  ChosenEndpoint endpoint_;
  CallZone zone_;
};

class AskPicker final : public Picker {
 public:
  AskPicker(std::shared_ptr<const AskTarget> asks, PickAsk ask)
      : asks_(std::move(asks)), ask_(std::move(ask)) {}

  PickResult pick(const PickArgs& /*args*/) const override {
    PickResult result;
    if (first()) {
      result.ask = ask_;
      result.ask_target = asks_.get();
    }
    return result;
  }

  PickResult explain(const PickArgs& /*args*/, PickTrace& trace) const override {
    trace.tell({"picker",
                "the call waits",
                "no endpoint is connected; a pick starts a connection",
                "CDS"});
    return {};
  }

 private:
  // Whether this pick is the first, which must send the ask. Reads before it writes: once the flag
  // is set, waiting picks only read it, so all CPUs can share its cache line.
  bool first() const {
    return !ask_mark_.load(std::memory_order_relaxed) &&
           !ask_mark_.exchange(true, std::memory_order_relaxed);
  }

  std::shared_ptr<const AskTarget> asks_;
  PickAsk ask_;
  // Whether a pick has sent the ask. The atomic exchange lets one pick win. A second ask would
  // change nothing.
  mutable std::atomic<bool> ask_mark_{false};
};

}  // namespace

PickerPtr make_queue_picker() {
  static const PickerPtr shared = std::make_shared<const QueuePicker>();
  return shared;
}

PickerPtr make_fail_picker(absl::Status status) {
  return std::make_shared<const StatusPicker<Fail>>(std::move(status));
}

PickerPtr make_drop_picker(absl::Status status) {
  return std::make_shared<const StatusPicker<Drop>>(std::move(status));
}

bool never_completes(const PickerPtr& picker) {
  const Picker& asked = *picker;
  if (typeid(asked) == typeid(PriorityPicker))
    return never_completes(static_cast<const PriorityPicker&>(asked).inner());
  return picker == make_queue_picker() || typeid(asked) == typeid(StatusPicker<Fail>) ||
         typeid(asked) == typeid(StatusPicker<Drop>);
}

absl::Status with_note(const absl::Status& status,
                       absl::string_view before,
                       absl::string_view after) {
  return {status.code(), absl::StrCat(before, status.message(), after)};
}

PickerPtr make_noted_picker(PickerPtr picker, std::string before, std::string after) {
  const Picker& noted = *picked(picker);
  if (typeid(noted) == typeid(StatusPicker<Fail>)) {
    const auto& failing = static_cast<const StatusPicker<Fail>&>(noted);
    return explained_as(picker, make_fail_picker(with_note(failing.status(), before, after)));
  }
  return std::make_shared<const NotedPicker>(
      std::move(picker), std::move(before), std::move(after));
}

PickerPtr make_priority_picker(PickerPtr picker, std::size_t priority) {
  constexpr std::size_t kLast = PickResult::kNoPriority - 1;
  return std::make_shared<const PriorityPicker>(
      std::move(picker), static_cast<std::uint8_t>(std::min(priority, kLast)));
}

PickerPtr make_connection_picker(ConnectionPtr connection, ChosenEndpoint endpoint, CallZone zone) {
  return std::make_shared<const ConnectionPicker>(std::move(connection), std::move(endpoint), zone);
}

PickerPtr make_ask_picker(std::shared_ptr<const AskTarget> asks, PickAsk ask) {
  if (asks == nullptr) return make_queue_picker();
  return std::make_shared<const AskPicker>(std::move(asks), std::move(ask));
}

}  // namespace signalbox::lb
