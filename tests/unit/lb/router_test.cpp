// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/router.hpp"

#include <cstdlib>
#include <new>
#include <optional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/policy_registry.hpp"
#include "lb/tree/cluster_impl_picker.hpp"
#include "lb/tree/override_host_picker.hpp"
#include "lb/xx_hash.hpp"
#include "tests/support/filter_fixture.hpp"
#include "tests/support/route_fixture.hpp"
#include "tests/support/router_fixture.hpp"
#include "tests/support/session_fixture.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace {

// The number of this thread's allocations.
thread_local std::uint64_t allocations = 0;

}  // namespace

// Replaces the forms of operator new and delete that all other forms call, and counts allocations.
// Were only some replaced, memory checkers would see memory of one form freed by another. Inlined,
// they make GCC warn of memory that is made by one function and freed by the wrong one.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}

[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}

[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

const CallArgs kCall{"/s/M", nullptr, 7};

TEST_CASE_METHOD(RouterFixture,
                 "router: completes a pick and holds what it chose",
                 "[lb][router]") {
  std::string asked_for;
  publish(all_to(to("orders")), answering([&](const PickArgs& args) {
            asked_for = args.cluster->str();
            return result(Complete{backend.get()});
          }));
  {
    const Pick pick = router.pick(kCall);
    CHECK(pick.outcome() == PickOutcome::kComplete);
    CHECK(pick.connection() == backend.get());
    CHECK(pick.cluster() == &ref("orders"));
    CHECK(pick.status().ok());
    CHECK(pick.sequence() == 1);
    CHECK(asked_for == "orders");
    CHECK(backend->uses() == 1);
    CHECK(ref("orders").uses() == 1);
  }
  CHECK_FALSE(backend->in_use());
  CHECK_FALSE(ref("orders").in_use());
}

TEST_CASE_METHOD(RouterFixture,
                 "router: tells the picker where the cluster stands",
                 "[lb][router]") {
  std::vector<std::size_t> places;
  publish(config_of({route(prefix("/a/"), to("one")), route(prefix("/b/"), to("two"))}),
          answering([&](const PickArgs& args) {
            places.push_back(args.cluster_place);
            return result(Complete{backend.get()});
          }));
  router.pick({"/a/M", nullptr, 7});
  router.pick({"/b/M", nullptr, 7});
  CHECK(places == std::vector<std::size_t>{0, 1});
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a pick outlives the snapshot, and may end on another thread",
                 "[lb][router][A31-13]") {
  publish(all_to(to("orders")),
          answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  Pick pick = router.pick(kCall);
  publish(std::nullopt, nullptr);
  CHECK(backend->in_use());
  CHECK(ref("orders").in_use());

  std::thread([held = std::move(pick)]() mutable { const Pick ended = std::move(held); }).join();
  CHECK_FALSE(backend->in_use());
  CHECK_FALSE(ref("orders").in_use());
}

TEST_CASE_METHOD(RouterFixture, "router: what a picker refuses reaches the call", "[lb][router]") {
  struct Row {
    const char* when;
    PickResult answer;
    PickOutcome outcome;
    absl::StatusCode code;
  };

  const auto row = GENERATE(values<Row>({
      {"it queues", result(Queue{}), PickOutcome::kQueue, absl::StatusCode::kOk},
      {"it fails",
       result(Fail{absl::UnavailableError("all down")}),
       PickOutcome::kFail,
       absl::StatusCode::kUnavailable},
      {"it drops",
       result(Drop{absl::UnavailableError("overload")}),
       PickOutcome::kDrop,
       absl::StatusCode::kUnavailable},
      {"it completes with nothing",
       result(Complete{}),
       PickOutcome::kDrop,
       absl::StatusCode::kInternal},
  }));
  DYNAMIC_SECTION(row.when) {
    publish(all_to(to("orders")), answering([&](const PickArgs&) { return row.answer; }));
    const Pick pick = router.pick(kCall);
    CHECK(pick.outcome() == row.outcome);
    CHECK(pick.status().code() == row.code);
    CHECK(pick.connection() == nullptr);
    CHECK(pick.cluster() == &ref("orders"));
  }
}

// A selector that refuses every call.
class RefusingSelector final : public ConfigSelector {
 public:
  explicit RefusingSelector(absl::Status why) : why_(std::move(why)) {}

  std::variant<Selection, absl::Status> select(const PickArgs&) const override { return why_; }

 private:
  absl::Status why_;
};

TEST_CASE_METHOD(RouterFixture, "router: hides the codes that only servers may send", "[lb][A54]") {
  const auto code = GENERATE(values<absl::StatusCode>({
      absl::StatusCode::kInvalidArgument,
      absl::StatusCode::kNotFound,
      absl::StatusCode::kAlreadyExists,
      absl::StatusCode::kFailedPrecondition,
      absl::StatusCode::kAborted,
      absl::StatusCode::kOutOfRange,
      absl::StatusCode::kDataLoss,
  }));
  const absl::Status original(code, "no such thing");
  const auto is_hidden = [&](const absl::Status& status) {
    CHECK(status.code() == absl::StatusCode::kInternal);
    CHECK_THAT(std::string(status.message()),
               Catch::Contains(absl::StatusCodeToString(code)) && Catch::Contains("no such thing"));
  };
  DYNAMIC_SECTION(absl::StatusCodeToString(code)) {
    publish(all_to(to("a")), answering([&](const PickArgs&) { return result(Fail{original}); }));
    is_hidden(router.pick(kCall).status());
    publish(all_to(to("a")), answering([&](const PickArgs&) { return result(Drop{original}); }));
    is_hidden(router.pick(kCall).status());
    publish(std::nullopt, nullptr, original);
    is_hidden(router.pick(kCall).status());
    auto snapshot = std::make_unique<Snapshot>();
    snapshot->selector = std::make_shared<const RefusingSelector>(original);
    const auto old = cell->exchange(std::move(snapshot));
    SnapshotCell::wait_for_readers();
    is_hidden(router.pick(kCall).status());
  }
}

TEST_CASE_METHOD(RouterFixture, "router: a failure that claims to be OK is none", "[lb][A54]") {
  publish(all_to(to("a")),
          answering([](const PickArgs&) { return result(Fail{absl::OkStatus()}); }));
  const Pick pick = router.pick(kCall);
  CHECK(pick.outcome() == PickOutcome::kFail);
  CHECK(pick.status().code() == absl::StatusCode::kInternal);
}

TEST_CASE_METHOD(RouterFixture, "router: the other codes pass as they are", "[lb][A54]") {
  const auto code = GENERATE(values<absl::StatusCode>({
      absl::StatusCode::kCancelled,
      absl::StatusCode::kUnknown,
      absl::StatusCode::kDeadlineExceeded,
      absl::StatusCode::kPermissionDenied,
      absl::StatusCode::kResourceExhausted,
      absl::StatusCode::kUnimplemented,
      absl::StatusCode::kInternal,
      absl::StatusCode::kUnavailable,
      absl::StatusCode::kUnauthenticated,
  }));
  const absl::Status original(code, "as it is");
  publish(all_to(to("a")), answering([&](const PickArgs&) { return result(Fail{original}); }));
  CHECK(router.pick(kCall).status() == absl::Status(code, "cluster a: as it is"));
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a call that fails says what is wrong with the configuration",
                 "[lb][router][A88]") {
  const ResolutionNotes both{"node ID: n", "LDS is old", {{ClusterName("a"), "EDS is old"}}};

  struct Row {
    const char* when;
    ResolutionNotes notes;
    std::string said;
    std::string text;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"cluster and target",
       both,
       "all down",
       "cluster a: all down (EDS is old; LDS is old; node ID: n)"},
      {"another cluster",
       {"node ID: n", "LDS is old", {{ClusterName("b"), "EDS is old"}}},
       "all down",
       "cluster a: all down (LDS is old; node ID: n)"},
      {"nothing: then it names the node",
       {"node ID: n", "", {}},
       "all down",
       "cluster a: all down (node ID: n)"},
      {"no node", {"", "", {}}, "all down", "cluster a: all down"},
      {"what it says itself is not said again",
       both,
       "xds:///a: EDS is old (node ID: n)",
       "cluster a: xds:///a: EDS is old (LDS is old; node ID: n)"},
  }));
  DYNAMIC_SECTION(row.when) {
    notes = std::make_shared<const ResolutionNotes>(row.notes);
    const absl::Status why = absl::UnavailableError(row.said);
    publish(all_to(to("a")), answering([&](const PickArgs&) { return result(Fail{why}); }));
    CHECK(router.pick(kCall).status() == absl::UnavailableError(row.text));
    publish(all_to(to("a")), answering([&](const PickArgs&) { return result(Drop{why}); }));
    CHECK(router.pick(kCall).status() == absl::UnavailableError(row.text));
  }
}

TEST_CASE_METHOD(RouterFixture,
                 "router: without a route, notes are the target's; other codes have none",
                 "[lb][router][A88]") {
  notes = std::make_shared<const ResolutionNotes>(
      ResolutionNotes{"node ID: n", "RDS is old", {{ClusterName("a"), "EDS is old"}}});
  publish(config_of({route(exact("/other"), to("a"))}), nullptr);
  CHECK_THAT(std::string(router.pick(kCall).status().message()),
             Catch::EndsWith(" (RDS is old; node ID: n)"));
  publish(std::nullopt, nullptr, absl::UnavailableError("no listener"));
  CHECK(router.pick(kCall).status().message() == "no listener (RDS is old; node ID: n)");
  const absl::Status other = absl::DataLossError("x");
  publish(all_to(to("a")), answering([&](const PickArgs&) { return result(Fail{other}); }));
  CHECK_FALSE(absl::StrContains(router.pick(kCall).status().message(), "is old"));
  // A call that waits has no error text, and so no note (such as "RDS is old").
  publish(all_to(to("a")), answering([](const PickArgs&) { return result(Queue{}); }));
  CHECK(router.pick(kCall).status().ok());
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a failure names target, cluster and node, each once, in one form",
                 "[lb][router][A57][A88]") {
  const Router named(cell, {"xds:///orders", "n"});
  notes = std::make_shared<const ResolutionNotes>(
      ResolutionNotes{"node ID: n", "LDS is old", {{ClusterName("a"), "EDS is old"}}});
  publish(all_to(to("a")), nullptr);

  struct Row {
    const char* when;
    absl::Status why;
    bool is_routed;
    std::string text;
  };

  const auto row = GENERATE(values<Row>({
      {"a policy says why",
       absl::UnavailableError("all down"),
       true,
       "xds:///orders: cluster a: all down (EDS is old; LDS is old; node ID: n)"},
      {"its time is over",
       absl::DeadlineExceededError("still connecting"),
       true,
       "xds:///orders: cluster a: still connecting (EDS is old; LDS is old; node ID: n)"},
      {"the reason has all of it already",
       absl::UnavailableError("xds:///orders: cluster a: EDS is old (LDS is old; node ID: n)"),
       true,
       "xds:///orders: cluster a: EDS is old (LDS is old; node ID: n)"},
      {"the reason has names of its own",
       absl::UnavailableError("xds:///orders: CDS resource \"a\" is bad (node ID: n)"),
       true,
       "xds:///orders: cluster a: CDS resource \"a\" is bad (EDS is old; LDS is old; node ID: n)"},
      {"the cluster is the subject already",
       absl::UnavailableError("cluster a was deleted"),
       true,
       "xds:///orders: cluster a was deleted (EDS is old; LDS is old; node ID: n)"},
      {"another cluster is named",
       absl::UnavailableError("cluster ab: no"),
       true,
       "xds:///orders: cluster a: cluster ab: no (EDS is old; LDS is old; node ID: n)"},
      {"there is no route",
       absl::UnavailableError("no route"),
       false,
       "xds:///orders: no route (LDS is old; node ID: n)"},
      {"time ran out",
       absl::DeadlineExceededError("late; last error: xds:///orders: cluster a: all down (EDS is "
                                   "old; LDS is old; node ID: n)"),
       true,
       "xds:///orders: cluster a: late; last error: all down (EDS is old; LDS is old; node ID: "
       "n)"},
      {"the configuration has nothing to do with it",
       absl::InternalError("wrong"),
       true,
       "xds:///orders: cluster a: wrong (node ID: n)"},
  }));
  DYNAMIC_SECTION(row.when) {
    const absl::Status told = named.describe(row.why, row.is_routed ? &ref("a") : nullptr);
    CHECK(told == absl::Status(row.why.code(), row.text));
    CHECK(named.describe(told, row.is_routed ? &ref("a") : nullptr) == told);
  }
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a reason that is too long is cut, between characters",
                 "[lb][router][limits]") {
  const Router named(cell, {"xds:///orders", "n"});
  const std::string e_acute = "\xc3\xa9";
  std::string reason = "x";
  while (reason.size() <= Router::kLongestReason)
    reason += e_acute;
  const std::string kept = reason.substr(0, Router::kLongestReason - 1);
  CHECK(named.describe(absl::UnavailableError(reason)).message() ==
        "xds:///orders: " + kept + " […] (node ID: n)");
  CHECK(named.describe(absl::UnavailableError(kept)).message() ==
        "xds:///orders: " + kept + " (node ID: n)");
  const std::string longest(Router::kLongestReason, 'x');
  CHECK(named.describe(absl::UnavailableError(longest)).message() ==
        "xds:///orders: " + longest + " (node ID: n)");
  const std::string no_beginning(Router::kLongestReason + 1, '\x80');
  CHECK(named.describe(absl::UnavailableError(no_beginning)).message() ==
        "xds:///orders:  […] (node ID: n)");
}

TEST_CASE_METHOD(RouterFixture, "router: waits while there is no configuration", "[lb][router]") {
  const Pick pick = router.pick(kCall);
  CHECK(pick.outcome() == PickOutcome::kQueue);
  CHECK(pick.cluster() == nullptr);
  CHECK(pick.sequence() == 0);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: fails when there can be no configuration",
                 "[lb][router]") {
  publish(std::nullopt, nullptr, absl::UnavailableError("no such listener"));
  const Pick pick = router.pick(kCall);
  CHECK(pick.outcome() == PickOutcome::kFail);
  CHECK(pick.status() == absl::UnavailableError("no such listener"));
}

TEST_CASE_METHOD(RouterFixture, "router: waits while there is no picker", "[lb][router]") {
  publish(all_to(to("orders")), nullptr);
  const Pick pick = router.pick(kCall);
  CHECK(pick.outcome() == PickOutcome::kQueue);
  CHECK(pick.cluster() == &ref("orders"));
  publish(all_to(to("orders")), nullptr, absl::UnavailableError("the tree died"));
  const Pick failed = router.pick(kCall);
  CHECK(failed.outcome() == PickOutcome::kFail);
  CHECK(failed.status() == absl::UnavailableError("cluster orders: the tree died"));
}

TEST_CASE_METHOD(RouterFixture, "router: ends a call that has no route", "[lb][router][A31-6]") {
  publish(config_of({route(exact("/other"), to("a"))}),
          answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  const Pick pick = router.pick(kCall);
  CHECK(pick.outcome() == PickOutcome::kDrop);
  CHECK(pick.status().code() == absl::StatusCode::kUnavailable);
  CHECK(pick.cluster() == nullptr);
}

TEST_CASE_METHOD(RouterFixture, "router: tells what a picker asks for", "[lb][router]") {
  const AskLog log;
  publish(all_to(to("a")), answering([&](const PickArgs&) {
            PickResult answer;
            answer.ask = PickAsk{PickAsk::Kind::kConnect, Address("10.0.0.1:80")};
            answer.ask_target = &log;
            return answer;
          }));
  CHECK(router.pick(kCall).outcome() == PickOutcome::kQueue);
  CHECK(log.asks == std::vector<PickAsk>{{PickAsk::Kind::kConnect, Address("10.0.0.1:80")}});
  // An ask without a receiver is dropped.
  publish(all_to(to("a")), answering([](const PickArgs&) {
            PickResult answer;
            answer.ask = PickAsk{};
            return answer;
          }));
  CHECK(router.pick(kCall).outcome() == PickOutcome::kQueue);
  CHECK(log.asks.size() == 1);
}

TEST_CASE_METHOD(RouterFixture, "router: asks again without routing again", "[lb][A31-1][A31-10]") {
  ForwardAction first = to("first");
  first.max_stream_duration = 3s;
  publish(all_to(first), answering([](const PickArgs&) { return result(Queue{}); }));
  Pick pick = router.pick(kCall);
  REQUIRE(pick.outcome() == PickOutcome::kQueue);

  std::string asked_for;
  publish(all_to(to("second")), answering([&](const PickArgs& args) {
            asked_for = args.cluster->str();
            return result(Complete{backend.get()});
          }));
  router.repick(pick, kCall);

  CHECK(pick.outcome() == PickOutcome::kComplete);
  CHECK(asked_for == "first");
  CHECK(pick.cluster() == &ref("first"));
  CHECK(pick.timeout() == 3s);
  CHECK(pick.sequence() == 2);
  CHECK(ref("first").uses() == 1);
  CHECK(ref("second").uses() == 0);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a call has the hash of its first route in every pick",
                 "[lb][router][A42]") {
  const TestHeaders headers{{"user", "ann"}};
  const CallArgs call{.path = "/s/M", .headers = &headers, .seed = 1};
  ForwardAction hashed = to("first");
  hashed.hash_policies = {{HeaderHash{"user", std::nullopt}, false}};
  std::vector<std::optional<std::uint64_t>> hashes;
  const auto listening = [&] {
    return answering([&](const PickArgs& args) {
      hashes.push_back(args.hash);
      return result(Queue{});
    });
  };
  publish(all_to(hashed), listening());
  Pick pick = router.pick(call);
  // The hash of the first pick stays, although the new routes have no hash policy and the call has
  // no headers now.
  publish(all_to(to("first")), listening());
  router.repick(pick, {.path = "/s/M", .headers = nullptr, .seed = 1});
  CHECK(hashes == std::vector<std::optional<std::uint64_t>>(2, xx_hash("ann")));

  hashes.clear();
  Pick plain = router.pick(call);
  publish(all_to(hashed), listening());
  router.repick(plain, call);
  CHECK(hashes == std::vector<std::optional<std::uint64_t>>(2));
}

TEST_CASE_METHOD(RouterFixture, "router: routes a call that waited for a configuration", "[lb]") {
  Pick pick = router.pick(kCall);
  ForwardAction action = to("orders");
  action.grpc_timeout_header_max = 2s;
  publish(all_to(action),
          answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  CHECK(router.sequence() == 1);
  CHECK(pick.sequence() != router.sequence());
  router.repick(pick, kCall);

  CHECK(pick.outcome() == PickOutcome::kComplete);
  CHECK(pick.timeout() == 2s);
  CHECK(ref("orders").uses() == 1);
}

TEST_CASE_METHOD(RouterFixture, "router: a repick forgets the former answer", "[lb][router]") {
  publish(all_to(to("a")),
          answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  Pick pick = router.pick(kCall);
  publish(all_to(to("a")),
          answering([](const PickArgs&) { return result(Fail{absl::UnavailableError("gone")}); }));
  router.repick(pick, kCall);
  CHECK(pick.outcome() == PickOutcome::kFail);
  CHECK(pick.connection() == nullptr);
  CHECK_FALSE(backend->in_use());

  publish(all_to(to("a")), answering([](const PickArgs&) { return result(Queue{}); }));
  router.repick(pick, kCall);
  CHECK(pick.outcome() == PickOutcome::kQueue);
  CHECK(pick.status().ok());
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a pick that waits or fails has its priority, a complete one has none",
                 "[lb][router]") {
  const auto at_priority = [](PickResult answer, std::uint8_t priority) {
    answer.priority = priority;
    return answering([answer](const PickArgs&) { return answer; });
  };
  const auto priority = [](std::uint8_t number) { return std::optional<std::uint8_t>(number); };
  publish(all_to(to("a")), at_priority(result(Queue{}), 2));
  Pick pick = router.pick(kCall);
  CHECK(pick.priority() == priority(2));
  CHECK_FALSE(pick.is_put_off());

  publish(all_to(to("a")),
          answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  router.repick(pick, kCall);
  CHECK(pick.priority() == std::nullopt);
  pick.put_off();
  CHECK(pick.priority() == std::nullopt);
  CHECK(pick.is_put_off());

  publish(all_to(to("a")), at_priority(result(Fail{absl::UnavailableError("down")}), 0));
  router.repick(pick, kCall);
  CHECK(pick.priority() == priority(0));
  CHECK_FALSE(pick.is_put_off());
  publish(all_to(to("a")), answering([](const PickArgs&) { return result(Queue{}); }));
  router.repick(pick, kCall);
  CHECK(pick.priority() == std::nullopt);

  publish(all_to(to("a")), at_priority(result(Queue{}), 2));
  router.repick(pick, kCall);
  CHECK(pick.priority() == priority(2));
  publish(all_to(to("a")), nullptr);
  router.repick(pick, kCall);
  CHECK(pick.outcome() == PickOutcome::kQueue);
  CHECK(pick.priority() == std::nullopt);

  publish(all_to(to("a")), at_priority(result(Queue{}), 2));
  router.repick(pick, kCall);
  CHECK(pick.priority() == priority(2));
  publish(all_to(to("a")), answering([](const PickArgs&) { return result(Complete{nullptr}); }));
  router.repick(pick, kCall);
  CHECK(pick.outcome() == PickOutcome::kDrop);
  CHECK(pick.priority() == std::nullopt);
}

TEST_CASE_METHOD(RouterFixture, "router: counts each pick where it was routed", "[lb][router]") {
  publish(all_to(to("a")), answering([](const PickArgs&) { return result(Queue{}); }));
  Pick pick = router.pick(kCall);
  publish(all_to(to("a")),
          answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  router.repick(pick, kCall);

  CHECK(ref("a").stats()->picks(PickOutcome::kQueue) == 1);
  CHECK(ref("a").stats()->picks(PickOutcome::kComplete) == 1);
  CHECK(ref("a").stats()->picks(PickOutcome::kFail) == 0);
  CHECK(ref("a").stats()->picks(PickOutcome::kDrop) == 0);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: counts each complete pick by its endpoint's zone",
                 "[lb][router]") {
  for (const CallZone zone : {CallZone::kOwn, CallZone::kOther, CallZone::kOther}) {
    publish(all_to(to("a")), answering([&](const PickArgs&) {
              Complete complete{backend.get()};
              complete.zone = zone;
              return result(complete);
            }));
    router.pick(kCall);
  }
  publish(all_to(to("a")), answering([](const PickArgs&) { return result(Queue{}); }));
  router.pick(kCall);
  const CallStats& stats = *ref("a").stats();
  CHECK(stats.zone_calls(CallZone::kOwn) == 1);
  CHECK(stats.zone_calls(CallZone::kOther) == 2);
  CHECK(stats.zone_calls(CallZone::kUnknown) == 0);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: calls that are not counted are picked all the same",
                 "[lb][router]") {
  counts_calls = false;
  const bool has_leaf = GENERATE(false, true);
  const LeafCalls leaf(ClusterName("leaf"), nullptr);
  PickResult answer = result(Complete{backend.get()});
  if (has_leaf) answer.leaf = &leaf;
  publish(all_to(to("a")), answering([answer](const PickArgs&) { return answer; }));
  Pick pick = router.pick(kCall);
  CHECK(pick.outcome() == PickOutcome::kComplete);
  CHECK(pick.connection() == backend.get());
  CHECK(pick.stats() == nullptr);
  CHECK(leaf.uses() == (has_leaf ? 1 : 0));
  pick.end(0);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a pick below an aggregate is counted by the leaf that it came to",
                 "[lb][router][A75-54][A89]") {
  const LeafCalls leaf(ClusterName("leaf"), std::make_shared<const CallStats>());
  const auto answer_from_leaf = [&](PickResult answer) {
    answer.leaf = &leaf;
    publish(all_to(to("both")), answering([answer](const PickArgs&) { return answer; }));
  };
  {
    answer_from_leaf(result(Complete{backend.get()}));
    Pick pick = router.pick(kCall);
    CHECK(pick.cluster() == &ref("both"));
    REQUIRE(pick.leaf() == &leaf);
    CHECK(pick.stats() == leaf.stats());
    CHECK(leaf.uses() == 1);
    pick.end(0);
    CHECK(leaf.uses() == 1);  // The pick uses the leaf until put_off().
    pick.put_off();
    CHECK(pick.leaf() == nullptr);
    CHECK(pick.stats() == ref("both").stats());
    CHECK_FALSE(leaf.in_use());
    CHECK(router.explain(kCall, Instant()).leaf == "leaf");
    CHECK_FALSE(leaf.in_use());
  }
  answer_from_leaf(result(Fail{absl::UnavailableError("no endpoint")}));
  CHECK(router.pick(kCall).leaf() == nullptr);
  answer_from_leaf(result(Drop{absl::UnavailableError("dropped")}));
  CHECK(router.pick(kCall).stats() == ref("both").stats());
  CHECK_FALSE(leaf.in_use());
  for (const PickOutcome outcome : {PickOutcome::kComplete, PickOutcome::kFail, PickOutcome::kDrop})
    CHECK(leaf.stats()->picks(outcome) == 1);

  publish(all_to(to("both")), answering([](const PickArgs&) { return result(Queue{}); }));
  router.pick(kCall);
  CHECK(leaf.stats()->picks(PickOutcome::kQueue) == 0);
  CHECK(ref("both").stats()->picks(PickOutcome::kQueue) == 1);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: the endpoint's hostname is the call's authority, where its route says so",
                 "[lb][router][A81]") {
  const std::string long_name(100, 'h');
  auto locality = std::make_shared<Locality>();
  locality->endpoints = {{.addresses = {Address("a:1")}, .hostname = "a.example"},
                         {.addresses = {Address("b:1")}, .hostname = long_name},
                         {.addresses = {Address("c:1")}}};
  std::vector<ChosenEndpoint> chosen;
  for (const Endpoint& endpoint : locality->endpoints)
    chosen.push_back({locality, &endpoint, nullptr});
  PickResult answer = result(Queue{});
  const auto choose = [&](const ChosenEndpoint* endpoint) {
    Complete complete{backend.get()};
    complete.endpoint = endpoint;
    answer = result(complete);
  };
  ForwardAction rewriting = to("a");
  rewriting.auto_host_rewrite = true;
  const XdsConfig config =
      config_of({route(prefix("/s/Rewritten"), rewriting), route(prefix(""), to("a"))});
  publish(config, answering([&](const PickArgs&) { return answer; }));

  std::string authority = "of the call before";
  const auto told = [&](const char* path) {
    const Pick pick = router.pick({path, nullptr, 1, &authority});
    CHECK(pick.outcome() == PickOutcome::kComplete);
    return authority;
  };
  choose(&chosen[0]);
  CHECK(told("/s/Rewritten") == "a.example");
  CHECK(told("/s/Other").empty());
  CHECK(router.pick({"/s/Rewritten"}).outcome() ==
        PickOutcome::kComplete);  // The caller does not ask for the authority.
  choose(&chosen[2]);
  authority = "of the call before";
  CHECK(told("/s/Rewritten").empty());  // The endpoint has no hostname.
  choose(nullptr);
  authority = "of the call before";
  CHECK(told("/s/Rewritten").empty());  // The picker names no endpoint.

  SECTION("a call that waits has that of the endpoint that it goes to in the end") {
    answer = result(Queue{});
    authority = "of the call before";
    Pick pick = router.pick({"/s/Rewritten", nullptr, 1, &authority});
    CHECK(pick.outcome() == PickOutcome::kQueue);
    CHECK(authority.empty());
    choose(&chosen[0]);
    // The route stays as it was chosen (A31-1).
    publish(all_to(to("a")), answering([&](const PickArgs&) { return answer; }));
    router.repick(pick, {"/s/Rewritten", nullptr, 1, &authority});
    CHECK(authority == "a.example");
    choose(&chosen[1]);
    router.repick(pick, {"/s/Rewritten", nullptr, 1, &authority});
    CHECK(authority == long_name);
  }
  SECTION("nothing is allocated for one that there is room for") {
    choose(&chosen[1]);
    authority.reserve(long_name.size());
    REQUIRE(told("/s/Rewritten") == long_name);
    const std::uint64_t before = allocations;
    const Pick pick = router.pick({"/s/Rewritten", nullptr, 1, &authority});
    const std::uint64_t after = allocations;
    CHECK(authority == long_name);
    CHECK(after == before);
  }
}

// Checks that a thousand complete picks, each with another seed, and their ends allocate nothing.
void check_allocates_nothing(const Router& router, const TestHeaders& headers) {
  const auto picks = [&] {
    bool complete = true;
    for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
      Pick pick = router.pick({"/s/M", &headers, seed});
      complete = complete && pick.outcome() == PickOutcome::kComplete;
      pick.end(0);
    }
    return complete;
  };

  REQUIRE(picks());  // Warms up the regular expression, and makes the thread's RCU record.
  const std::uint64_t before = allocations;
  const bool complete = picks();
  const std::uint64_t after = allocations;
  CHECK(complete);
  CHECK(after == before);
}

TEST_CASE_METHOD(RouterFixture, "router: a complete pick allocates nothing", "[lb][router]") {
  Route chosen = route(prefix("/s/"), to({{"a", 1}, {"b", 2}}));
  chosen.match.headers = {{"env", exact("canary"), false}, {"shard", IntegerRange{0, 9}, false}};
  chosen.match.fraction_per_million = 1'000'000;
  const XdsConfig config =
      config_of({route(exact("/s/Other"), to("a")), route(regex("/t/.*"), to("a")), chosen});
  notes = std::make_shared<const ResolutionNotes>(ResolutionNotes{"node ID: n", "old", {}});
  publish(config, answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  const TestHeaders headers{{"env", "canary"}, {"shard", "4"}};
  check_allocates_nothing(router, headers);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a complete pick allocates nothing among ten thousand routes",
                 "[lb][router][A28]") {
  std::vector<Route> routes;
  for (int i = 0; i < 3'333; ++i) {
    const std::string service = absl::StrCat("/s", i);
    routes.push_back(route(regex(service + "/[A-Z]+"), to("a")));
    routes.push_back(route(exact(service + "/m"), to("a")));
    routes.push_back(route(in_any_case(prefix(service + "/")), to("a")));
  }
  routes.push_back(route(prefix(""), to("a")));
  publish(config_of(std::move(routes)),
          answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  const auto picks = [&] {
    bool complete = true;
    for (const char* path : {"/s7/M", "/s3332/m", "/S5/x", "/t/M", "/s1"})
      complete = complete && router.pick({path}).outcome() == PickOutcome::kComplete;
    return complete;
  };

  REQUIRE(picks());
  const std::uint64_t before = allocations;
  const bool complete = picks();
  const std::uint64_t after = allocations;
  CHECK(complete);
  CHECK(after == before);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a pick that filters let pass allocates nothing either",
                 "[lb][router][A39][A33]") {
  const FaultShare rare{1, 1'000'000};
  const auto quiet = scripted("quiet", [](FilterCall& call) { call.send_to("b"); });
  publish(with_filters(all_to(to({{"a", 1}, {"b", 2}})),
                       {filter("fault", both(delaying(1s, rare), aborting(std::nullopt))),
                        filter("quiet", quiet)}),
          answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  const TestHeaders headers{{"env", "canary"}};
  REQUIRE(router.pick(kCall).outcome() == PickOutcome::kComplete);
  const std::uint64_t before = allocations;
  bool complete = true;
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    const Pick pick = router.pick({"/s/M", &headers, seed});
    complete = complete && pick.outcome() == PickOutcome::kComplete;
  }
  CHECK(allocations == before);
  CHECK(complete);
}

TEST_CASE_METHOD(
    RouterFixture,
    "router: a pick of a session allocates nothing, whether its cookie is sealed or not",
    "[lb][router][session][A55-18]") {
  const std::string first = "[2001:db8:0:1::1]:8443,10.0.0.1:8443";  // Longer than a short string.
  const std::string second = "10.0.0.2:8443,[2001:db8:0:1::2]:8443";
  SealKey key{};
  SessionTerms terms{.target = "xds:///orders", .now = [] { return Instant(1h); }};
  if (GENERATE(false, true)) terms.seal = std::make_shared<const CookieSeal>(SealKeys{key});
  const Router sessions(cell, {"xds:///orders", "n"}, std::make_shared<const Sessions>(terms));
  bool is_known = true;
  publish(with_filters(all_to(to({{"a", 1}, {"b", 2}})),
                       {filter("session", session_by("JSESSIONID-of-orders", "/", 120s))}),
          answering([&](const PickArgs& args) {
            PickResult answer = result(Complete{backend.get()});
            is_known = is_known && hosts_of(*session_of(args)) == first;
            answer.affinity = {AffinityResult::kHit, is_known ? &first : &second};
            return answer;
          }));
  const TestHeaders none{{"env", "canary"}};
  is_known = false;  // A new session: each of its calls gets a cookie.
  check_allocates_nothing(sessions, none);
  is_known = true;
  REQUIRE_FALSE(sessions.pick({"/s/M", &none, 3}).set_cookie().empty());
  is_known = true;
  std::string value;
  const auto text = first + ";a";
  if (terms.seal != nullptr) {
    const std::string purpose = std::string("JSESSIONID-of-orders") + '\0' + "xds:///orders";
    REQUIRE(terms.seal->seal(text, purpose, value));
  } else {
    value = base64(text);
  }
  const TestHeaders headers{{"cookie", "lang=en; JSESSIONID-of-orders=" + value}};
  check_allocates_nothing(sessions, headers);
  CHECK(is_known);
  CHECK(sessions.pick({"/s/M", &headers, 3}).set_cookie().empty());
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a session's host takes its call without an allocation",
                 "[lb][router][session][A55-33][A75-49]") {
  const std::vector<Address> addresses{Address("[2001:db8:0:1::1]:8443"), Address("10.0.0.2:8443")};
  Locality locality;
  for (const Address& address : addresses) {
    Endpoint endpoint;
    endpoint.addresses = {address};
    endpoint.health = address == addresses[0] ? HealthStatus::kHealthy : HealthStatus::kDraining;
    locality.endpoints.push_back(endpoint);
  }
  Endpoints endpoints;
  endpoints.priorities.push_back({{std::make_shared<const Locality>(std::move(locality))}});
  const auto table = std::make_shared<const HostTable>(
      std::make_shared<const Endpoints>(std::move(endpoints)),
      HealthStatusSet{HealthStatus::kHealthy, HealthStatus::kDraining},
      nullptr);
  HostStates states(table->size());
  for (std::size_t at = 0; at < table->size(); ++at) {
    const Address& address = (*table)[at].address;
    states[at] = SubchannelStateChanged{address,
                                        ConnectivityState::kReady,
                                        true,
                                        absl::OkStatus(),
                                        std::make_shared<const Connection>(address)};
  }
  Instant now{1h};
  const SessionTerms terms{.target = "xds:///orders", .now = [&] { return now += 1s; }};
  const Router sessions(cell, {"xds:///orders", "n"}, std::make_shared<const Sessions>(terms));
  publish(
      with_filters(all_to(to("a")), {filter("session", session_by("s"))}),
      make_override_host_picker(
          make_connection_picker(states[0]->connection), make_host_slots(table, states), nullptr));
  const char* const host = GENERATE(
      "", "[2001:db8:0:1::1]:8443", "10.0.0.2:8443", "10.0.0.9:1,10.0.0.2:8443", "10.0.0.9:1");
  CAPTURE(host);
  const TestHeaders headers{{"cookie", "s=" + base64(absl::StrCat(host, ";a"))}};
  check_allocates_nothing(sessions, headers);
  const bool is_second = absl::EndsWith(host, addresses[1].str());
  CHECK((*table)[is_second ? 1 : 0].mark->last_used() == now);
  CHECK_FALSE((*table)[is_second ? 0 : 1].mark->used_after(Instant::min()));
}

TEST_CASE_METHOD(RouterFixture,
                 "router: no cookie is so large, nor so many, that a pick allocates for them",
                 "[lb][router][session][limits][B9]") {
  static const std::string hosts = "10.0.0.1:80";
  publish(with_filters(all_to(to("a")), {filter("session", session_by("s"))}),
          answering([&](const PickArgs& args) {
            PickResult answer = result(Complete{backend.get()});
            answer.affinity = {hosts_of(*session_of(args)).empty() ? AffinityResult::kNew
                                                                   : AffinityResult::kUnknownHost,
                               &hosts};
            return answer;
          }));
  TestHeaders::List crumbs(10'000, {"cookie", "a=0; b=1"});
  crumbs.emplace_back("cookie", "s=" + base64("10.0.0.2:80;a"));
  std::string many;
  for (int i = 0; i < 10'000; ++i)
    many += "a=0; ";
  const auto headers = GENERATE_COPY(
      TestHeaders(crumbs),
      TestHeaders{{"cookie", many + "s=" + base64("10.0.0.2:80;a")}},
      TestHeaders{{"cookie", "s=" + std::string(1 << 20, 'A')}},
      TestHeaders{{"cookie", "s=" + base64("10.0.0.2:80;" + std::string(3 << 18, 'a'))}});
  check_allocates_nothing(router, headers);
  CHECK(ref("a").stats()->affinity(AffinityResult::kBadCookie) == 2'000);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a pick by ring_hash or least_request allocates nothing",
                 "[lb][router][A42][A48]") {
  const auto config =
      GENERATE(make_lb_config(RingHashConfig{}), make_lb_config(LeastRequestConfig{}));
  LeafHarness leaf(make_policy(*config, PolicyContext{PolicyPath{"p"}, 1, nullptr}));
  leaf.update({"a", "b", "c"}, config);
  for (const char* address : {"a", "b", "c"}) {
    leaf.step(PickAsked{{PickAsk::Kind::kConnect, Address{address}}});
    leaf.ready(address);
  }
  leaf.step(RebuildDue{});
  ForwardAction hashed = to("orders");
  hashed.hash_policies = {{HeaderHash{"user", std::nullopt}, false}};
  publish(all_to(hashed), leaf.published.back().picker);
  const TestHeaders headers{{"user", "ann"}};
  check_allocates_nothing(router, headers);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a pick that cluster_impl limits allocates nothing either",
                 "[lb][router][cluster_impl][A32]") {
  auto rules = std::make_shared<CallRules>();
  rules->drops.push_back({1, absl::UnavailableError("one of a million"), {}});
  rules->gate = std::make_shared<const RequestGate>(
      std::make_shared<const RequestLimit>(), 5, ClusterName("orders"), nullptr);
  publish(all_to(to("orders")), make_cluster_impl_picker(make_connection_picker(backend), rules));
  check_allocates_nothing(router, {});
}

// A gate that lets at most `most` calls in at a time.
struct Gate final : CallGate {
  explicit Gate(int places) : most(places) {}

  bool enter() const noexcept override {
    if (inside == most) return false;
    ++inside;
    return true;
  }

  void begun() const noexcept override { ++begins; }

  void ended(const CallEnd& /*end*/) const noexcept override { --inside; }

  absl::Status refuse() const override {
    ++refusals;
    return absl::UnavailableError("full");
  }

  std::uint32_t limit() const override { return static_cast<std::uint32_t>(most); }

  bool is_full() const override { return inside == most; }

  const int most;
  mutable int inside = 0;
  mutable int begins = 0;
  mutable int refusals = 0;
};

PickerPtr through(const Gate& gate, const Connection& connection) {
  return answering([&](const PickArgs&) {
    PickResult answer = result(Complete{&connection});
    answer.trackers.add_gate(gate);
    return answer;
  });
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a call that the gate turns away is dropped, and nobody begins",
                 "[lb][router][A32][A37-30]") {
  const Gate gate(1);
  publish(all_to(to("orders")), through(gate, *backend));
  std::optional<Pick> first(router.pick(kCall));
  REQUIRE(first->outcome() == PickOutcome::kComplete);
  const Pick second = router.pick(kCall);
  CHECK(second.outcome() == PickOutcome::kDrop);
  CHECK(second.status() == absl::UnavailableError("cluster orders: full"));
  CHECK(second.connection() == nullptr);
  CHECK(backend->uses() == 1);
  CHECK(gate.begins == 1);
  CHECK(gate.refusals == 1);
  first->end(0);
  CHECK(gate.inside == 0);
  first.reset();
  CHECK(router.pick(kCall).outcome() == PickOutcome::kComplete);
  CHECK(gate.inside == 0);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: an explanation of a call at the limit drops it, and takes no place",
                 "[lb][router][explain][A32]") {
  const Gate gate(1);
  publish(all_to(to("orders")), through(gate, *backend));
  CHECK(router.explain(kCall, Instant()).outcome == PickOutcome::kComplete);
  CHECK(gate.inside == 0);
  const Pick running = router.pick(kCall);
  const Explanation full = router.explain(kCall, Instant());
  CHECK(full.outcome == PickOutcome::kDrop);
  CHECK(full.status == absl::UnavailableError("cluster orders: 1 calls in flight, the limit"));
  CHECK(full.address.empty());
  CHECK(gate.inside == 1);
  CHECK(gate.refusals == 0);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a call that picks again is not in its own way",
                 "[lb][router][A32]") {
  const Gate gate(1);
  publish(all_to(to("orders")), through(gate, *backend));
  Pick pick = router.pick(kCall);
  router.repick(pick, kCall);
  CHECK(pick.outcome() == PickOutcome::kComplete);
  CHECK(gate.inside == 1);
  CHECK(gate.refusals == 0);
}

TEST_CASE_METHOD(RouterFixture,
                 "router: a pick that is put off holds nothing but its cluster",
                 "[lb][router][A32]") {
  const Gate gate(1);
  publish(all_to(to("orders")), through(gate, *backend));
  Pick pick = router.pick(kCall);
  pick.put_off();
  CHECK(pick.outcome() == PickOutcome::kQueue);
  CHECK(pick.connection() == nullptr);
  CHECK(pick.cluster() == &ref("orders"));
  CHECK(gate.inside == 0);
  CHECK_FALSE(backend->in_use());
}

}  // namespace
}  // namespace signalbox::lb
