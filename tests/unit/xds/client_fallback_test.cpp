// SPDX-License-Identifier: Apache-2.0
//
// Details of the client core with several servers and authorities. tests/spec/a47_federation_test
// and a71_fallback_test have the behaviour that the gRFCs describe.
#include <algorithm>
#include <string>

#include <catch2/catch.hpp>

#include "tests/unit/xds/client_support.hpp"

namespace signalbox::xds {
namespace {

using namespace std::chrono_literals;
using tests::cds;
using tests::eds;

// Server 0 is the server of resources without an authority. The authority "east" has server 1, and
// server 0 as its fallback.
ClientOptions two_authorities() {
  ClientOptions options;
  options.servers = {{.name = "own"}, {.name = "east"}};
  options.authorities = {{"east", {1, 0}}};
  return options;
}

std::string in(const std::string& authority, const std::string& id) {
  return "xdstp://" + authority + "/envoy.config.cluster.v3.Cluster/" + id;
}

}  // namespace

// --- fallback ---------------------------------------------------------------

TEST_CASE(
    "fallback: a better server that is well is used when the active one fails, whatever came "
    "first",
    "[xds][client][A71][K6]") {
  Client client(three_servers());
  client.watch(1, cds("a"));
  client.server(lost("a"));
  client.receive({});  // Server 0 is back, but has no resource yet.
  CHECK(client.asked({"a"}).empty());
  CHECK(client.server(lost("b"), 1) == Lines{"timer CDS/a", "leave 1"});
}

TEST_CASE("fallback: the does-not-exist timer is the active server's, and ends with its turn",
          "[xds][client][A57][A71][K3]") {
  Client client(three_servers());
  client.watch(1, cds("a"));
  client.asked({"a"});
  client.receive({bad("a")});
  client.asked({});
  CHECK(client.server(lost("a")).empty());
  CHECK(client.asked({"a"}) == Lines{"timer CDS/a"});
  const Lines fell_back = client.watch(2, cds("b"));
  CHECK(std::ranges::count(fell_back, "cancel CDS/a") == 1);
}

TEST_CASE("fallback: a server that was left and is asked again is waited for again",
          "[xds][client][A57][A71]") {
  Client client(three_servers());
  client.watch(1, cds("a"));
  client.watch(1, cds("b"));
  client.server(lost("a"));
  client.asked({"a", "b"}, 1);
  client.receive({good("a")});  // Server 0 is back, so server 1 is left.
  client.server(lost("a"));
  CHECK(client.asked({"a", "b"}, 1) == Lines{"timer CDS/b"});
}

TEST_CASE("fallback: a server takes away what it sent, or is asked for now, and nothing else",
          "[xds][client][A71][A88]") {
  ClientOptions options = three_servers();
  options.servers[0].fail_on_data_errors = true;
  Client client(options);
  client.watch(1, cds("a"));
  client.server(lost("a"));
  client.receive({good("a")}, 1);
  SECTION("by a NACK") {
    CHECK_THAT(client.receive({bad("a")}, 0).front(), Catch::StartsWith("1: a ambient"));
  }
  SECTION("by what it says of it") {
    ResourcesReceived received{ResourceType::kCluster, "v", {}, {}};
    received.resource_errors.push_back({"a", absl::NotFoundError("no")});
    CHECK_THAT(client.report(received, 0).front(), Catch::StartsWith("1: a ambient"));
  }
}

TEST_CASE("fallback: a loss is told, even if its reason was an ambient error before",
          "[xds][client][A71][A88]") {
  ClientOptions options = three_servers();
  options.servers[1].fail_on_data_errors = true;
  Client client(options);
  client.watch(1, cds("a"));
  client.receive({good("a")});
  client.receive({bad("a")});
  client.watch(1, cds("b"));
  client.server(lost("a"));
  const Lines told = client.receive({bad("a")}, 1);
  CHECK(std::ranges::any_of(
      told, [](const std::string& line) { return line.starts_with("1: a UNAVAILABLE"); }));
}

TEST_CASE("fallback: where nothing is watched any more, the next begins with the best server",
          "[xds][client][A71]") {
  Client client(three_servers());
  client.watch(1, cds("a"));
  client.server(lost("a"));
  CHECK(client.unwatch(1, cds("a")) == Lines{"subscribe CDS []", "leave 1", "leave 0"});
  client.server(absl::OkStatus());
  CHECK(client.watch(1, cds("a")) == Lines{"subscribe CDS [a]"});
}

TEST_CASE(
    "a failed server that is asked for nothing is left, and later watchers are not told its error",
    "[xds][client][A57][A71]") {
  Client client;
  client.watch(1, cds("a"));
  SECTION("it fails, and then the last watcher leaves") {
    client.server(lost("a"));
    client.watch(2, cds("a"));
    CHECK(client.unwatch(1, cds("a")).empty());
    CHECK(client.unwatch(2, cds("a")) == Lines{"subscribe CDS []", "leave 0"});
  }
  SECTION("the last watcher leaves, and then it fails") {
    CHECK(client.unwatch(1, cds("a")) == Lines{"subscribe CDS []"});
    CHECK(client.server(lost("a")) == Lines{"leave 0"});
  }
  CHECK(client.server(lost("a")).empty());
  CHECK(client.watch(3, cds("a")) == Lines{"subscribe CDS [a]"});
  CHECK(client.dump().servers.front().error.empty());
}

TEST_CASE("a failed server of two authorities stays while one of them asks it for something",
          "[xds][client][A47][A71]") {
  Client client(two_authorities());
  client.watch(1, cds("a"));
  client.watch(1, cds(in("east", "b")));
  client.server(lost("east"), 1);  // "east" falls back to server 0.
  client.server(lost("own"));
  CHECK(client.unwatch(1, cds("a")) ==
        Lines{"subscribe CDS [xdstp://east/envoy.config.cluster.v3.Cluster/b]"});
  CHECK(client.unwatch(1, cds(in("east", "b"))) ==
        Lines{"subscribe CDS []", "subscribe CDS [] at 1", "leave 0", "leave 1"});
}

TEST_CASE("fallback: the does-not-exist timer is that of the active server",
          "[xds][client][A57][A71]") {
  ClientOptions options = three_servers();
  options.servers[1].resource_timer_is_transient_error = true;
  Client client(options);
  client.watch(1, cds("a"));
  CHECK(client.asked({"a"}) == Lines{"timer CDS/a"});
  CHECK(client.timer.delay == 15s);
  CHECK(client.asked({}) == Lines{"cancel CDS/a"});
  client.server(lost("a"));
  CHECK(client.asked({"a"}).empty());
  CHECK(client.asked({"a"}, 1) == Lines{"timer CDS/a"});
  CHECK(client.timer.delay == 30s);
  SECTION("and begins anew with the server that is returned to") {
    client.watch(1, cds("b"));
    client.asked({"a", "b"});
    client.asked({"a", "b"}, 1);
    client.server(absl::OkStatus());
    CHECK(client.receive({good("b")}) == Lines{"cancel CDS/a",
                                               "cancel CDS/b",
                                               "timer CDS/a",
                                               "timer CDS/b",
                                               "cancel CDS/b",
                                               "leave 1",
                                               "1: b value",
                                               "count 1 0"});
    CHECK(client.timer.delay == 15s);
  }
}

TEST_CASE("fallback: what a server that is not the active one was asked for starts no timer",
          "[xds][client][A57][A71][K3]") {
  Client client(three_servers());
  client.watch(1, cds("a"));
  client.server(lost("a"));
  client.asked({"a"}, 1);
  SECTION("of what does not exist") {
    CHECK(client.step(TimerFired{client.timer.timer}) ==
          Lines{"1: a NOT_FOUND: CDS resource \"a\" did not come within 15 s"});
  }
  SECTION("of what was refused, which it would take for missing") {
    client.receive({bad("a")}, 1);
  }
  CHECK(client.asked({"a"}).empty());
  CHECK(client.asked({}).empty());
}

TEST_CASE("fallback: a better server is returned to before its response is used, in any order",
          "[xds][client][A71][A88]") {
  ClientOptions options = three_servers();
  options.servers[0].fail_on_data_errors = true;
  Client client(options);
  client.watch(1, cds("a"));
  client.watch(1, cds("b"));
  client.server(lost("a"));
  client.asked({"a", "b"}, 1);
  std::vector<ReceivedResource> response{bad("a"), good("b")};
  const bool good_first = GENERATE(false, true);
  if (good_first) std::ranges::reverse(response);
  SECTION("what it refuses is not waited for") {
    client.asked({"a", "b"});
    const Lines lines = client.receive(response);
    CHECK(std::ranges::count(lines, "leave 1") == 1);
    const auto started = std::ranges::find(lines, "timer CDS/a");
    CHECK(std::count(started, lines.end(), "cancel CDS/a") == 1);
  }
  SECTION("what it refuses is lost, as it is the one that is asked now") {
    client.receive({good("a")}, 1);
    const Lines lines = client.receive(response);
    CHECK(std::ranges::any_of(
        lines, [](const std::string& line) { return line.starts_with("1: a UNAVAILABLE"); }));
    CHECK(client.dump().resources[0].version.empty());
  }
}

TEST_CASE("fallback: a server that was left is not heard, and is well when it is asked again",
          "[xds][client][A71]") {
  Client client(three_servers());
  client.watch(1, cds("a"));
  client.server(lost("a"));
  CHECK(client.receive({good("a")}) == Lines{"leave 1", "1: a value", "count 1 0"});
  CHECK(client.server(lost("b"), 1).empty());
  CHECK(client.dump().servers[1].error.empty());
  client.watch(1, cds("b"));
  CHECK(client.server(lost("a")) == Lines{"subscribe CDS [a b] at 1"});
}

TEST_CASE("fallback: a server that was left is asked again only for what is wanted by then",
          "[xds][client][A71]") {
  Client client(three_servers());
  client.watch(1, cds("a"));
  client.server(lost("a"));
  client.unwatch(1, cds("a"));
  CHECK(client.watch(1, eds("e")) == Lines{"subscribe EDS [e]"});
  CHECK(client.server(lost("a")) == Lines{"subscribe EDS [e] at 1"});
}

TEST_CASE("fallback: the next server is asked for the resources of all types",
          "[xds][client][A71]") {
  Client client(three_servers());
  client.watch(1, tests::lds("l"));
  client.watch(1, tests::rds("r"));
  client.watch(1, cds("a"));
  client.watch(1, eds("e"));
  CHECK(client.server(lost("a")) == Lines{"subscribe LDS [l] at 1",
                                          "subscribe RDS [r] at 1",
                                          "subscribe CDS [a] at 1",
                                          "subscribe EDS [e] at 1"});
}

TEST_CASE("fallback: a late report of a server that is not in use starts no timer later",
          "[xds][client][A57][A71]") {
  Client client(three_servers());
  client.watch(1, cds("a"));
  CHECK(client.asked({"a"}, 1).empty());
  CHECK(client.server(lost("a")) == Lines{"subscribe CDS [a] at 1"});
}

TEST_CASE("fallback: what a server refused before it was left is waited for when it is asked again",
          "[xds][client][A57][A71]") {
  Client client(three_servers());
  client.watch(1, cds("a"));
  client.watch(1, cds("b"));
  client.server(lost("a"));
  client.asked({"a", "b"}, 1);
  client.receive({bad("a")}, 1);
  client.receive({good("b")});  // Server 0 is back, so server 1 is left.
  client.watch(1, cds("c"));
  client.server(lost("a"));
  CHECK(client.asked({"a", "b", "c"}, 1) == Lines{"timer CDS/a", "timer CDS/c"});
}

// --- federation -------------------------------------------------------------

TEST_CASE("federation: a shared server that an authority left takes nothing of it away",
          "[xds][client][A47][A71][A88]") {
  Client client(two_authorities());
  const std::string east = in("east", "a");
  client.watch(1, cds("a"));
  client.watch(1, cds(east));
  client.watch(1, cds(in("east", "b")));
  client.server(lost("east"), 1);
  client.receive({good("a"), good(east)}, 0);
  client.receive({good(in("east", "b"))}, 1);
  CHECK(client.receive({good("a")}, 0) == Lines{"count 1 0"});
  CHECK(client.receive({good("a"), bad(east)}, 0) == Lines{"count 1 1"});
}

TEST_CASE("federation: a response restarts no timer of an authority that uses its server already",
          "[xds][client][A47][A57][A71]") {
  ClientOptions options = two_authorities();
  options.authorities["west"] = {1};
  Client client(options);
  const std::string b = in("west", "b");
  const std::string c = in("west", "c");
  client.watch(1, cds(in("east", "a")));
  client.watch(1, cds(b));
  client.watch(1, cds(c));
  client.server(lost("east"), 1);  // The authority east falls back to server 0.
  CHECK(client.asked({b, c}, 1) == Lines{"timer CDS/" + b, "timer CDS/" + c});
  CHECK(client.receive({good(b)}, 1) ==
        Lines{"cancel CDS/" + b, "1: " + b + " value", "count 1 0"});
}

}  // namespace signalbox::xds
