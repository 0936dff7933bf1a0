// SPDX-License-Identifier: Apache-2.0
//
// Sessions as applications use them: a cookie jar, a control plane, and backends. The backends
// come, drain, move between priorities, die and return.
#include <csignal>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "signalbox/cookie_jar.hpp"
#include "tests/e2e/echo_server.hpp"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using Catch::Contains;
using Channel = std::shared_ptr<grpc::ChannelInterface>;

struct Host {
  std::string address;
  int priority = 0;
  std::string health = "HEALTHY";
};

std::string hosts_yaml(const std::string& service, const std::vector<Host>& hosts) {
  const auto append = [](std::string* text, const Host& host) {
    const auto colon = host.address.rfind(':');
    absl::StrAppend(text,
                    "{locality: {region: r, zone: \"",
                    host.address,
                    "\"}, load_balancing_weight: 1, priority: ",
                    host.priority,
                    ", lb_endpoints: [{health_status: ",
                    host.health,
                    ", endpoint: {address: {socket_address: {address: ",
                    host.address.substr(0, colon),
                    ", port_value: ",
                    host.address.substr(colon + 1),
                    "}}}}]}");
  };
  return absl::StrCat(
      "  - {\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, "
      "cluster_name: ",
      service,
      ", endpoints: [",
      absl::StrJoin(hosts, ", ", append),
      "]}\n");
}

// The listener `orders`, with the filter of sessions. `more`: further fields of the filter, each
// preceded by a comma.
std::string session_listener(const std::string& more = "") {
  return listener_yaml(
      "orders",
      "orders",
      absl::StrCat("{name: sessions, typed_config: {\"@type\": "
                   "type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3."
                   "StatefulSession, session_state: {name: cookie, typed_config: {\"@type\": "
                   "type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3."
                   "CookieBasedSessionState, cookie: {name: session}}}",
                   more,
                   "}}, "));
}

// A cluster with DRAINING in its override_host_status: sessions stay on draining hosts.
std::string session_cluster(const std::string& name) {
  return cluster_yaml(name,
                      "",
                      ", common_lb_config: {override_host_status: {statuses: [UNKNOWN, HEALTHY, "
                      "DRAINING]}}");
}

// A client's session: consecutive calls with one cookie jar.
class Session {
 public:
  explicit Session(const Channel& channel) : stub_(channel) {}

  Answer call() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    jar_.send(context);
    demo::v1::PlaceReply reply;
    const grpc::Status status = stub_.Place(&context, demo::v1::PlaceRequest(), &reply);
    cookies_ += context.GetServerInitialMetadata().count("set-cookie");
    CHECK(jar_.receive(context).ok());
    return {status, reply.cluster(), context.peer(), reply.connection()};
  }

  // Makes `times` calls, which must succeed. Returns the backends that answered them.
  std::set<std::string> call(int times) {
    std::set<std::string> hosts;
    for (int i = 0; i < times; ++i) {
      const Answer answer = call();
      INFO(answer.text());
      CHECK(answer.ok());
      hosts.insert(answer.cluster);
    }
    return hosts;
  }

  CookieJar& jar() { return jar_; }

  /// The number of received cookies.
  std::size_t cookies() const { return cookies_; }

 private:
  Stub stub_;
  CookieJar jar_;
  std::size_t cookies_ = 0;
};

using Hosts = std::set<std::string>;

// Makes calls without a session. Returns the backends that answered, and "nowhere" if a call
// failed.
Hosts others(const Channel& channel, int calls = 20) {
  Hosts hosts;
  Stub stub(channel);
  for (int i = 0; i < calls; ++i) {
    const Answer answer = call(stub);
    hosts.insert(answer.ok() ? answer.cluster : "nowhere");
  }
  return hosts;
}

// A cluster `c` of these hosts; all calls go to it.
struct SessionWorld {
  explicit SessionWorld(const std::vector<Host>& hosts,
                        const std::string& filter = "",
                        const std::string& route = "",
                        bool retry_elsewhere = false)
      : plane(start_plane(absl::StrCat(session_listener(filter),
                                       routes_yaml("orders", "c", route),
                                       session_cluster("c"),
                                       hosts_yaml("c", hosts)))),
        runtime(start_runtime([&] {
          RuntimeOptions options = options_for(plane->address());
          options.retry_elsewhere = retry_elsewhere;
          return options;
        }())),
        channel(runtime->channel("xds:///orders")) {}

  void set(const std::vector<Host>& hosts) const {
    plane->update(resources(hosts_yaml("c", hosts)));
  }

  // Begins a session on this backend.
  std::unique_ptr<Session> begin_on(const std::string& backend) const {
    for (int i = 0; i < 1000; ++i) {
      auto session = std::make_unique<Session>(channel);
      if (session->call().cluster == backend) return session;
    }
    FAIL("no session begins on " << backend);
    return nullptr;
  }

  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<Runtime> runtime;
  Channel channel;
};

}  // namespace

TEST_CASE("sessions: stay where they began, and are given one cookie",
          "[e2e][runtime][session][A55-16][A55-21][A55-24][A55-42]") {
  const BackendProcess a("a");
  const BackendProcess b("b");
  const SessionWorld world({{a.address}, {b.address}});
  CHECK(eventually([&] { return others(world.channel) == Hosts{"a", "b"}; }));
  for (const char* backend : {"a", "b"}) {
    const auto session = world.begin_on(backend);
    CHECK(session->call(50) == Hosts{backend});
    CHECK(session->cookies() == 1);
  }
}

TEST_CASE("sessions: a cookie that one process was given holds in another",
          "[e2e][runtime][session][B6]") {
  const BackendProcess a("a");
  const BackendProcess b("b");
  const SessionWorld world({{a.address}, {b.address}});
  const auto session = world.begin_on("b");
  RuntimeOptions options = options_for(world.plane->address(), "another-node");
  options.seed = 99;
  const auto other = start_runtime(std::move(options));
  Session continued(other->channel("xds:///orders"));
  CHECK(continued.jar().save(session->jar().cookie_header("")).ok());
  CHECK(continued.call(20) == Hosts{"b"});
  CHECK(continued.cookies() == 0);
}

TEST_CASE("sessions: one whose backend dies goes on elsewhere, with another cookie",
          "[e2e][runtime][session][A55-21][A55-35]") {
  BackendProcess a("a");
  const BackendProcess b("b");
  const SessionWorld world({{a.address}, {b.address}});
  const auto session = world.begin_on("a");
  a.process.send_signal(SIGKILL);
  CHECK(eventually([&] { return session->call().cluster == "b"; }));
  CHECK(session->cookies() == 2);
  CHECK(session->call(20) == Hosts{"b"});
  CHECK(session->cookies() == 2);

  const BackendProcess again("a", {"--listen", a.address});
  CHECK(eventually([&] { return others(world.channel) == Hosts{"a", "b"}; }));
  CHECK(session->call(20) == Hosts{"b"});
}

TEST_CASE("sessions: a backend that moves to a lower priority keeps its session, and nobody else",
          "[e2e][runtime][session][A75-50][A75-53][A75-34]") {
  const BackendProcess a("a");
  const BackendProcess b("b");
  const SessionWorld world({{a.address}, {b.address}});
  const auto session = world.begin_on("a");
  const std::string connection = session->call().connection;
  const auto stays = [&] {
    for (int i = 0; i < 20; ++i) {
      const Answer answer = session->call();
      INFO(answer.text());
      CHECK(answer.cluster == "a");
      CHECK(answer.connection == connection);  // The client's address, as the backend sees it.
    }
  };
  Traffic traffic(world.channel, 1);
  for (int move = 0; move < 3; ++move) {
    world.set({{.address = a.address, .priority = 1}, {b.address}});
    CHECK(eventually([&] {
      stays();
      return others(world.channel) == Hosts{"b"};
    }));
    stays();
    CHECK(others(world.channel) == Hosts{"b"});

    world.set({{a.address}, {b.address}});
    CHECK(eventually([&] {
      stays();
      return others(world.channel) == Hosts{"a", "b"};
    }));
    stays();
  }
  CHECK(session->cookies() == 1);
  CHECK(traffic.finish() == std::vector<std::string>{});
}

TEST_CASE("sessions: one that began on a lower priority stays when the higher one returns",
          "[e2e][runtime][session][A75-53]") {
  BackendProcess a("a");
  const BackendProcess b("b");
  const SessionWorld world({{a.address}, {.address = b.address, .priority = 1}});
  REQUIRE(call(world.channel).cluster == "a");
  a.process.send_signal(SIGKILL);
  CHECK(eventually([&] { return call(world.channel).cluster == "b"; }));
  const auto session = world.begin_on("b");
  const std::string connection = session->call().connection;
  const BackendProcess again("a", {"--listen", a.address});
  CHECK(eventually([&] { return others(world.channel) == Hosts{"a"}; }));
  CHECK(session->call(20) == Hosts{"b"});
  CHECK(session->call().connection == connection);
  CHECK(session->cookies() == 1);
}

namespace {

// An aggregate `c` in tiered mode: `a` gets 70 % of the calls, `b` 30 %.
struct TieredWorld {
  TieredWorld(const std::string& a,
              const std::string& b,
              const std::string& filter = "",
              const std::string& route = "")
      : plane(start_plane(
            session_listener(filter) + routes_yaml("orders", "c", route) +
            aggregate_yaml("c",
                           {"primary", "secondary"},
                           ", metadata: {filter_metadata: {signalbox: {aggregate_mode: tiered}}}") +
            session_cluster("primary") + session_cluster("secondary") +
            hosts_yaml("primary", {{a}, {"127.0.9.1:9", 0, "UNHEALTHY"}}) +
            hosts_yaml("secondary", {{b}}))),
        runtime(start_runtime(options_for(plane->address()))),
        channel(runtime->channel("xds:///orders")) {}

  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<Runtime> runtime;
  Channel channel;
};

}  // namespace

TEST_CASE("sessions: of a tiered aggregate stay on their host, whatever the draw",
          "[e2e][runtime][session][tiered][ENV-27]") {
  const std::string strict = GENERATE("", ", strict: true");
  const BackendProcess a("a");
  const BackendProcess b("b");
  const TieredWorld world(a.address, b.address, strict);
  REQUIRE(eventually([&] { return others(world.channel) == Hosts{"a", "b"}; }));
  std::map<std::string, std::unique_ptr<Session>> sessions;
  REQUIRE(eventually([&] {
    auto session = std::make_unique<Session>(world.channel);
    const std::string backend = session->call().cluster;
    sessions.emplace(backend, std::move(session));
    return sessions.size() == 2;
  }));
  for (const auto& [backend, session] : sessions) {
    CHECK(session->call(60) == Hosts{backend});
    CHECK(session->cookies() == 1);
  }
  CHECK(others(world.channel, 60) == Hosts{"a", "b"});

  // The explanation names the session's host for every seed.
  const std::string cookie = sessions.at("b")->jar().cookie_header("");
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto told = world.runtime->explain_json(
        "xds:///orders", "/signalbox.demo.v1.Orders/Place", {{"cookie", cookie}}, seed);
    INFO(told.status().ToString());
    REQUIRE(told.ok());
    CHECK_THAT(*told, Contains("it has the host of the call's cookie"));
    CHECK_THAT(*told, Contains(b.address));
  }

  // Now the leaf "primary" (backend a) gets all calls without a session; sessions on b stay.
  world.plane->update(resources(hosts_yaml("primary", {{a.address}})));
  REQUIRE(eventually([&] { return others(world.channel, 60) == Hosts{"a"}; }));
  CHECK(sessions.at("b")->call(20) == Hosts{"b"});
  CHECK(sessions.at("b")->cookies() == 1);
}

TEST_CASE("sessions: of a tiered aggregate have all attempts of a call on one host",
          "[e2e][runtime][session][tiered][retry][ENV-27][A55-37]") {
  EchoServer a;
  EchoServer b;
  const TieredWorld world(a.address().str(),
                          b.address().str(),
                          "",
                          ", retry_policy: {retry_on: \"unavailable\", num_retries: 4, "
                          "retry_back_off: {base_interval: 0.001s}}");
  const auto calls = [](EchoServer& server) { return server.service().calls.load(); };
  const auto call_with = [&](CookieJar& jar, int failures) {
    EchoRequest request;
    request.set_failures(failures);
    request.set_status(failures > 0 ? grpc::StatusCode::UNAVAILABLE : 0);
    grpc::ClientContext context;
    jar.send(context);
    EchoReply reply;
    const grpc::Status status = Echo::Stub(world.channel).Unary(&context, request, &reply);
    CHECK(jar.receive(context).ok());
    INFO(status.error_message());
    CHECK(status.ok());
  };
  std::set<bool> began_on_a;
  const bool began_on_both = eventually([&] {  // The first call of each session is retried.
    CookieJar jar;
    for (int i = 0; i < 2; ++i) {
      const int on_a = calls(a);
      const int on_both = calls(a) + calls(b);
      call_with(jar, 3);
      CHECK(calls(a) + calls(b) == on_both + 4);
      CHECK((calls(a) == on_a || calls(a) == on_a + 4));
      if (i == 0) began_on_a.insert(calls(a) > on_a);
    }
    return began_on_a.size() == 2;
  });
  CHECK(began_on_both);
}

TEST_CASE("sessions: all attempts of a call go to its backend while that is usable",
          "[e2e][runtime][session][retry][A55-37][D13]") {
  // RuntimeOptions::retry_elsewhere, which does not apply to sessions.
  const bool elsewhere_if_free = GENERATE(false, true);
  EchoServer a;
  EchoServer b;
  const SessionWorld world({{a.address().str()}, {b.address().str()}},
                           "",
                           ", retry_policy: {retry_on: \"unavailable\", num_retries: 4, "
                           "retry_back_off: {base_interval: 0.001s}}",
                           elsewhere_if_free);
  CookieJar own_jar;
  const auto echo = [&](CookieJar& jar, int failures, const std::string& pushback = "") {
    EchoRequest request;
    request.set_failures(failures);
    request.set_status(failures > 0 ? grpc::StatusCode::UNAVAILABLE : 0);
    request.set_pushback(pushback);
    grpc::ClientContext context;
    jar.send(context);
    EchoReply reply;
    const grpc::Status status = Echo::Stub(world.channel).Unary(&context, request, &reply);
    CHECK(jar.receive(context).ok());
    INFO(status.error_message());
    CHECK(status.ok());
    return reply;
  };
  const auto calls = [](EchoServer& server) { return server.service().calls.load(); };
  for (int i = 0; i < 10; ++i) {  // The first call of each session is retried.
    CookieJar jar;
    const int on_a = calls(a);
    const int on_both = calls(a) + calls(b);
    CHECK(echo(jar, 3).previous_attempts() == 3);
    CHECK(calls(a) + calls(b) == on_both + 4);
    CHECK((calls(a) == on_a || calls(a) == on_a + 4));
  }

  const bool is_on_a = echo(own_jar, 0).port() == a.service().port;
  EchoServer& own = is_on_a ? a : b;
  EchoServer& other = is_on_a ? b : a;
  const int elsewhere = calls(other);
  const int begun = calls(own);
  for (int i = 1; i <= 10; ++i) {
    CHECK(echo(own_jar, 3).previous_attempts() == 3);
    CHECK(calls(own) == begun + 4 * i);
  }
  CHECK(calls(other) == elsewhere);

  // The host dies while the call backs off, or just before the back-off.
  std::thread killer([&] {
    CHECK(eventually([&] { return calls(own) == begun + 41; }));
    own.stop();
  });
  CHECK(echo(own_jar, 1, "2000").port() == other.service().port);
  killer.join();
  CHECK(calls(other) == elsewhere + 1);
  CHECK(echo(own_jar, 0).port() == other.service().port);
}

TEST_CASE("sessions: ten drains under load lose no call, move no session, and take no new one",
          "[e2e][runtime][session][drain][S13][A55-29][A55-31]") {
  std::vector<std::unique_ptr<BackendProcess>> backends;
  const auto start = [&] {
    const std::string name = absl::StrCat("host-", backends.size());
    backends.push_back(std::make_unique<BackendProcess>(name));
    return Host{backends.back()->address};
  };
  std::vector<Host> hosts{start(), start()};
  const SessionWorld world(hosts);
  Traffic traffic(world.channel, 2);
  for (int round = 0; round < 10; ++round) {
    const std::string draining = absl::StrCat("host-", round);
    CAPTURE(draining);
    std::vector<std::unique_ptr<Session>> sessions;
    for (int i = 0; i < 5; ++i)
      sessions.push_back(world.begin_on(draining));

    hosts.front().health = "DRAINING";
    hosts.push_back(start());
    world.set(hosts);
    CHECK(eventually([&] { return !others(world.channel).contains(draining); }));
    for (int i = 0; i < 30; ++i) {
      for (const auto& session : sessions)
        CHECK(session->call(1) == Hosts{draining});
      CHECK(Session(world.channel).call().cluster != draining);
    }
    for (const auto& session : sessions)
      CHECK(session->cookies() == 1);

    // The drain is over: EDS removes the host, and its process ends in an orderly way.
    hosts.erase(hosts.begin());
    world.set(hosts);
    for (const auto& session : sessions) {
      CHECK(eventually([&] { return session->call(1) != Hosts{draining}; }));
    }
    backends[round]->process.send_signal(SIGTERM);
    const auto status = backends[round]->process.wait(kPatience);
    CHECK((status.ok() && *status == 0));
  }
  const std::vector<std::string> failures = traffic.finish();
  CHECK(failures == std::vector<std::string>{});
}

TEST_CASE("sessions: a cookie's cluster is chosen among the weighted ones of its route",
          "[e2e][runtime][session][A60][A55-19]") {
  const BackendProcess a("a");
  const BackendProcess b("b");
  const auto routes = [](const std::string& action) {
    return absl::StrCat("  - {\"@type\": type.googleapis.com/envoy.config.route.v3.",
                        "RouteConfiguration, name: orders, virtual_hosts: [{name: all, domains: "
                        "[\"*\"], routes: [{match: {prefix: \"\"}, route: {",
                        action,
                        "}}]}]}\n");
  };
  const auto plane = start_plane(absl::StrCat(
      session_listener(),
      routes("weighted_clusters: {clusters: [{name: c, weight: 50}, {name: d, weight: 50}]}"),
      session_cluster("c"),
      session_cluster("d"),
      hosts_yaml("c", {{a.address}}),
      hosts_yaml("d", {{b.address}})));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  Hosts begun;
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 20; ++i) {
    sessions.push_back(std::make_unique<Session>(channel));
    const std::string first = sessions.back()->call().cluster;
    begun.insert(first);
    CHECK(sessions.back()->call(20) == Hosts{first});
    CHECK(sessions.back()->cookies() == 1);
  }
  CHECK(begun == Hosts{"a", "b"});

  // A cookie may name a cluster. The cluster is ignored when the call's route does not name it.
  plane->update(resources(routes("cluster: d")));
  CHECK(eventually([&] { return others(channel) == Hosts{"b"}; }));
  for (const auto& session : sessions)
    CHECK(session->call(5) == Hosts{"b"});
}

TEST_CASE(
    "sessions: strict ones fail rather than go elsewhere, and go on when their backend is back",
    "[e2e][runtime][session][A55-43]") {
  BackendProcess a("a");
  const BackendProcess b("b");
  const SessionWorld world({{a.address}, {b.address}}, ", strict: true");
  const auto session = world.begin_on("a");
  a.process.send_signal(SIGKILL);
  CHECK(eventually([&] { return others(world.channel) == Hosts{"b"}; }));
  for (int i = 0; i < 20; ++i) {
    const Answer answer = session->call();
    CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  const BackendProcess again("a", {"--listen", a.address});
  CHECK(eventually([&] { return session->call().cluster == "a"; }));
  CHECK(session->cookies() == 1);
}

}  // namespace signalbox::test
