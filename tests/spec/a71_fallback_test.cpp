// SPDX-License-Identifier: Apache-2.0
//
// gRFC A71, "xDS Fallback", in the document's order: when the client falls back to the next control
// plane, and when it returns to a better one.
//
// Not here:
//   - An XdsClient for each target, and client_scope in CSDS: signalbox has one client for each
//     bootstrap, and falls back for each authority (decision 24).
//   - GRPC_EXPERIMENTAL_XDS_FALLBACK is not read: all servers of a bootstrap are used.
//
// Beyond the document (decision 24):
//   - A server cannot take away a resource that it never sent.
//   - A better server that is reachable again is used when the active server fails, although it has
//     sent no resource yet.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include <catch2/catch.hpp>

#include "tests/unit/xds/client_support.hpp"
#include "xds/bootstrap.hpp"
#include "xds/client/client_options.hpp"

namespace signalbox::xds {

using tests::cds;
using tests::eds;

// --- "Change xDS Bootstrap to handle multiple xDS configuration servers" -----------------------

SCENARIO("A71: the servers of a bootstrap are used in their order", "[spec][xds][A71]") {
  GIVEN("a bootstrap with several servers, on top and in an authority") {
    const auto bootstrap = parse_bootstrap(
        R"({"xds_servers": [{"server_uri": "a", "channel_creds": [{"type": "insecure"}]},
                            {"server_uri": "b", "channel_creds": [{"type": "insecure"}]}],
            "authorities": {"east": {"xds_servers": [
                            {"server_uri": "c", "channel_creds": [{"type": "insecure"}]},
                            {"server_uri": "b", "channel_creds": [{"type": "insecure"}]}]}}})",
        "bootstrap");
    REQUIRE(bootstrap.ok());
    const ClientOptions options = client_options(*bootstrap);
    const auto names_of = [&](const std::vector<ServerId>& servers) {
      std::vector<std::string> names;
      names.reserve(servers.size());
      for (const ServerId server : servers)
        names.push_back(options.servers.at(server).name);
      return names;
    };
    THEN("all servers are kept, the first is the best") {
      CHECK(names_of(options.default_servers) == std::vector<std::string>{"a", "b"});
      CHECK(names_of(options.authorities.at("east")) == std::vector<std::string>{"c", "b"});
    }
  }
}

// --- "Change XdsClient to support fallback within each xDS authority" --------------------------

SCENARIO("A71: the first server alone is asked while it is well", "[spec][xds][client][A71]") {
  GIVEN("three servers") {
    Client client(three_servers());
    THEN("a watch is a subscription at the first") {
      CHECK(client.watch(1, cds("a")) == Lines{"subscribe CDS [a]"});
      CHECK(client.receive({good("a")}) == Lines{"1: a value", "count 1 0"});
    }
  }
}

SCENARIO("A71: fallback begins when a server fails and a watched resource is not cached",
         "[spec][xds][client][A71]") {
  GIVEN("a cluster that has come, and one that is waited for") {
    Client client(three_servers());
    client.watch(1, cds("a"));
    client.receive({good("a")});
    client.watch(2, cds("b"));
    WHEN("the server fails") {
      const Lines lines = client.server(lost("a"));
      THEN("the next server is asked for all watched resources, and no watcher is told") {
        CHECK(lines == Lines{"subscribe CDS [a b] at 1"});
      }
      AND_WHEN("the next server sends the resource that was waited for") {
        const Lines received = client.receive({good("b")}, 1);
        THEN("it is used") {
          CHECK(received == Lines{"2: b value", "count 1 0"});
        }
        THEN("its answer may replace what the first server sent") {
          CHECK(client.receive({good("a", "e2"), good("b")}, 1) ==
                Lines{"1: a value", "count 2 0"});
        }
        THEN("a resource that it never sent stays when it does not have it") {
          CHECK(client.receive({good("b")}, 1) == Lines{"count 1 0"});
        }
        THEN("a resource that it sent is deleted when it does not have it any more") {
          CHECK(client.receive({}, 1) ==
                Lines{"2: b ambient NOT_FOUND: CDS resource \"b\" was deleted", "count 0 0"});
        }
        THEN("a new watch is a subscription at both servers") {
          CHECK(client.watch(1, eds("e")) == Lines{"subscribe EDS [e]", "subscribe EDS [e] at 1"});
        }
      }
    }
  }
}

SCENARIO("A71: there is no fallback while all watched resources are cached",
         "[spec][xds][client][A71]") {
  GIVEN("a cluster that has come, and one that is known not to exist") {
    Client client(three_servers());
    client.watch(1, cds("a"));
    client.watch(1, cds("gone"));
    client.asked({"a", "gone"});
    client.step(TimerFired{client.timer.timer});
    client.receive({good("a")});
    WHEN("the server fails") {
      const Lines lines = client.server(lost("a"));
      THEN("no other server is asked, and the error is beside the cached resource") {
        CHECK(lines == Lines{"1: a ambient UNAVAILABLE: xDS server a: refused"});
      }
      AND_WHEN("another resource is watched, for example by new routes") {
        const Lines watched = client.watch(1, eds("e"));
        THEN("fallback begins, and the error of the first server is over") {
          CHECK(watched == Lines{"subscribe EDS [e]",
                                 "subscribe CDS [a gone] at 1",
                                 "subscribe EDS [e] at 1",
                                 "1: a ambient OK"});
        }
      }
    }
  }
}

SCENARIO("A71: watchers hear of lost servers when all servers have failed",
         "[spec][xds][client][A71]") {
  GIVEN("a watch of a resource that has not come") {
    Client client(three_servers());
    client.watch(1, cds("a"));
    WHEN("one server after another fails") {
      const Lines first = client.server(lost("a"));
      const Lines second = client.server(lost("b"), 1);
      THEN("the next one is asked each time, and no watcher is told") {
        CHECK(first == Lines{"subscribe CDS [a] at 1"});
        CHECK(second == Lines{"subscribe CDS [a] at 2"});
      }
      const std::string all =
          "UNAVAILABLE: xDS server a: refused; xDS server b: refused; xDS server c: refused";
      const Lines third = client.server(lost("c"), 2);
      THEN("the last failure is told, with the reason of each server") {
        CHECK(third == Lines{"1: a " + all});
      }
      THEN("a later watcher is told at once") {
        CHECK(client.watch(2, cds("b")).back() == "2: b " + all);
      }
      AND_WHEN("a server is reachable again and sends the resource") {
        THEN("it is used") {
          CHECK(client.server(absl::OkStatus(), 2).empty());
          CHECK(client.receive({good("a")}, 2) == Lines{"1: a value", "count 1 0"});
        }
      }
    }
  }
}

SCENARIO("A71: connecting to a lower server leaves the higher ones connected",
         "[spec][xds][client][A71]") {
  GIVEN("a client that fell back twice") {
    Client client(three_servers());
    client.watch(1, cds("a"));
    const Lines first = client.server(lost("a"));
    const Lines second = client.server(lost("b"), 1);
    THEN("no server is left") {
      CHECK(first == Lines{"subscribe CDS [a] at 1"});
      CHECK(second == Lines{"subscribe CDS [a] at 2"});
    }
    WHEN("the first server is reachable again") {
      THEN("it is asked still, and the lower servers are kept until it sends a resource") {
        CHECK(client.receive({good("a")}, 2) == Lines{"1: a value", "count 1 0"});
        CHECK(client.server(absl::OkStatus()).empty());
        CHECK(client.watch(1, eds("e")) ==
              Lines{"subscribe EDS [e]", "subscribe EDS [e] at 1", "subscribe EDS [e] at 2"});
      }
    }
  }
}

SCENARIO("A71: the first resource of a better server ends the fallback",
         "[spec][xds][client][A71]") {
  GIVEN("a client that uses its third server") {
    Client client(three_servers());
    client.watch(1, cds("a"));
    client.server(lost("a"));
    client.server(lost("b"), 1);
    client.receive({good("a")}, 2);
    client.server(absl::OkStatus());
    WHEN("the first server sends a response without a usable resource") {
      const Lines empty = client.receive({});
      const Lines refused = client.receive({bad("a")});
      THEN("the fallback goes on") {
        CHECK(empty == Lines{"count 0 0"});
        CHECK(refused == Lines{"1: a ambient UNAVAILABLE: CDS resource \"a\": type: not supported",
                               "count 0 1"});
      }
    }
    WHEN("the first server sends a resource") {
      const Lines lines = client.receive({good("a", "e2")});
      THEN("the lower servers are left, and its resource is used") {
        CHECK(lines == Lines{"leave 1", "leave 2", "1: a value", "count 1 0"});
      }
      THEN("what the lower servers still say counts for nothing") {
        CHECK(client.receive({good("a", "e3")}, 2) == Lines{"count 1 0"});
        CHECK(client.server(lost("c"), 2).empty());
      }
      AND_WHEN("the first server fails again while a resource is missing") {
        client.watch(1, cds("b"));
        THEN("the next fallback begins with the second server") {
          CHECK(client.server(lost("a")) == Lines{"subscribe CDS [a b] at 1"});
        }
      }
    }
    WHEN("the second server sends a resource") {
      const Lines lines = client.receive({good("a", "e2")}, 1);
      THEN("the third server alone is left") {
        CHECK(lines == Lines{"leave 2", "1: a value", "count 1 0"});
      }
    }
  }
}

SCENARIO("A71: each authority falls back by itself", "[spec][xds][client][A47][A71]") {
  GIVEN("two authorities with a first server each, and one second server") {
    ClientOptions options = three_servers();
    options.default_servers = {0, 2};
    options.authorities = {{"east", {1, 2}}};
    Client client(options);
    const std::string east = "xdstp://east/envoy.config.cluster.v3.Cluster/a";
    client.watch(1, cds("a"));
    client.watch(1, cds(east));
    WHEN("the server of one authority fails") {
      const Lines lines = client.server(lost("b"), 1);
      THEN("the second server is asked for the resources of this authority alone") {
        CHECK(lines == Lines{"subscribe CDS [" + east + "] at 2"});
      }
      THEN("the other authority uses its first server") {
        CHECK(client.receive({good("a")}) == Lines{"1: a value", "count 1 0"});
        CHECK(client.receive({good("a", "e2")}, 2) == Lines{"count 1 0"});
      }
    }
  }
}

// --- beyond the document -----------------------------------------------------------------------

SCENARIO("A71: a better server that is reachable is used when the active server fails",
         "[spec][xds][client][A71]") {
  GIVEN("a client that lost all of its servers") {
    Client client(three_servers());
    client.watch(1, cds("a"));
    client.server(lost("a"));
    client.server(lost("b"), 1);
    client.server(lost("c"), 2);
    WHEN("the second server is reachable again, and has sent nothing") {
      const Lines lines = client.server(absl::OkStatus(), 1);
      THEN("the third server is left for it") {
        CHECK(lines == Lines{"leave 2"});
      }
      AND_WHEN("the first server is reachable again, too, and sends the resource") {
        const Lines back = client.server(absl::OkStatus(), 0);
        const Lines received = client.receive({good("a")}, 0);
        THEN("it ends the fallback") {
          CHECK(back.empty());
          CHECK(received == Lines{"leave 1", "1: a value", "count 1 0"});
        }
      }
    }
  }
}

}  // namespace signalbox::xds
