// SPDX-License-Identifier: Apache-2.0
//
// Which policy the leaves of an aggregate cluster have (gRFC A75), and by which name they are
// measured. Calls with one value of the header x-session have one hash: ring_hash keeps them on one
// backend, round_robin spreads them.
#include <cstdlib>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

const char kSwitch[] = "GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT";

// Sets kSwitch in this process's environment during this object's life; null: leaves it unset.
class AggregatePolicySwitch {
 public:
  explicit AggregatePolicySwitch(const char* value) {
    if (value != nullptr) ::setenv(kSwitch, value, 1);
  }

  ~AggregatePolicySwitch() { ::unsetenv(kSwitch); }

  AggregatePolicySwitch(const AggregatePolicySwitch&) = delete;
  AggregatePolicySwitch& operator=(const AggregatePolicySwitch&) = delete;
};

// Makes 20 calls with one hash. Returns the backends that answered: with round_robin over two
// backends, both.
std::set<std::string> backends_of_a_session(const std::shared_ptr<grpc::ChannelInterface>& channel,
                                            const std::string& cluster) {
  std::set<std::string> peers;
  for (int i = 0; i < 20; ++i) {
    const Answer answer = call(channel, {.headers = {{"x-session", "abc"}}});
    INFO(answer.text());
    CHECK(answer.ok());
    CHECK(answer.cluster == cluster);
    peers.insert(answer.peer);
  }
  return peers;
}

// Makes calls with one hash until exactly `backends` backends answer 20 of them; false if this does
// not happen in time. The second backend may connect later than the first.
bool gets_calls(const std::shared_ptr<grpc::ChannelInterface>& channel,
                const std::string& cluster,
                std::size_t backends) {
  return eventually([&] { return backends_of_a_session(channel, cluster).size() == backends; });
}

struct Expected {
  const char* what;
  const char* switched;               ///< Null: the variable is not set.
  const char* aggregate_policy;       ///< The aggregate cluster's own policy.
  std::size_t on_ringed, on_rounded;  ///< Backends that get calls with one hash.
};

// ring_hash connects only when a call needs it, so a second backend need not become READY.
constexpr Expected kCases[] = {
    {"each leaf has its own policy", nullptr, "ROUND_ROBIN", 1, 2},
    {"another value is none", "1", "ROUND_ROBIN", 1, 2},
    {"the aggregate's in place of both: round_robin", "true", "ROUND_ROBIN", 2, 2},
    {"the aggregate's in place of both: ring_hash", "true", "RING_HASH", 1, 1},
};

}  // namespace

// Metrics of endpoints and connections below an aggregate name the leaf, not the route's cluster.
TEST_CASE("runtime: what is measured below an aggregate has the leaf's name",
          "[e2e][runtime][A75-52]") {
  const BackendProcess backend("leaf");
  const auto plane = start_plane(listener_yaml("orders", "routes") + routes_yaml("routes", "both") +
                                 aggregate_yaml("both", {"leaf"}) + cluster_yaml("leaf") +
                                 endpoints_yaml("leaf", {{backend.address}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  for (const char* name : {"signalbox_endpoints", "signalbox_connections_open"}) {
    INFO(name);
    CHECK(eventually([&] { return metric(*runtime, name, {"cluster=\"leaf\""}) >= 1.0; }));
    CHECK_FALSE(metric(*runtime, name, {"cluster=\"both\""}));
  }
}

// Each call has one failing attempt and one successful one, and begins a session.
TEST_CASE("runtime: a call below an aggregate is counted by the leaf that took it",
          "[e2e][runtime][A75-54][A89]") {
  const char kSessions[] =
      "{name: session, typed_config: "
      "{\"@type\": type.googleapis.com/"
      "envoy.extensions.filters.http.stateful_session.v3.StatefulSession, "
      "session_state: {name: cookie, typed_config: "
      "{\"@type\": type.googleapis.com/"
      "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState, "
      "cookie: {name: session}}}}}, ";
  const std::vector<std::string> failing_once = {"--failing-attempts", "1"};
  auto near = std::make_unique<BackendProcess>("near", failing_once);
  const BackendProcess far("far", failing_once);
  const auto plane = start_plane(
      listener_yaml("orders", "routes", kSessions) +
      routes_yaml("routes",
                  "both",
                  ", retry_policy: {retry_on: \"unavailable\", num_retries: 1, "
                  "retry_back_off: {base_interval: 0.001s}}") +
      aggregate_yaml("both", {"near", "far"}) + cluster_yaml("near") + cluster_yaml("far") +
      endpoints_yaml("near", {{near->address}}) + endpoints_yaml("far", {{far.address}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  const auto counted = [&](const std::string& leaf, const char* name, const std::string& label) {
    return metric(*runtime,
                  absl::StrCat("signalbox_", name),
                  {absl::StrCat("cluster=\"", leaf, "\""), label, "aggregate=\"both\""})
        .value_or(0);
  };

  struct Row {
    const char* name;
    const char* label;
    double least, most;
  };

  // The counts of ten calls. Both picks of a call belong to its session.
  const std::vector<Row> rows = {
      {"rpcs_started_total", "target=\"xds:///orders\"", 20, 20},
      {"rpcs_completed_total", "code=\"OK\"", 10, 10},
      {"rpcs_completed_total", "code=\"UNAVAILABLE\"", 10, 10},
      {"rpcs_active", "", 0, 0},
      {"picks_total", "result=\"complete\"", 20, 20},
      {"retries_total", "result=\"retried\"", 10, 10},
      {"affinity_picks_total", "result=\"new\"", 10, 20},
      {"affinity_cookies_set_total", "reason=\"new\"", 10, 10},
  };
  const auto check = [&](const std::string& leaf) {
    INFO(leaf);
    REQUIRE(eventually([&] { return call(channel).cluster == leaf; }));
    std::vector<double> before;
    for (const Row& row : rows)
      before.push_back(counted(leaf, row.name, row.label));
    for (int i = 0; i < 10; ++i)
      CHECK(call(channel).cluster == leaf);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      INFO(rows[i].name << " " << rows[i].label);
      const double more = counted(leaf, rows[i].name, rows[i].label) - before[i];
      CHECK(more >= rows[i].least);
      CHECK(more <= rows[i].most);
    }
  };
  check("near");
  CHECK(counted("far", "rpcs_started_total", "") == 0);
  near.reset();
  check("far");
  const auto explanation = runtime->explain_json("xds:///orders", "/s/M", {}, 1);
  REQUIRE(explanation.ok());
  CHECK(absl::StrContains(*explanation, "\"cluster\": \"both\""));
  CHECK(absl::StrContains(*explanation, "\"leaf\": \"far\""));

  // Calls that a leaf took do not count for the aggregate.
  const std::vector<std::string> of_both = {"{target=\"xds:///orders\",cluster=\"both\""};
  CHECK(metric(*runtime, "signalbox_rpcs_started_total", of_both) == 0.0);
  CHECK(metric(*runtime, "signalbox_picks_total", {"cluster=\"both\"", "result=\"complete\""}) ==
        0.0);
  CHECK_FALSE(metric(*runtime, "signalbox_retries_total", {"{cluster=\"both\""}));
  CHECK_FALSE(metric(*runtime, "signalbox_affinity_cookies_set_total", {"{cluster=\"both\""}));
}

TEST_CASE(
    "runtime: the leaves of an aggregate keep their own policies, unless the environment says",
    "[e2e][runtime][A75-6][A75-7][A75-8][A42]") {
  for (const Expected& expected : kCases) {
    INFO(expected.what);
    const AggregatePolicySwitch environment(expected.switched);
    auto first = std::make_unique<BackendProcess>("ringed");
    auto second = std::make_unique<BackendProcess>("ringed");
    const BackendProcess third("rounded");
    const BackendProcess fourth("rounded");
    const auto plane = start_plane(
        listener_yaml("orders", "routes") +
        routes_yaml("routes", "both", ", hash_policy: [{header: {header_name: x-session}}]") +
        aggregate_yaml("both",
                       {"ringed", "rounded"},
                       absl::StrCat(", lb_policy: ", expected.aggregate_policy)) +
        cluster_yaml("ringed", "", ", lb_policy: RING_HASH") + cluster_yaml("rounded") +
        endpoints_yaml("ringed", {{first->address, second->address}}) +
        endpoints_yaml("rounded", {{third.address, fourth.address}}));
    const auto runtime = start_runtime(options_for(plane->address()));
    const auto channel = runtime->channel("xds:///orders");
    REQUIRE(call(channel).ok());

    CHECK(gets_calls(channel, "ringed", expected.on_ringed));

    first.reset();
    second.reset();
    REQUIRE(eventually([&] { return call(channel).cluster == "rounded"; }));
    CHECK(gets_calls(channel, "rounded", expected.on_rounded));
  }
}

// A runtime reads the environment variable kSwitch when it parses an update of the clusters, even
// if the aggregate's own resource is unchanged. No restart is needed.
TEST_CASE("runtime: the environment's word on an aggregate's policy is heard at the next update",
          "[e2e][runtime][A75-8]") {
  const BackendProcess first("leaf");
  const BackendProcess second("leaf");
  const std::string rest =
      listener_yaml("orders", "routes") +
      routes_yaml("routes", "both", ", hash_policy: [{header: {header_name: x-session}}]") +
      aggregate_yaml("both", {"leaf"}, ", lb_policy: ROUND_ROBIN") +
      endpoints_yaml("leaf", {{first.address, second.address}});
  const auto leaf = [](const std::string& timeout) {
    return cluster_yaml("leaf", "", ", lb_policy: RING_HASH, connect_timeout: " + timeout);
  };
  const auto plane = start_plane(rest + leaf("3s"));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  CHECK(backends_of_a_session(channel, "leaf").size() == 1);
  {
    const AggregatePolicySwitch environment("true");
    CHECK(backends_of_a_session(channel, "leaf").size() == 1);
    plane->update(resources(leaf("4s")));
    CHECK(gets_calls(channel, "leaf", 2));
  }
  CHECK(gets_calls(channel, "leaf", 2));
  plane->update(resources(leaf("5s")));
  CHECK(gets_calls(channel, "leaf", 1));
}

}  // namespace signalbox::test
