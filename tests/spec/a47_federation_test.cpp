// SPDX-License-Identifier: Apache-2.0
//
// gRFC A47, "xDS Federation", in the document's order: the listener of a target, the servers of an
// authority, and the names of resources.
//
// Not here:
//   - xDS-enabled servers and server_listener_resource_name_template: signalbox has no servers.
//   - "LRS Server Representation": runtime_load_reports_test (tests/e2e).
//   - "CDS Resource Validation": a37_validation_test has the service name of a cluster with an
//     xdstp name (A37-36).
//   - The document keeps one value where a name has a context parameter twice, and says that its
//     behaviour is undefined. Here both values stay in the name.

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/unit/xds/client_support.hpp"
#include "xds/bootstrap.hpp"
#include "xds/client/client_options.hpp"
#include "xds/client/resource_name.hpp"

namespace signalbox::xds {
namespace {

using tests::cds;
using Servers = std::vector<ServerId>;

const std::string kListener = "/envoy.config.listener.v3.Listener/";

std::string server(const std::string& uri, const std::string& features = "") {
  return R"({"server_uri": ")" + uri + R"(", "channel_creds": [{"type": "insecure"}], )" +
         R"("server_features": [)" + features + "]}";
}

// A bootstrap with one top-level server and these fields.
absl::StatusOr<Bootstrap> read(const std::string& fields) {
  return parse_bootstrap(R"({"xds_servers": [)" + server("xds-server.authority.com") + "]" +
                             (fields.empty() ? "" : ", " + fields) + "}",
                         "bootstrap");
}

Bootstrap bootstrap_with(const std::string& fields) {
  const auto bootstrap = read(fields);
  INFO(bootstrap.status().message());
  REQUIRE(bootstrap.ok());
  return *bootstrap;
}

// The listener that a channel of this target watches.
std::string listener_of(const Bootstrap& bootstrap, const std::string& target) {
  const auto name = listener_resource_name(bootstrap, target);
  INFO(name.status().message());
  REQUIRE(name.ok());
  return *name;
}

// The first server that gets a request for this listener.
std::string server_of(const Bootstrap& bootstrap, const std::string& listener) {
  Client client(client_options(bootstrap));
  client.watch(1, tests::lds(listener));
  const ResourceDump dump = client.dump();
  REQUIRE(dump.resources.size() == 1);
  return dump.resources[0].server;
}

// The bootstrap's own server is 0. The authority east has the servers 1 and 0, in this order.
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

// --- "gRPC Client Target URI Syntax" -----------------------------------------------------------

SCENARIO("A47: the authority of a target chooses the template of its listener",
         "[spec][xds][A47]") {
  GIVEN("a bootstrap with a default template and with two authorities") {
    const Bootstrap bootstrap = bootstrap_with(
        R"("client_default_listener_resource_name_template": "xdstp://east/L/%s?from=default",
           "authorities": {
             "east": {"client_listener_resource_name_template": "xdstp://east/L/%s?from=east"},
             "west": {"client_listener_resource_name_template": "xdstp://west/L/%s?from=west"}})");
    WHEN("a target has an authority") {
      THEN("the template of this authority names its listener") {
        CHECK(listener_of(bootstrap, "xds://east/orders") == "xdstp://east/L/orders?from=east");
        CHECK(listener_of(bootstrap, "xds://west/orders") == "xdstp://west/L/orders?from=west");
      }
    }
    WHEN("a target has no authority") {
      THEN("the default template names its listener, not the template of east") {
        CHECK(listener_of(bootstrap, "xds:orders") == "xdstp://east/L/orders?from=default");
        CHECK(listener_of(bootstrap, "xds:///orders") == "xdstp://east/L/orders?from=default");
      }
    }
  }
}

SCENARIO("A47: the path of the target is the authority of its calls", "[spec][xds][A47]") {
  GIVEN("targets with and without an authority of their own") {
    THEN("the authority of calls is the path, without its leading slash") {
      CHECK(data_plane_authority("xds:orders.example") == "orders.example");
      CHECK(data_plane_authority("xds:///orders.example") == "orders.example");
      CHECK(data_plane_authority("xds://east/orders.example") == "orders.example");
    }
    THEN("other slashes are percent-encoded") {
      CHECK(data_plane_authority("xds://east/team/orders") == "team%2Forders");
    }
  }
}

// --- "Bootstrap Config Changes" ----------------------------------------------------------------

SCENARIO("A47: the bootstrap has the servers and the template of each authority",
         "[spec][xds][A47]") {
  GIVEN("an authority that sets both") {
    const Bootstrap bootstrap =
        bootstrap_with(R"("authorities": {"east": {"xds_servers": [)" + server("east-server") +
                       R"(], "client_listener_resource_name_template": "xdstp://east/L/%s"}})");
    THEN("both are read") {
      const AuthorityConfig& east = bootstrap.authorities.at("east");
      REQUIRE(east.servers.size() == 1);
      CHECK(east.servers[0].server_uri == "east-server");
      CHECK(east.client_listener_resource_name_template == "xdstp://east/L/%s");
    }
  }
  GIVEN("an authority that sets neither") {
    const Bootstrap bootstrap = bootstrap_with(R"("authorities": {"east": {}})");
    THEN("its servers are the top-level ones, and its template is the document's default") {
      const AuthorityConfig& east = bootstrap.authorities.at("east");
      CHECK(east.servers == bootstrap.servers);
      CHECK(east.client_listener_resource_name_template == "xdstp://east" + kListener + "%s");
    }
  }
  GIVEN("an authority with a template that names another authority") {
    const auto bootstrap = read(
        R"("authorities": {"east": {"client_listener_resource_name_template": "xdstp://west/%s"}})");
    THEN("the bootstrap is an error that names the field") {
      CHECK(bootstrap.status() ==
            absl::InvalidArgumentError(
                "bootstrap: authorities.\"east\".client_listener_resource_name_template: expected "
                "it to start with \"xdstp://east/\", found \"xdstp://west/%s\""));
    }
  }
}

SCENARIO("A47: an authority without an entry in the bootstrap is an error", "[spec][xds][A47]") {
  GIVEN("a bootstrap with a default template that names an authority which is not there") {
    const Bootstrap bootstrap =
        bootstrap_with(R"("client_default_listener_resource_name_template": "xdstp://west)" +
                       kListener + R"(%s", "authorities": {"east": {}})");
    WHEN("a target names that authority") {
      const auto name = listener_resource_name(bootstrap, "xds://west/orders");
      THEN("the target is invalid") {
        CHECK(name.status().code() == absl::StatusCode::kInvalidArgument);
        CHECK(
            absl::StrContains(name.status().message(), "the bootstrap has no authority \"west\""));
      }
    }
    WHEN("the default template leads a target to that authority") {
      const std::string name = listener_of(bootstrap, "xds:orders");
      Client client(client_options(bootstrap));
      THEN("the watch of the listener fails, and no server is asked") {
        CHECK(client.watch(1, tests::lds(name)) ==
              Lines{"1: " + name + " FAILED_PRECONDITION: LDS resource \"" + name +
                    "\": the bootstrap has no authority \"west\""});
      }
    }
  }
}

// --- "Example: Bootstrap Config Contains No New Fields" ----------------------------------------

SCENARIO("A47: example, a bootstrap without the new fields", "[spec][xds][A47]") {
  GIVEN("a bootstrap with top-level servers alone") {
    const Bootstrap bootstrap = bootstrap_with("");
    THEN("the listener is the target's path, and the top-level server has it") {
      const std::string name = listener_of(bootstrap, "xds:server.example.com");
      CHECK(name == "server.example.com");
      CHECK(server_of(bootstrap, name) == "xds-server.authority.com");
    }
    THEN("a target with an authority is invalid") {
      CHECK(listener_resource_name(bootstrap, "xds://xds.authority.com/server.example.com")
                .status()
                .code() == absl::StatusCode::kInvalidArgument);
    }
  }
}

// --- "Example: New-Style Names on gRPC Client" -------------------------------------------------

SCENARIO("A47: example, names of the new style", "[spec][xds][A47]") {
  GIVEN("a default template and an authority without settings") {
    const std::string name = "xdstp://xds.authority.com" + kListener + "server.example.com";
    const Bootstrap bootstrap = bootstrap_with(
        R"("client_default_listener_resource_name_template": "xdstp://xds.authority.com)" +
        kListener + R"(%s", "authorities": {"xds.authority.com": {}})");
    THEN("both forms of the target have the same listener, from the top-level server") {
      CHECK(listener_of(bootstrap, "xds:server.example.com") == name);
      CHECK(listener_of(bootstrap, "xds://xds.authority.com/server.example.com") == name);
      CHECK(server_of(bootstrap, name) == "xds-server.authority.com");
    }
  }
}

// --- "Example: Multiple Authorities" -----------------------------------------------------------

SCENARIO("A47: example, several authorities", "[spec][xds][A47]") {
  GIVEN("an authority with a template, and one with servers") {
    const std::string client_template =
        "xdstp://xds.authority.com" + kListener + "grpc/client/%s?project_id=1234";
    const Bootstrap bootstrap =
        bootstrap_with(R"("client_default_listener_resource_name_template": ")" + client_template +
                       R"(", "authorities": {
             "xds.authority.com": {"client_listener_resource_name_template": ")" +
                       client_template + R"("},
             "xds.other.com": {"xds_servers": [)" +
                       server("xds-server.other.com") + "]}}");
    const std::string own =
        "xdstp://xds.authority.com" + kListener + "grpc/client/server.example.com?project_id=1234";
    const std::string other = "xdstp://xds.other.com" + kListener + "server.other.com";
    THEN("the listeners are the document's") {
      CHECK(listener_of(bootstrap, "xds:server.example.com") == own);
      CHECK(listener_of(bootstrap, "xds://xds.authority.com/server.example.com") == own);
      CHECK(listener_of(bootstrap, "xds://xds.other.com/server.other.com") == other);
    }
    THEN("each listener comes from the servers of its authority") {
      CHECK(server_of(bootstrap, own) == "xds-server.authority.com");
      CHECK(server_of(bootstrap, other) == "xds-server.other.com");
    }
  }
}

// --- "xds Resolver Changes" --------------------------------------------------------------------

SCENARIO("A47: the target's path is percent-encoded in names of the new style alone",
         "[spec][xds][A47]") {
  GIVEN("a target with characters in its path that a URI path may not have") {
    const std::string target = "a:1@b,c/d [e]";
    WHEN("the template begins with xdstp:") {
      const Bootstrap bootstrap = bootstrap_with(
          R"("client_default_listener_resource_name_template": "xdstp://x/%s",
             "authorities": {"x": {"client_listener_resource_name_template": "xdstp://x/L/%s"}})");
      THEN("these characters are encoded, and what a path may have stays, slashes too") {
        CHECK(listener_of(bootstrap, "xds:///" + target) == "xdstp://x/a:1@b,c/d%20%5Be%5D");
        CHECK(listener_of(bootstrap, "xds://x/" + target) == "xdstp://x/L/a:1@b,c/d%20%5Be%5D");
      }
    }
    WHEN("the template does not begin with xdstp:") {
      const Bootstrap bootstrap =
          bootstrap_with(R"("client_default_listener_resource_name_template": "pre/%s")");
      THEN("nothing is encoded") {
        CHECK(listener_of(bootstrap, "xds:///" + target) == "pre/" + target);
      }
    }
  }
  GIVEN("an authority with a name that has to be encoded in a URI") {
    const Bootstrap bootstrap = bootstrap_with(R"("authorities": {"a b": {}})");
    THEN("the default template has it encoded, and the name leads back to the authority") {
      const std::string name = listener_of(bootstrap, "xds://a%20b/orders");
      CHECK(name == "xdstp://a%20b" + kListener + "orders");
      CHECK(parse_resource_name(tests::lds(name))->authority == "a b");
    }
  }
}

// --- "Server Channel Map" ----------------------------------------------------------------------

SCENARIO("A47: equal servers of several authorities are one server", "[spec][xds][client][A47]") {
  GIVEN("authorities that name the same server, and one that names it with other features") {
    const Bootstrap bootstrap = bootstrap_with(
        R"("authorities": {"east": {"xds_servers": [)" + server("shared") +
        R"(]}, "north": {"xds_servers": [)" + server("shared") +
        R"(]}, "west": {"xds_servers": [)" + server("shared", R"("fail_on_data_errors")") + "]}}");
    const ClientOptions options = client_options(bootstrap);
    THEN("equal definitions are one server, and other features make another server") {
      CHECK(options.default_servers == Servers{0});
      CHECK(options.authorities ==
            std::map<std::string, Servers>{{"east", {1}}, {"north", {1}}, {"west", {2}}});
      CHECK(options.servers.size() == 3);
    }
    WHEN("clusters of both authorities are watched") {
      Client client(options);
      client.watch(1, cds(in("east", "a")));
      THEN("one subscription has both names") {
        CHECK(client.watch(1, cds(in("north", "a"))) ==
              Lines{"subscribe CDS [" + in("east", "a") + " " + in("north", "a") + "] at 1"});
      }
    }
  }
}

SCENARIO("A47: a server is used while a resource of its authority is watched",
         "[spec][xds][client][A47]") {
  GIVEN("a client with two authorities") {
    Client client(two_authorities());
    const auto connected = [&] {
      const ResourceDump dump = client.dump();
      return std::vector<bool>{dump.servers.at(0).connected, dump.servers.at(1).connected};
    };
    WHEN("only a name without an authority is watched") {
      client.watch(1, cds("a"));
      THEN("the server of east is not connected") {
        CHECK(connected() == std::vector<bool>{true, false});
      }
      AND_WHEN("a name of east is watched, too") {
        client.watch(1, cds(in("east", "a")));
        THEN("both servers are connected") {
          CHECK(connected() == std::vector<bool>{true, true});
        }
      }
    }
  }
}

SCENARIO("A47: authorities that share a server do not disturb each other",
         "[spec][xds][client][A47][A71]") {
  GIVEN("an authority that fell back to the server of another authority") {
    Client client(two_authorities());
    const std::string east = in("east", "a");
    client.watch(1, cds("a"));
    client.watch(1, cds(east));
    REQUIRE(client.server(lost("east"), 1) == Lines{"subscribe CDS [a " + east + "]"});
    REQUIRE(client.receive({good(east), good("a")}) ==
            Lines{"1: " + east + " value", "1: a value", "count 2 0"});
    WHEN("its own server is back and sends a resource") {
      client.server(absl::OkStatus(), 1);
      const Lines lines = client.receive({good(east)}, 1);
      THEN("the shared server is asked for less, and is not left") {
        CHECK(lines == Lines{"subscribe CDS [a]", "count 1 0"});
      }
      AND_WHEN("the shared server is lost") {
        THEN("only the watchers of the other authority hear of it") {
          CHECK(client.server(lost("own")) ==
                Lines{"1: a ambient UNAVAILABLE: xDS server own: refused"});
        }
      }
    }
  }
}

// --- "Resource Cache" --------------------------------------------------------------------------

SCENARIO("A47: each authority has resources of its own", "[spec][xds][client][A47]") {
  GIVEN("watches of a cluster with and without an authority") {
    Client client(two_authorities());
    const std::string east = in("east", "a");
    client.watch(1, cds("a"));
    client.watch(1, cds(east));
    WHEN("a server sends a resource of an authority that is not its own") {
      const Lines from_own = client.receive({good(east)}, 0);
      const Lines from_east = client.receive({good("a")}, 1);
      THEN("the resource is not used") {
        CHECK(from_own == Lines{"count 1 0"});
        CHECK(from_east == Lines{"count 1 0"});
      }
    }
    WHEN("each server sends the resource of its own authority") {
      THEN("both are used") {
        CHECK(client.receive({good("a")}, 0) == Lines{"1: a value", "count 1 0"});
        CHECK(client.receive({good(east)}, 1) == Lines{"1: " + east + " value", "count 1 0"});
      }
    }
  }
}

SCENARIO("A47: names that differ in the order of their context parameters are one name",
         "[spec][xds][client][A47]") {
  GIVEN("a watch of a name with context parameters that are not sorted") {
    Client client(two_authorities());
    const std::string canonical = in("east", "a") + "?x=1&y=2";
    const std::string other = in("east", "a") + "?y=2&x=1";
    const Lines asked = client.watch(1, cds(other));
    THEN("the subscription has the parameters in lexicographic order") {
      CHECK(asked == Lines{"subscribe CDS [" + canonical + "] at 1"});
    }
    WHEN("the sorted name is watched, too") {
      const Lines again = client.watch(1, cds(canonical));
      THEN("there is one subscription, and the resource is for both names") {
        CHECK(again.empty());
        CHECK(client.receive({good(other)}, 1) ==
              Lines{"1: " + canonical + " value", "1: " + other + " value", "count 1 0"});
      }
      THEN("the subscription ends with the last of both watches") {
        CHECK(client.unwatch(1, cds(other)).empty());
        CHECK(client.unwatch(1, cds(canonical)) == Lines{"subscribe CDS [] at 1"});
      }
    }
  }
}

// --- "Watcher Changes" -------------------------------------------------------------------------

SCENARIO("A47: a name without xdstp: belongs to no authority", "[spec][xds][A47]") {
  GIVEN("a name of the old style with a question mark") {
    const auto name = parse_resource_name(cds("orders?b=2&a=1"));
    THEN("it is used as it is written") {
      REQUIRE(name.ok());
      CHECK(name->authority == std::nullopt);
      CHECK(name->canonical == "orders?b=2&a=1");
    }
  }
}

SCENARIO("A47: an xdstp: name without an authority has the empty authority",
         "[spec][xds][client][A47]") {
  GIVEN("a bootstrap with an entry for the empty authority") {
    ClientOptions options = two_authorities();
    options.authorities[""] = {1};
    Client client(options);
    THEN("the servers of this entry are asked") {
      const std::string name = "xdstp:///envoy.config.cluster.v3.Cluster/a";
      CHECK(client.watch(1, cds(name)) == Lines{"subscribe CDS [" + name + "] at 1"});
    }
  }
}

SCENARIO("A47: a name is asked of the servers of its authority", "[spec][xds][client][A47]") {
  GIVEN("a client with two authorities") {
    Client client(two_authorities());
    THEN("a name without an authority is asked of the bootstrap's servers") {
      CHECK(client.watch(1, cds("a")) == Lines{"subscribe CDS [a]"});
    }
    THEN("a name of east is asked of the first server of east") {
      CHECK(client.watch(1, cds(in("east", "a"))) ==
            Lines{"subscribe CDS [" + in("east", "a") + "] at 1"});
    }
  }
}

SCENARIO("A47: a name that no authority can have fails alone", "[spec][xds][client][A47]") {
  GIVEN("a watch that is well") {
    Client client(two_authorities());
    client.watch(1, cds("a"));
    const std::string west = in("west", "a");
    WHEN("a name of an unknown authority is watched") {
      const Lines lines = client.watch(1, cds(west));
      THEN("its watcher is told why, and no server is asked") {
        CHECK(lines == Lines{"1: " + west + " FAILED_PRECONDITION: CDS resource \"" + west +
                             "\": the bootstrap has no authority \"west\""});
        CHECK(client.unwatch(1, cds(west)).empty());
      }
      THEN("the other watch goes on") {
        CHECK(client.receive({good("a")}) == Lines{"1: a value", "count 1 0"});
      }
    }
    WHEN("a name that lacks its resource type is watched") {
      THEN("its watcher is told the form of such names") {
        CHECK(client.watch(2, cds("xdstp://east/a")) ==
              Lines{"2: xdstp://east/a INVALID_ARGUMENT: CDS resource \"xdstp://east/a\": the name "
                    "must be xdstp://<authority>/envoy.config.cluster.v3.Cluster/<id>, found "
                    "xdstp://east/a"});
      }
    }
  }
}

}  // namespace signalbox::xds
