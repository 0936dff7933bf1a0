// SPDX-License-Identifier: Apache-2.0
#include "xds/client/client_core.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/xds_resources.hpp"
#include "tests/unit/xds/client_support.hpp"

namespace signalbox::xds::client_core_test {
namespace {

using namespace std::chrono_literals;
using tests::cds;
using tests::eds;
using tests::eds_cluster;
using tests::lds;
using tests::locality;
using tests::rds;

constexpr auto kCds = ResourceType::kCluster;

const absl::Status kServerLost = absl::UnavailableError("xDS server cp: refused");

}  // namespace

TEST_CASE("client core: two watchers of a resource share one subscription, and both are told",
          "[xds][client][A37-10]") {
  Client client;
  CHECK(client.watch(1, cds("a")) == Lines{"subscribe CDS [a]"});
  CHECK(client.watch(2, cds("a")).empty());
  CHECK(client.watch(2, cds("b")) == Lines{"subscribe CDS [a b]"});
  CHECK(client.receive({good("a"), good("other")}) ==
        Lines{"1: a value", "2: a value", "count 2 0"});
  CHECK(client.unwatch(1, cds("a")).empty());
  CHECK(client.unwatch(2, cds("a")) == Lines{"subscribe CDS [b]"});
  CHECK(client.unwatch(2, cds("a")).empty());
}

TEST_CASE("client core: a change is told with its version, and with the time of its response",
          "[xds][client][metrics]") {
  const Instant at{3h};
  Client client;
  client.watch(1, cds("a"));
  ResourcesReceived received{kCds, "v42", {good("a")}, {}};
  received.at = at;
  client.report(received);
  REQUIRE(client.told.changes.size() == 1);
  CHECK(std::get<ResourceChanged>(client.told.changes[0]).version == "v42");
  CHECK(client.told.response_at == at);
  // A later watcher gets the cached resource. No response caused this change, so it has no time of
  // a response.
  client.watch(2, cds("a"));
  CHECK(std::get<ResourceChanged>(client.told.changes.at(0)).version == "v42");
  CHECK(client.told.response_at == std::nullopt);
  // The loss of the server is not caused by a response, either.
  client.server(kServerLost);
  CHECK(std::holds_alternative<AmbientErrorChanged>(client.told.changes.at(0)));
  CHECK(client.told.response_at == std::nullopt);
}

TEST_CASE("client core: a step asks once for each type, and tells each watcher once",
          "[xds][client][K5]") {
  ClientCore client({});
  WatchesChanged wanted{1, {}};
  ResourcesReceived received{kCds, "v", {}, {}};
  for (int i = 0; i < 1000; ++i) {
    const std::string name = absl::StrCat("c", i);
    wanted.changes.emplace_back(Watch{cds(name)});
    wanted.changes.emplace_back(Watch{eds(name)});
    received.resources.push_back(good(name));
  }
  const auto asks = [&](const ClientEvent& event) {
    std::vector<std::set<std::string>> names;
    for (const ClientEffect& effect : client.step(event, Instant{}, WallTime{})) {
      if (const auto* ask = std::get_if<AskServer>(&effect))
        names.push_back(ask->subscription.names);
    }
    return names;
  };
  const auto asked = asks(wanted);
  REQUIRE(asked.size() == 2);
  CHECK(asked[0].size() == 1000);
  CHECK(asked[1].size() == 1000);
  client.step(WatchesChanged{2, {Watch{cds("c7")}}}, Instant{}, WallTime{});

  std::map<WatcherId, std::size_t> told;
  for (const ClientEffect& effect :
       client.step(ServerReported{0, received}, Instant{}, WallTime{})) {
    const auto* notify = std::get_if<NotifyWatcher>(&effect);
    if (notify == nullptr) continue;
    CHECK(told.emplace(notify->watcher, notify->what.changes.size()).second);
  }
  CHECK(told == std::map<WatcherId, std::size_t>{{1, 1000}, {2, 1}});
  CHECK(asks(WatcherGone{1}) == std::vector<std::set<std::string>>{{"c7"}, {}});
}

TEST_CASE("client core: what is left and wanted again in one step is told again, not asked again",
          "[xds][client][K5]") {
  Client client;
  client.watch(1, cds("a"));
  client.receive({good("a")});
  CHECK(client.step(WatchesChanged{1, {Unwatch{cds("a")}, Watch{cds("a")}}}) ==
        Lines{"1: a value"});
  CHECK(client.step(WatchesChanged{1, {Watch{cds("b")}, Unwatch{cds("a")}}}) ==
        Lines{"subscribe CDS [b]"});
}

TEST_CASE("client core: what is equal is not told again, whatever its bytes are",
          "[xds][client][K4]") {
  Client client;
  client.watch(1, cds("a"));
  const auto with_bytes = [](const std::string& service, const std::string& bytes) {
    ReceivedResource received = good("a", service);
    received.bytes = std::make_shared<const std::string>(bytes);
    return received;
  };
  client.receive({with_bytes("e", "1")});
  CHECK(client.receive({with_bytes("e", "other order of fields")}) == Lines{"count 1 0"});
  CHECK(client.receive({with_bytes("f", "2")}) == Lines{"1: a value", "count 1 0"});
  // The same bytes can give another resource, because parse options can change. Watchers get it.
  CHECK(client.receive({with_bytes("g", "2")}) == Lines{"1: a value", "count 1 0"});
}

TEST_CASE("client core: a new watcher is told at once what is known", "[xds][client][A88]") {
  Client client;
  client.watch(1, cds("a"));
  SECTION("the resource") {
    client.receive({good("a")});
    CHECK(client.watch(2, cds("a")) == Lines{"2: a value"});
  }
  SECTION("the resource, then what is ambient") {
    client.receive({good("a")});
    client.receive({bad("a")});
    CHECK(client.watch(2, cds("a")) ==
          Lines{"2: a value", "2: a ambient UNAVAILABLE: CDS resource \"a\": type: not supported"});
  }
  SECTION("that it is invalid") {
    client.receive({bad("a")});
    CHECK(client.watch(2, cds("a")) ==
          Lines{"2: a UNAVAILABLE: CDS resource \"a\": type: not supported"});
  }
  SECTION("that the server cannot be reached") {
    client.server(kServerLost);
    CHECK(client.watch(2, cds("a")) == Lines{"2: a UNAVAILABLE: xDS server cp: refused"});
  }
  SECTION("nothing, while it is being waited for") {
    CHECK(client.watch(2, cds("a")).empty());
  }
}

TEST_CASE("client core: forgets a resource when its last watcher goes", "[xds][client]") {
  Client client;
  client.watch(1, cds("a"));
  client.receive({good("a")});
  client.unwatch(1, cds("a"));
  CHECK(client.watch(1, cds("a")) == Lines{"subscribe CDS [a]"});
}

TEST_CASE("client core: all watches of a watcher that is gone end at once", "[xds][client]") {
  Client client;
  client.watch(1, cds("a"));
  client.watch(1, cds("b"));
  client.watch(1, lds("l"));
  client.watch(2, cds("b"));
  CHECK(client.step(WatcherGone{1}) == Lines{"subscribe LDS []", "subscribe CDS [b]"});
  CHECK(client.receive({good("b")}) == Lines{"2: b value", "count 1 0"});
}

TEST_CASE("client core: valid resources of a rejected response are used", "[xds][client][A46]") {
  Client client;
  client.watch(1, cds("a"));
  client.watch(2, cds("b"));
  CHECK(client.receive({bad("a"), good("b")}) ==
        Lines{"1: a UNAVAILABLE: CDS resource \"a\": type: not supported",
              "2: b value",
              "count 1 1"});
}

TEST_CASE("client core: absence says nothing where a response need not be complete",
          "[xds][client][A88]") {
  Client client;
  SECTION("of a type that is sent piece by piece") {
    client.watch(1, eds("e"));
    client.report(ResourcesReceived{ResourceType::kEndpoints,
                                    "v",
                                    {{"e", Resource{tests::endpoints({{locality("l", {"a"})}})}}},
                                    {}});
    CHECK(client.report(ResourcesReceived{ResourceType::kEndpoints, "v", {}, {}}) ==
          Lines{"count 0 0"});
  }
  SECTION("when the response may answer an earlier request") {
    client.watch(1, cds("a"));
    client.asked({"a"});
    CHECK(client.receive({}) == Lines{"count 0 0"});
  }
  SECTION("when one resource could not even be named") {
    client.watch(1, cds("a"));
    client.receive({good("a")});
    CHECK(client.report(ResourcesReceived{kCds, "v", {}, {"undecodable"}}) == Lines{"count 0 1"});
  }
}

TEST_CASE("client core: a listener is deleted by its absence, and routes are not",
          "[xds][client][A88]") {
  Client client;
  client.watch(1, lds("l"));
  client.watch(1, rds("r"));
  client.watch(1, cds("a"));
  const auto receive = [&](ResourceType type, std::vector<ReceivedResource> resources) {
    return client.report(ResourcesReceived{type, "v", std::move(resources), {}});
  };
  receive(ResourceType::kListener, {{"l", Resource{tests::rds_listener("l", "r")}}});
  receive(ResourceType::kRouteConfig, {{"r", Resource{tests::routes_to("r", {"a"})}}});
  receive(kCds, {good("a")});
  CHECK(receive(ResourceType::kRouteConfig, {}) == Lines{"count 0 0"});
  CHECK(receive(ResourceType::kListener, {}) ==
        Lines{"1: l ambient NOT_FOUND: LDS resource \"l\" was deleted", "count 0 0"});
}

TEST_CASE("client core: invalid resources without a name are counted, listed or not",
          "[xds][client][metrics]") {
  Client client;
  client.watch(1, cds("a"));
  ResourcesReceived received{kCds, "v", {good("a"), bad("b")}, {"undecodable"}};
  received.more_unnamed = 2;
  CHECK(client.report(received) == Lines{"1: a value", "count 1 4"});
}

TEST_CASE("client core: an unchanged resource is not told again", "[xds][client]") {
  Client client;
  client.watch(1, cds("a"));
  client.receive({good("a")});
  CHECK(client.receive({good("a")}) == Lines{"count 1 0"});
  CHECK(client.receive({good("a", "other")}) == Lines{"1: a value", "count 1 0"});
}

TEST_CASE("client core: what does not come within 15 s is told as that", "[xds][client][A57]") {
  Client client;
  client.watch(1, cds("a"));
  CHECK(client.asked({"a"}) == Lines{"timer CDS/a"});
  CHECK(client.timer.delay == 15s);
  const StartTimer first = client.timer;

  SECTION("told once the time is over") {
    CHECK(client.step(TimerFired{first.timer}) ==
          Lines{"1: a NOT_FOUND: CDS resource \"a\" did not come within 15 s"});
    CHECK(client.step(TimerFired{first.timer}).empty());
    CHECK(client.receive({good("a")}) == Lines{"1: a value", "count 1 0"});
    CHECK(client.step(TimerFired{first.timer}).empty());
  }
  SECTION("not if it comes") {
    CHECK(client.receive({good("a")}) == Lines{"cancel CDS/a", "1: a value", "count 1 0"});
    CHECK(client.step(TimerFired{first.timer}).empty());
  }
  SECTION("not if it comes but is invalid") {
    CHECK(client.receive({bad("a")}).front() == "cancel CDS/a");
    CHECK(client.asked({}).empty());
    // The next stream asks again, so the timer starts again.
    CHECK(client.asked({"a"}) == Lines{"timer CDS/a"});
  }
  SECTION("not for a second request on the same stream, which changes nothing") {
    client.watch(1, cds("b"));
    CHECK(client.asked({"a", "b"}) == Lines{"timer CDS/b"});
  }
  SECTION("whatever is asked for of another type") {
    client.watch(1, eds("e"));
    CHECK(client.report(SubscriptionSent{ResourceType::kEndpoints, {"e"}}) == Lines{"timer EDS/e"});
    CHECK(client.report(SubscriptionSent{ResourceType::kEndpoints, {}}) == Lines{"cancel EDS/e"});
    CHECK_FALSE(client.step(TimerFired{first.timer}).empty());
  }
  SECTION("not while there is no stream, and from the start on the next one") {
    CHECK(client.asked({}) == Lines{"cancel CDS/a"});
    CHECK(client.step(TimerFired{first.timer}).empty());
    CHECK(client.asked({"a"}) == Lines{"timer CDS/a"});
    CHECK(client.timer.timer != first.timer);
    CHECK(client.step(TimerFired{first.timer}).empty());
  }
  SECTION("not once nobody watches it") {
    CHECK(client.unwatch(1, cds("a")) == Lines{"cancel CDS/a", "subscribe CDS []"});
  }
  SECTION("not on the next stream if it is cached") {
    client.receive({good("a")});
    client.asked({});
    CHECK(client.asked({"a"}).empty());
  }
}

TEST_CASE("client core: an answer that is heard before its request has left is an answer",
          "[xds][client][A57][A88]") {
  Client client;
  client.watch(1, cds("a"));
  SECTION("a NACK keeps its error") {
    const Lines told = client.receive({bad("a")});
    REQUIRE(told.front() == "1: a UNAVAILABLE: CDS resource \"a\": type: not supported");
    CHECK(client.asked({"a"}).empty());
    CHECK(client.watch(2, cds("a")) ==
          Lines{"2: a UNAVAILABLE: CDS resource \"a\": type: not supported"});
  }
  SECTION("so does what the server says of it") {
    client.report(ResourcesReceived{kCds, "v", {}, {}, 0, {{"a", absl::InternalError("busy")}}});
    CHECK(client.asked({"a"}).empty());
  }
  SECTION("another resource of the request is waited for") {
    client.watch(1, cds("b"));
    client.receive({bad("a")});
    CHECK(client.asked({"a", "b"}) == Lines{"timer CDS/b"});
  }
  SECTION("the next stream is waited for") {
    client.receive({bad("a")});
    client.asked({"a"});
    client.asked({});
    CHECK(client.asked({"a"}) == Lines{"timer CDS/a"});
  }
  SECTION("also after a stream that ended before the request had left") {
    client.receive({bad("a")});
    client.asked({});
    CHECK(client.asked({"a"}) == Lines{"timer CDS/a"});
  }
}

TEST_CASE("client core: a lost server is an error for what is not cached", "[xds][client][A57]") {
  Client client;
  client.watch(1, cds("a"));
  CHECK(client.server(kServerLost) == Lines{"1: a UNAVAILABLE: xDS server cp: refused"});
  CHECK(client.server(absl::OkStatus()).empty());
  CHECK(client.receive({good("a")}) == Lines{"1: a value", "count 1 0"});
}

TEST_CASE("client core: a response ends what was said of its server, whoever said it",
          "[xds][client][A57]") {
  Client client;
  client.watch(1, cds("a"));
  client.receive({good("a")});
  CHECK(client.server(kServerLost).size() == 1);
  // A restarted session does not know of the loss and reports no recovery. The response is enough.
  const Lines told = client.receive({good("a")});
  CHECK(std::ranges::find(told, "1: a ambient OK") != told.end());
}

TEST_CASE("client core: a resource is equal to itself and to no other", "[xds][client][cache]") {
  const Resource cluster{eds_cluster("a", "e")};
  CHECK(same_content(cluster, Resource{eds_cluster("a", "e")}));
  CHECK_FALSE(same_content(cluster, Resource{eds_cluster("a", "f")}));
  CHECK_FALSE(same_content(cluster, Resource{tests::aggregate("a", {"e"})}));
  const Resource inline_listener{tests::inline_listener("l", tests::routes_to("r", {"a"}))};
  CHECK(same_content(inline_listener,
                     Resource{tests::inline_listener("l", tests::routes_to("r", {"a"}))}));
  CHECK_FALSE(same_content(inline_listener,
                           Resource{tests::inline_listener("l", tests::routes_to("r", {"b"}))}));
  CHECK_FALSE(same_content(inline_listener, Resource{tests::rds_listener("l", "r")}));
  CHECK_FALSE(same_content(inline_listener, cluster));
  const auto in = [](const char* address) {
    return Resource{tests::endpoints({{locality("x", {address})}})};
  };
  CHECK(same_content(in("1"), in("1")));
  CHECK_FALSE(same_content(in("1"), in("2")));
}

}  // namespace signalbox::xds::client_core_test
