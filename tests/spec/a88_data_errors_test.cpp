// SPDX-License-Identifier: Apache-2.0
//
// gRFC A88, "xDS Data Error Handling", in the document's order: which errors drop a cached
// resource, which errors are ambient, and the status of the calls.
//
// In the lines of the client, "1: a value" and "1: a NOT_FOUND: …" are OnResourceChanged() of
// watcher 1, and "1: a ambient …" is OnAmbientError().
//
// Not here:
//   - Ambient errors by cluster, as notes beside the configuration: a74_dependency_test.
//   - GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING is not read: the new rules always apply.
//
// The document leaves the status code of a NACK open. Here it is UNAVAILABLE.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "messages/resource_dump.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/decode_response.hpp"
#include "tests/support/dependency_world.hpp"
#include "tests/support/router_fixture.hpp"
#include "tests/unit/xds/client_support.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/client/client_options.hpp"
#include "xds/parse/response_parser.hpp"

namespace signalbox::xds {
namespace {

using namespace std::chrono_literals;
using tests::cds;
using tests::eds;

const absl::Status kServerLost = absl::UnavailableError("xDS server cp: refused");
const std::string kRefused = "UNAVAILABLE: CDS resource \"a\": type: not supported";
const std::string kDeleted = "NOT_FOUND: CDS resource \"a\" was deleted";

ClientOptions with_features(bool fail_on_data_errors,
                            bool resource_timer_is_transient_error = false) {
  ClientOptions options;
  options.servers[0].name = "cp";
  options.servers[0].fail_on_data_errors = fail_on_data_errors;
  options.servers[0].resource_timer_is_transient_error = resource_timer_is_transient_error;
  return options;
}

// A client that watches the cluster "a". `is_cached`: the client has received the cluster.
class Watching : public Client {
 public:
  explicit Watching(const ClientOptions& options, bool is_cached) : Client(options) {
    watch(1, cds("a"));
    if (is_cached) receive({good("a")});
  }

  // The server's own error for the cluster (xRFC TP3).
  Lines told(absl::Status status) {
    return report(
        ResourcesReceived{ResourceType::kCluster, "v", {}, {}, 0, {{"a", std::move(status)}}});
  }

  // The resource timer of the cluster fires.
  Lines time_out() {
    asked({"a"});
    return step(TimerFired{timer.timer});
  }

  ResourceState state() const { return dump().resources.at(0); }

  bool has_resource() const { return state().updated.has_value(); }
};

}  // namespace

// --- "Changes to XdsClient Watcher APIs" -------------------------------------------------------

SCENARIO("A88: an ambient error is over when a resource comes or the cause is over",
         "[spec][xds][client][A88]") {
  GIVEN("a cached resource with an ambient error of the resource") {
    Watching client(with_features(false), true);
    REQUIRE(client.receive({bad("a")}) == Lines{"1: a ambient " + kRefused, "count 0 1"});
    WHEN("a new version comes") {
      THEN("the watcher has the new version, and the error is over") {
        CHECK(client.receive({good("a", "e2")}) ==
              Lines{"1: a value", "1: a ambient OK", "count 1 0"});
      }
    }
    WHEN("the cached version comes again") {
      THEN("the error is over") {
        CHECK(client.receive({good("a")}) == Lines{"1: a ambient OK", "count 1 0"});
      }
    }
    WHEN("the server is lost as well") {
      const Lines both = client.server(kServerLost);
      THEN("the ambient error has both reasons") {
        CHECK(both == Lines{"1: a ambient " + kRefused + "; xDS server cp: refused"});
      }
      AND_WHEN("the server is back") {
        THEN("the other reason stays") {
          CHECK(client.server(absl::OkStatus()) == Lines{"1: a ambient " + kRefused});
        }
      }
    }
  }
}

// --- "Handling Data Errors" --------------------------------------------------------------------

SCENARIO("A88: a data error keeps the cached resource, unless fail_on_data_errors is set",
         "[spec][xds][client][A88]") {
  const std::string which = GENERATE(as<std::string>{}, "NACK", "deletion", "error");
  const auto happens = [&](Watching& client) {
    if (which == "NACK") return client.receive({bad("a")}).front();
    if (which == "deletion") return client.receive({}).front();
    return client.told(absl::PermissionDeniedError("no")).front();
  };
  const std::string error = which == "NACK"       ? kRefused
                            : which == "deletion" ? kDeleted
                                                  : "PERMISSION_DENIED: CDS resource \"a\": no";
  GIVEN("a server without fail_on_data_errors, and a " + which + " of a cached resource") {
    Watching client(with_features(false), true);
    const std::string line = happens(client);
    THEN("the error is ambient, and the resource stays in the cache") {
      CHECK(line == "1: a ambient " + error);
      CHECK(client.has_resource());
    }
    THEN("the same error again is told once") {
      CHECK(happens(client).starts_with("count"));
    }
  }
  GIVEN("a server with fail_on_data_errors, and a " + which + " of a cached resource") {
    Watching client(with_features(true), true);
    const std::string line = happens(client);
    THEN("the resource is lost, and is no longer in the cache") {
      CHECK(line == "1: a " + error);
      CHECK_FALSE(client.has_resource());
      CHECK(client.state().version.empty());
    }
    WHEN("it comes again") {
      THEN("it is used again, although it is the same") {
        CHECK(client.receive({good("a")}) == Lines{"1: a value", "count 1 0"});
      }
    }
  }
}

SCENARIO("A88: only listeners and clusters are deleted by their absence",
         "[spec][xds][client][A88]") {
  GIVEN("endpoints from a server with fail_on_data_errors") {
    Client client(with_features(true));
    client.watch(1, eds("e"));
    const Resource endpoints{tests::endpoints({{tests::locality("l", {"10.0.0.1:1"})}})};
    client.report(ResourcesReceived{ResourceType::kEndpoints, "v", {{"e", endpoints}}, {}});
    WHEN("a response lacks them") {
      const Lines lines = client.report(ResourcesReceived{ResourceType::kEndpoints, "v", {}, {}});
      THEN("they are used as before") {
        CHECK(lines == Lines{"count 0 0"});
        CHECK(client.gauges.at("EDS acked") == 1);
      }
    }
  }
}

// --- "Handling Transient Errors" ---------------------------------------------------------------

SCENARIO("A88: a transient error keeps the cached resource, whatever the server's features",
         "[spec][xds][client][A57][A88]") {
  const bool fails = GENERATE(false, true);
  GIVEN(absl::StrCat("a cached resource; fail_on_data_errors: ", fails)) {
    Watching client(with_features(fails), true);
    WHEN("the server is lost") {
      const Lines lines = client.server(kServerLost);
      THEN("the error is ambient until the server is back") {
        CHECK(lines == Lines{"1: a ambient UNAVAILABLE: xDS server cp: refused"});
        CHECK(client.has_resource());
        CHECK(client.server(kServerLost).empty());
        CHECK(client.server(absl::OkStatus()) == Lines{"1: a ambient OK"});
      }
    }
    WHEN("the server sends an error of another code than NOT_FOUND and PERMISSION_DENIED") {
      const Lines lines = client.told(absl::UnavailableError("busy"));
      THEN("the error is ambient") {
        CHECK(lines == Lines{"1: a ambient UNAVAILABLE: CDS resource \"a\": busy", "count 0 0"});
        CHECK(client.has_resource());
      }
    }
  }
  GIVEN(absl::StrCat("a resource that has not come; fail_on_data_errors: ", fails)) {
    Watching client(with_features(fails), false);
    WHEN("the server is lost") {
      THEN("the watcher has the error in place of the resource") {
        CHECK(client.server(kServerLost) == Lines{"1: a UNAVAILABLE: xDS server cp: refused"});
      }
    }
  }
}

// --- "New Watchers Started After Ambient Errors" -----------------------------------------------

SCENARIO("A88: a new watcher sees the resource and then the ambient error",
         "[spec][xds][client][A88]") {
  GIVEN("a cached resource with an ambient error") {
    Watching client(with_features(false), true);
    client.receive({bad("a")});
    WHEN("it is watched again") {
      THEN("the new watcher is told both, in this order") {
        CHECK(client.watch(2, cds("a")) == Lines{"2: a value", "2: a ambient " + kRefused});
      }
    }
  }
  GIVEN("a resource that never was valid") {
    Watching client(with_features(false), false);
    client.receive({bad("a")});
    WHEN("it is watched again") {
      THEN("the new watcher is told the error") {
        CHECK(client.watch(2, cds("a")) == Lines{"2: a " + kRefused});
      }
    }
  }
}

// --- "Support for Errors Provided by the xDS server as per xRFC TP3" ---------------------------

SCENARIO("A88: the errors of a response are read", "[spec][xds][parse][A88]") {
  GIVEN("a response with resource_errors") {
    const auto response =
        decode_response(serialise<envoy::service::discovery::v3::DiscoveryResponse>(
            "type_url: \"type.googleapis.com/envoy.config.cluster.v3.Cluster\" "
            "resource_errors { resource_name { name: \"a\" } "
            "                  error_detail { code: 5 message: \"gone\" } } "
            "resource_errors { resource_name { name: \"b\" } error_detail { code: 14 } }"));
    THEN("they are of their resources, and the response is not refused for them") {
      REQUIRE(response.ok());
      CHECK(response->nack_detail.empty());
      const auto& errors = response->received.resource_errors;
      REQUIRE(errors.size() == 2);
      CHECK(errors[0].name == "a");
      CHECK(errors[0].status == absl::NotFoundError("gone"));
      CHECK(errors[1].name == "b");
      CHECK(errors[1].status.code() == absl::StatusCode::kUnavailable);
    }
  }
}

SCENARIO("A88: an error from the server is the answer for its resource",
         "[spec][xds][client][A88]") {
  const bool fails = GENERATE(false, true);
  GIVEN(absl::StrCat("a resource that is waited for; fail_on_data_errors: ", fails)) {
    Watching client(with_features(fails), false);
    REQUIRE(client.asked({"a"}) == Lines{"timer CDS/a"});
    const std::string text = "NOT_FOUND: CDS resource \"a\": not here";
    WHEN("the server sends an error for it") {
      const Lines lines = client.told(absl::NotFoundError("not here"));
      THEN("its timer ends, and the watcher has the error") {
        CHECK(lines == Lines{"cancel CDS/a", "1: a " + text, "count 0 0"});
        CHECK(client.step(TimerFired{client.timer.timer}).empty());
      }
      THEN("the state of the resource is RECEIVED_ERROR, with this error") {
        CHECK(client.state().status == ResourceStatus::kReceivedError);
        REQUIRE(client.state().failure.has_value());
        CHECK(client.state().failure->details == "CDS resource \"a\": not here");
      }
      THEN("the same error is told once, and a new watcher is told it, too") {
        CHECK(client.told(absl::NotFoundError("not here")) == Lines{"count 0 0"});
        CHECK(client.watch(2, cds("a")) == Lines{"2: a " + text});
      }
      THEN("the resource may still come") {
        CHECK(client.receive({good("a")}) == Lines{"1: a value", "count 1 0"});
      }
    }
    WHEN("the error may pass") {
      THEN("its timer ends as well, and the watcher has the error") {
        CHECK(client.told(absl::InternalError("busy")) ==
              Lines{"cancel CDS/a", "1: a INTERNAL: CDS resource \"a\": busy", "count 0 0"});
      }
    }
    WHEN("the server sends an error for a resource that is not watched") {
      THEN("no watcher is told") {
        CHECK(client.report(ResourcesReceived{ResourceType::kCluster,
                                              "v",
                                              {},
                                              {},
                                              0,
                                              {{"b", absl::NotFoundError("not here")}}}) ==
              Lines{"count 0 0"});
      }
    }
  }
}

// --- "Changes to Resource Timer Behavior" ------------------------------------------------------

SCENARIO("A88: the resource timer is 15 s and NOT_FOUND, or 30 s and UNAVAILABLE",
         "[spec][xds][client][A57][A88]") {
  GIVEN("a server without resource_timer_is_transient_error") {
    Watching client(with_features(false), false);
    WHEN("the timer fires") {
      const Lines lines = client.time_out();
      THEN("15 s were over, and the resource does not exist") {
        CHECK(client.timer.delay == 15s);
        CHECK(lines == Lines{"1: a NOT_FOUND: CDS resource \"a\" did not come within 15 s"});
        CHECK(client.state().status == ResourceStatus::kDoesNotExist);
      }
    }
  }
  GIVEN("a server with resource_timer_is_transient_error") {
    Watching client(with_features(false, true), false);
    WHEN("the timer fires") {
      const Lines lines = client.time_out();
      THEN("30 s were over, and the resource may still come") {
        CHECK(client.timer.delay == 30s);
        CHECK(lines == Lines{"1: a UNAVAILABLE: CDS resource \"a\" did not come within 30 s"});
        CHECK(client.state().status == ResourceStatus::kTimeout);
      }
    }
    WHEN("the server sends an error before the timer fires") {
      client.asked({"a"});
      THEN("the error counts as from any other server") {
        CHECK(client.told(absl::NotFoundError("not here")) ==
              Lines{"cancel CDS/a", "1: a NOT_FOUND: CDS resource \"a\": not here", "count 0 0"});
      }
    }
  }
}

// --- "Deprecating ignore_resource_deletion Server Feature" -------------------------------------

SCENARIO("A88: server features are those of each server, and ignore_resource_deletion is none",
         "[spec][xds][client][A53][A88]") {
  GIVEN("servers with different features") {
    const auto server = [](const std::string& uri, const std::vector<std::string>& features) {
      return ServerConfig{uri, InsecureCredentials{}, features};
    };
    Bootstrap bootstrap;
    bootstrap.servers = {server("own", {"ignore_resource_deletion"})};
    bootstrap.authorities["east"].servers = {
        server("east", {"ignore_resource_deletion", "fail_on_data_errors"})};
    Client client(client_options(bootstrap));
    const std::string east = "xdstp://east/envoy.config.cluster.v3.Cluster/a";
    client.watch(1, cds("a"));
    client.watch(1, cds(east));
    client.receive({good("a")});
    client.receive({good(east)}, 1);
    WHEN("each of them deletes a cluster") {
      const Lines from_own = client.receive({});
      const Lines from_east = client.receive({}, 1);
      THEN("fail_on_data_errors decides, and ignore_resource_deletion changes nothing") {
        CHECK(from_own == Lines{"1: a ambient " + kDeleted, "count 0 0"});
        CHECK(from_east ==
              Lines{"1: " + east + " NOT_FOUND: CDS resource \"" + east + "\" was deleted",
                    "count 0 0"});
      }
    }
  }
}

// --- "Cache Entry States, CSDS, and XdsClient Metrics" -----------------------------------------

SCENARIO("A88: every way to have or not to have a resource is a state of the cache",
         "[spec][xds][client][A40][A78][A88]") {
  struct Row {
    const char* when;
    bool is_cached;
    bool fails;
    std::string state;
  };

  const auto row = GENERATE(values<Row>({
      {"nothing", false, false, "requested"},
      {"nothing", true, false, "acked"},
      {"timeout", false, false, "does_not_exist"},
      {"timeout, transient", false, false, "timeout"},
      {"deletion", true, false, "does_not_exist_but_cached"},
      {"deletion", true, true, "does_not_exist"},
      {"NACK", false, false, "nacked"},
      {"NACK", true, false, "nacked_but_cached"},
      {"NACK", true, true, "nacked"},
      {"error", false, false, "received_error"},
      {"error", true, false, "received_error_but_cached"},
      {"error", true, true, "received_error"},
  }));
  const std::string when = row.when;
  GIVEN(absl::StrCat(when, "; cached: ", row.is_cached, ", fail_on_data_errors: ", row.fails)) {
    Watching client(with_features(row.fails, when == "timeout, transient"), row.is_cached);
    if (when.starts_with("timeout")) client.time_out();
    if (when == "deletion") client.receive({});
    if (when == "NACK") client.receive({bad("a")});
    if (when == "error") client.told(absl::NotFoundError("not here"));
    THEN("the dump and the gauges say " + row.state) {
      const ResourceState state = client.state();
      CHECK(cache_state(state) == row.state);
      CHECK(client.gauges.at("CDS " + row.state) == 1);
      const bool is_in_use = row.is_cached && !row.fails;
      CHECK(state.updated.has_value() == is_in_use);
      CHECK(state.version == (is_in_use ? "v" : ""));
      CHECK(state.failure.has_value() == (when != "nothing"));
    }
  }
}

// --- "Summary of Behavior Changes" -------------------------------------------------------------

SCENARIO("A88: the document's table", "[spec][xds][client][A57][A88]") {
  struct Row {
    const char* error;
    bool is_cached;
    std::optional<bool> fails;  // nullopt: both values.
    std::string line;           // The watcher's notification.
    bool is_in_use;             // The watcher has a resource afterwards.
  };

  const std::string lost = "UNAVAILABLE: xDS server cp: refused";
  const std::string absent = "NOT_FOUND: CDS resource \"a\": x";
  const std::string denied = "PERMISSION_DENIED: CDS resource \"a\": x";
  const std::string other = "INTERNAL: CDS resource \"a\": x";
  const auto row = GENERATE_COPY(values<Row>({
      {"connection", false, std::nullopt, lost, false},
      {"connection", true, std::nullopt, "ambient " + lost, true},
      {"NACK", false, std::nullopt, kRefused, false},
      {"NACK", true, false, "ambient " + kRefused, true},
      {"NACK", true, true, kRefused, false},
      {"timeout",
       false,
       std::nullopt,
       "NOT_FOUND: CDS resource \"a\" did not come within 15 s",
       false},
      {"deletion", true, false, "ambient " + kDeleted, true},
      {"deletion", true, true, kDeleted, false},
      {"NOT_FOUND", false, std::nullopt, absent, false},
      {"NOT_FOUND", true, false, "ambient " + absent, true},
      {"NOT_FOUND", true, true, absent, false},
      {"PERMISSION_DENIED", false, std::nullopt, denied, false},
      {"PERMISSION_DENIED", true, false, "ambient " + denied, true},
      {"PERMISSION_DENIED", true, true, denied, false},
      {"other", false, std::nullopt, other, false},
      {"other", true, std::nullopt, "ambient " + other, true},
  }));
  const std::string error = row.error;
  const auto happens = [&](Watching& client) {
    if (error == "connection") return client.server(kServerLost);
    if (error == "NACK") return client.receive({bad("a")});
    if (error == "timeout") return client.time_out();
    if (error == "deletion") return client.receive({});
    if (error == "NOT_FOUND") return client.told(absl::NotFoundError("x"));
    if (error == "PERMISSION_DENIED") return client.told(absl::PermissionDeniedError("x"));
    return client.told(absl::InternalError("x"));
  };
  for (const bool fails : {false, true}) {
    if (row.fails.value_or(fails) != fails) continue;
    GIVEN(absl::StrCat(error, "; cached: ", row.is_cached, ", fail_on_data_errors: ", fails)) {
      Watching client(with_features(fails), row.is_cached);
      const Lines lines = happens(client);
      THEN("the watcher is told " + row.line) {
        REQUIRE_FALSE(lines.empty());
        CHECK(lines.front() == "1: a " + row.line);
        CHECK(client.has_resource() == row.is_in_use);
      }
    }
  }
}

// --- "Handling Ambient Errors" -----------------------------------------------------------------

SCENARIO("A88: a call that fails says the ambient errors of its cluster and target, else the node",
         "[spec][lb][router][A88]") {
  struct Row {
    const char* when;
    ResolutionNotes notes;
    std::string text;
  };

  const auto row = GENERATE(values<Row>({
      {"errors of the cluster and of the target",
       {"node ID: n", "LDS is old", {{ClusterName("a"), "EDS is old"}}},
       "cluster a: all down (EDS is old; LDS is old; node ID: n)"},
      {"errors of another cluster",
       {"node ID: n", "", {{ClusterName("b"), "EDS is old"}}},
       "cluster a: all down (node ID: n)"},
      {"no error", {"node ID: n", "", {}}, "cluster a: all down (node ID: n)"},
  }));
  GIVEN("a cluster without a reachable endpoint, and " + std::string(row.when)) {
    signalbox::testing::RouterFixture channel;
    channel.notes = std::make_shared<const ResolutionNotes>(row.notes);
    channel.publish(signalbox::testing::all_to(signalbox::testing::to("a")),
                    signalbox::testing::answering([](const PickArgs&) {
                      return signalbox::testing::result(Fail{absl::UnavailableError("all down")});
                    }));
    WHEN("a call is made") {
      const lb::Pick pick = channel.router.pick({.path = "/s/M"});
      THEN("its status has these texts") {
        CHECK(pick.status() == absl::UnavailableError(row.text));
      }
    }
  }
}

// --- "Propagating Status to Data Plane RPCs" ---------------------------------------------------

SCENARIO("A88: a resource that is NOT_FOUND makes calls UNAVAILABLE", "[spec][xds][depend][A88]") {
  GIVEN("a target that routes to a cluster") {
    tests::DependencyWorld world;
    world.route_to({"a"});
    world.add_leaf("a");
    REQUIRE(world.config != nullptr);
    WHEN("the cluster is NOT_FOUND") {
      world.gone(cds("a"));
      THEN("calls of this cluster are UNAVAILABLE") {
        REQUIRE(world.config != nullptr);
        CHECK(world.cluster_error("a").code() == absl::StatusCode::kUnavailable);
      }
    }
    WHEN("the listener is NOT_FOUND") {
      world.gone(tests::lds("orders"));
      THEN("all calls are UNAVAILABLE") {
        CHECK(world.config == nullptr);
        CHECK(world.error.code() == absl::StatusCode::kUnavailable);
      }
    }
  }
}

SCENARIO("A88: a status code that gRPC must not make is INTERNAL", "[spec][lb][router][A54][A88]") {
  GIVEN("a target without a configuration, because its listener is NOT_FOUND") {
    signalbox::testing::RouterFixture channel;
    channel.publish(std::nullopt, nullptr, absl::NotFoundError("no listener"));
    WHEN("a call is made") {
      const lb::Pick pick = channel.router.pick({.path = "/s/M"});
      THEN("its code is one that gRPC may send, and its text has the reason") {
        CHECK(pick.status().code() == absl::StatusCode::kInternal);
        CHECK_THAT(std::string(pick.status().message()), Catch::Contains("no listener"));
      }
    }
  }
}

}  // namespace signalbox::xds
