// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/pickers.hpp"

#include <memory>
#include <string>

#include <catch2/catch.hpp>

#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

class DeafTarget final : public AskTarget {
 public:
  void tell(const PickAsk& /*ask*/) const override {}
};

TEST_CASE("pickers: the queue picker queues and asks nothing", "[lb][pickers]") {
  const PickResult result = make_queue_picker()->pick({});
  CHECK(std::holds_alternative<Queue>(result.outcome));
  CHECK_FALSE(result.ask.has_value());
  CHECK(result.ask_target == nullptr);
}

TEST_CASE("pickers: fail and drop keep their status", "[lb][pickers]") {
  const absl::Status why = absl::UnavailableError("no backend");
  const PickResult failed = make_fail_picker(why)->pick({});
  const PickResult dropped = make_drop_picker(why)->pick({});
  REQUIRE(std::holds_alternative<Fail>(failed.outcome));
  REQUIRE(std::holds_alternative<Drop>(dropped.outcome));
  CHECK(std::get<Fail>(failed.outcome).status == why);
  CHECK(std::get<Drop>(dropped.outcome).status == why);
}

TEST_CASE("pickers: a failure without a reason is refused", "[lb][pickers]") {
  CHECK_THROWS_AS(make_fail_picker(absl::OkStatus()), BrokenInvariant);
  CHECK_THROWS_AS(make_drop_picker(absl::OkStatus()), BrokenInvariant);
}

// A picker that queues (seed 0), fails (seed 1) or drops the call.
class FicklePicker final : public Picker {
 public:
  PickResult pick(const PickArgs& args) const override {
    PickResult result;
    const auto why = absl::UnavailableError("call " + std::to_string(args.seed));
    if (args.seed == 0) return result;
    if (args.seed == 1) {
      result.outcome = Fail{why};
    } else {
      result.outcome = Drop{why};
    }
    return result;
  }
};

TEST_CASE("pickers: a picker with a note or a priority knows the hosts of sessions as before",
          "[lb][pickers][ENV-27]") {
  class Hinting final : public Picker {
   public:
    const SessionHint* session_hint() const override { return &hint_; }

    PickResult pick(const PickArgs& /*args*/) const override { return {}; }

   private:
    SessionHint hint_;
  };

  const auto hinting = std::make_shared<const Hinting>();
  CHECK(make_noted_picker(hinting, "p1: ", "")->session_hint() == hinting->session_hint());
  CHECK(make_priority_picker(hinting, 1)->session_hint() == hinting->session_hint());
}

TEST_CASE("pickers: a note stands around every reason", "[lb][pickers]") {
  const PickerPtr noted = make_noted_picker(std::make_shared<const FicklePicker>(), "p1: ", " (n)");
  const auto pick = [&](std::uint64_t seed) { return noted->pick({.seed = seed}).outcome; };
  CHECK(std::holds_alternative<Queue>(pick(0)));
  CHECK(std::get<Fail>(pick(1)).status == absl::UnavailableError("p1: call 1 (n)"));
  CHECK(std::get<Drop>(pick(2)).status == absl::UnavailableError("p1: call 2 (n)"));
}

TEST_CASE("pickers: where the reason is always the same, no pick makes a text", "[lb][pickers]") {
  const PickerPtr noted =
      make_noted_picker(make_fail_picker(absl::UnavailableError("no backend")), "p1: ");
  const PickResult first = noted->pick({});
  const PickResult second = noted->pick({});
  const absl::string_view text = std::get<Fail>(first.outcome).status.message();
  CHECK(text == "p1: no backend");
  CHECK(std::get<Fail>(second.outcome).status.message().data() == text.data());
}

TEST_CASE("pickers: those that never complete are known", "[lb][pickers]") {
  const absl::Status why = absl::UnavailableError("no backend");
  CHECK(never_completes(make_queue_picker()));
  CHECK(never_completes(make_fail_picker(why)));
  CHECK(never_completes(make_drop_picker(why)));
  CHECK(never_completes(make_priority_picker(make_queue_picker(), 1)));
  CHECK_FALSE(never_completes(std::make_shared<const FicklePicker>()));
  CHECK_FALSE(never_completes(
      make_connection_picker(std::make_shared<const Connection>(Address("10.0.0.1:80")))));
}

TEST_CASE("pickers: a pick that waits or fails says at which priority, the outermost",
          "[lb][pickers]") {
  const auto priority_of = [](const PickerPtr& picker) { return int{picker->pick({}).priority}; };
  const absl::Status why = absl::UnavailableError("no backend");
  const PickerPtr connection =
      make_connection_picker(std::make_shared<const Connection>(Address("10.0.0.1:80")));
  CHECK(priority_of(make_queue_picker()) == PickResult::kNoPriority);
  CHECK(priority_of(make_priority_picker(make_queue_picker(), 2)) == 2);
  CHECK(priority_of(make_priority_picker(make_fail_picker(why), 0)) == 0);
  CHECK(priority_of(make_priority_picker(make_priority_picker(make_queue_picker(), 2), 0)) == 0);
  CHECK(priority_of(make_priority_picker(make_queue_picker(), 1'000)) ==
        PickResult::kNoPriority - 1);
  CHECK(priority_of(make_priority_picker(connection, 2)) == PickResult::kNoPriority);
}

TEST_CASE("pickers: the ask picker queues all and asks exactly once", "[lb][pickers]") {
  const auto target = std::make_shared<const DeafTarget>();
  const PickAsk ask{PickAsk::Kind::kConnect, Address{"10.0.0.1:80"}};
  const PickerPtr picker = make_ask_picker(target, ask);

  const PickResult first = picker->pick({});
  CHECK(std::holds_alternative<Queue>(first.outcome));
  REQUIRE(first.ask.has_value());
  CHECK(*first.ask == ask);
  CHECK(first.ask_target == target.get());

  const PickResult second = picker->pick({});
  CHECK(std::holds_alternative<Queue>(second.outcome));
  CHECK_FALSE(second.ask.has_value());
  CHECK(second.ask_target == nullptr);
}

TEST_CASE("pickers: without a target the ask picker only queues", "[lb][pickers]") {
  const PickResult result = make_ask_picker(nullptr, {})->pick({});
  CHECK(std::holds_alternative<Queue>(result.outcome));
  CHECK_FALSE(result.ask.has_value());
}

}  // namespace
}  // namespace signalbox::lb
