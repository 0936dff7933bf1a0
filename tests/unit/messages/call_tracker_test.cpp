// SPDX-License-Identifier: Apache-2.0
#include "messages/counting/call_tracker.hpp"

#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox {
namespace {

struct Witness final : CallTracker {
  void begun() const noexcept override { ++begins; }

  void ended(const CallEnd& end) const noexcept override { codes.push_back(end.code.value_or(-1)); }

  mutable int begins = 0;
  mutable std::vector<int> codes;
};

TEST_CASE("call_tracker: is told once how a call ended", "[messages][call_tracker]") {
  const Witness witness;
  TrackerList named;
  REQUIRE(named.add(witness));
  {
    Tracking tracking(named);
    CHECK(witness.begins == 1);
    CHECK(witness.in_use());
    tracking.end({14});
    CHECK_FALSE(witness.in_use());
    tracking.end({0});
  }
  CHECK(witness.codes == std::vector<int>{14});
}

TEST_CASE("call_tracker: a call that says nothing has never reached its endpoint",
          "[messages][call_tracker]") {
  const Witness witness;
  TrackerList named;
  named.add(witness);
  {
    const Tracking tracking(named);
  }
  CHECK(witness.codes == std::vector<int>{-1});
}

TEST_CASE("call_tracker: what moves is ended once; what is replaced is ended",
          "[messages][call_tracker]") {
  const Witness first;
  const Witness second;
  TrackerList one;
  one.add(first);
  TrackerList two;
  two.add(second);
  Tracking tracking(one);
  Tracking other(std::move(tracking));
  tracking.end({0});
  CHECK(first.codes.empty());
  other = Tracking(two);
  CHECK(first.codes == std::vector<int>{-1});
  CHECK(second.codes.empty());
  other.end({0});
  CHECK(second.codes == std::vector<int>{0});
}

TEST_CASE("call_tracker: a pick names so many and no more", "[messages][call_tracker]") {
  const Witness witness;
  TrackerList named;
  for (std::size_t i = 0; i < TrackerList::kMost; ++i)
    CHECK(named.add(witness));
  CHECK_FALSE(named.add(witness));
  Tracking tracking(named);
  CHECK(witness.begins == static_cast<int>(TrackerList::kMost));
}

}  // namespace
}  // namespace signalbox
