// SPDX-License-Identifier: Apache-2.0
#include "lb/route/filtered_call.hpp"

#include <limits>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

#include "tests/support/filter_fixture.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

using Script = std::function<void(FilterCall&)>;

// A router with these filters. Calls go to cluster a, or to cluster b if a filter says so.
struct FilteredRouter : RouterFixture {
  void publish_filters(std::vector<Script> scripts) {
    std::vector<HttpFilter> filters;
    for (Script& script : scripts) {
      const std::string name = "filter " + std::to_string(filters.size());
      filters.push_back(filter(name, scripted(name, std::move(script))));
    }
    publish(with_filters(all_to(to({{"a", 4294967294U}, {"b", 1}})), std::move(filters)),
            answering([this](const PickArgs& args) {
              asked_for = args.cluster->str();
              place = args.cluster_place;
              if (args.headers != nullptr)
                args.headers->each("x",
                                   [this](absl::string_view value) { seen += std::string(value); });
              return result(Complete{backend.get()});
            }));
  }

  const CallArgs call{.path = "/s/M", .seed = 7};
  std::string asked_for;
  std::size_t place = 0;  ///< PickArgs::cluster_place, as the picker got it.
  std::string seen;       ///< The header "x", as the picker saw it.
};

TEST_CASE_METHOD(FilteredRouter,
                 "filters: are asked in order, once per call, until one ends it",
                 "[lb][router][A39]") {
  std::string asked;
  bool ends = false;
  publish_filters({[&](FilterCall&) { asked += "1"; },
                   [&](FilterCall& at) {
                     asked += "2";
                     if (ends) at.end(absl::AbortedError("enough"));
                   },
                   [&](FilterCall&) { asked += "3"; }});
  Pick pick = router.pick(call);
  CHECK(pick.outcome() == PickOutcome::kComplete);
  router.repick(pick, call);
  CHECK(asked == "123");
  asked.clear();
  ends = true;
  pick = router.pick(call);
  CHECK(asked == "12");
  CHECK(pick.outcome() == PickOutcome::kDrop);
  CHECK(pick.status() == absl::AbortedError("cluster a: enough"));
  CHECK(pick.connection() == nullptr);
  CHECK(pick.cluster() == &ref("a"));
  CHECK(ref("a").stats()->picks(PickOutcome::kDrop) == 1);
}

TEST_CASE_METHOD(FilteredRouter,
                 "filters: may end a call with any code",
                 "[lb][router][A54][A33]") {
  notes = std::make_shared<const ResolutionNotes>(ResolutionNotes{"node ID: n", "old", {}});
  const auto code = static_cast<absl::StatusCode>(GENERATE(range(0, 17)));
  const absl::Status status(code, code == absl::StatusCode::kOk ? "" : "so it is");
  publish_filters({[&](FilterCall& at) { at.end(status); }});
  const Pick pick = router.pick(call);
  CHECK(pick.outcome() == PickOutcome::kDrop);
  CHECK(pick.status().code() == code);
  CHECK(absl::StrContains(pick.status().message(), status.message()));
  CHECK(asked_for.empty());
}

TEST_CASE_METHOD(FilteredRouter,
                 "filters: may change the cluster to another of the route, and that is held",
                 "[lb][router][A60][A31-13]") {
  std::string seen_before;
  bool there_is_no_c = false;
  publish_filters({[&](FilterCall& at) {
                     seen_before = at.cluster().str();
                     CHECK(at.send_to("b"));
                     there_is_no_c = !at.send_to("c");
                   },
                   [&](FilterCall& at) { CHECK(at.cluster().str() == "b"); }});
  const Pick pick = router.pick(call);
  CHECK(seen_before == "a");
  CHECK(there_is_no_c);
  CHECK(asked_for == "b");
  CHECK(place == 1);
  CHECK(pick.cluster() == &ref("b"));
  CHECK(ref("b").uses() == 1);
  CHECK(ref("a").uses() == 0);
}

TEST_CASE_METHOD(FilteredRouter,
                 "filters: are told whether the route names another cluster",
                 "[lb][router][A60]") {
  const bool is_weighted = GENERATE(false, true);
  std::optional<bool> told;
  const ForwardAction action = is_weighted ? to({{"a", 1}, {"b", 1}}) : to("a");
  publish(with_filters(
              all_to(action),
              {filter("own", scripted("own", [&](FilterCall& at) { told = at.has_choice(); }))}),
          answering([](const PickArgs&) { return result(Queue{}); }));
  const Pick pick = router.pick(call);
  CHECK(told == is_weighted);
}

TEST_CASE_METHOD(FilteredRouter,
                 "filters: a delayed call is picked, or ended, after it has waited",
                 "[lb][router][A33]") {
  const bool ends = GENERATE(false, true);
  const auto hold = std::make_shared<int>(0);
  publish_filters({[&](FilterCall& at) { at.delay(2s, hold); },
                   [&](FilterCall& at) { at.delay(-1s, hold); },
                   [&](FilterCall& at) { at.delay(0s, hold); },
                   [&](FilterCall& at) { at.delay(3s); },
                   [&](FilterCall& at) {
                     if (ends) at.end(absl::AbortedError("late"));
                   }});
  Pick pick = router.pick(call);
  CHECK(pick.outcome() == PickOutcome::kQueue);
  CHECK(pick.delay() == 5s);
  CHECK(hold.use_count() == 2);
  CHECK(ref("a").uses() == 1);
  pick.begin_delay(Instant(10s));
  CHECK(pick.due() == Instant(15s));

  publish_filters({});  // The call waits for its delay, not for a snapshot.
  router.repick(pick, call);
  CHECK(pick.outcome() == PickOutcome::kQueue);
  CHECK(pick.sequence() == 1);
  CHECK(asked_for.empty());

  pick.end_delay();
  CHECK(hold.use_count() == 1);
  router.repick(pick, call);
  CHECK(pick.delay() == 0s);
  CHECK(pick.outcome() == (ends ? PickOutcome::kDrop : PickOutcome::kComplete));
  CHECK(pick.status() == (ends ? absl::AbortedError("cluster a: late") : absl::OkStatus()));
  CHECK(asked_for == (ends ? "" : "a"));
}

TEST_CASE_METHOD(FilteredRouter,
                 "filters: what a delayed call holds goes with it, however it ends",
                 "[lb][router][A33]") {
  const auto hold = std::make_shared<int>(0);
  publish_filters({[&](FilterCall& at) { at.delay(1s, hold); }});
  {
    const Pick pick = router.pick(call);
  }
  CHECK(hold.use_count() == 1);
  CHECK_FALSE(ref("a").in_use());
}

TEST_CASE_METHOD(FilteredRouter, "filters: delays do not overflow", "[lb][router]") {
  publish_filters({[&](FilterCall& at) {
    for (int i = 0; i < 3; ++i)
      at.delay(Duration(std::numeric_limits<Duration::rep>::max()));
  }});
  const Pick pick = router.pick(call);
  CHECK(pick.delay() == std::chrono::hours(24 * 365 * 100));
}

TEST_CASE_METHOD(FilteredRouter,
                 "filters: what one adds to the headers, the next, the picker and the call have",
                 "[lb][router][A39]") {
  publish_filters({[](FilterCall& at) { CHECK(at.add_header("x", "2")); },
                   [](FilterCall& at) {
                     std::string all;
                     at.headers().each("x",
                                       [&](absl::string_view value) { all += std::string(value); });
                     CHECK(all == "12");
                   }});
  const TestHeaders headers{{"x", "1"}};
  Pick pick = router.pick({.path = "/s/M", .headers = &headers, .seed = 7});
  CHECK(seen == "12");
  CHECK(pick.take_headers() == AddedHeaders{{"x", "2"}});
  CHECK(pick.take_headers().empty());
}

TEST_CASE_METHOD(FilteredRouter,
                 "filters: a header that gRPC would not send is not added",
                 "[lb][router]") {
  publish_filters({[](FilterCall& at) {
    CHECK(at.add_header("x-1_2.a", " printable~"));
    CHECK(at.add_header("x-bin", std::string("\0\xff", 2)));
    for (const char* name : {"", "X", "a b", ":path", "grpc-timeout", "\xc3\xa4"})
      CHECK_FALSE(at.add_header(name, "value"));
    for (const char* value : {"two\nlines", "\x7f", "\xc3\xa4"})
      CHECK_FALSE(at.add_header("x", value));
    CHECK_FALSE(at.add_header("-bin", "\x01"));  // To gRPC "-bin" alone is no binary header.
    CHECK(at.add_header("-bin", "printable"));
  }});
  CHECK(router.pick(call).take_headers().size() == 3);
}

TEST_CASE_METHOD(FilteredRouter,
                 "filters: each draws for itself, and the same for the same call",
                 "[lb][router]") {
  std::vector<std::uint64_t> draws;
  const auto draws_one = [&](FilterCall& at) {
    CHECK(at.path() == "/s/M");
    draws.push_back(at.draw_below(Salt::kFilter, 1'000'000));
  };
  publish_filters({draws_one, draws_one});
  router.pick(call);
  router.pick(call);
  REQUIRE(draws.size() == 4);
  CHECK(draws[0] != draws[1]);
  CHECK(draws[0] == draws[2]);
  CHECK(draws[1] == draws[3]);
}

}  // namespace
}  // namespace signalbox::lb
