// SPDX-License-Identifier: Apache-2.0
//
// Parsing a response blocks neither the updates of another control plane nor the end of the
// runtime. A custom filter's parser makes the response slow to parse.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

// A gate that blocks until it is opened.
class Door {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

  bool wait(std::chrono::milliseconds patience = kPatience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

const std::string kSlow =
    "{\"@type\": type.googleapis.com/xds.type.v3.TypedStruct, "
    "type_url: type.googleapis.com/com.example.Slow, value: {}}";

// A filter that lets every call through.
struct Passing final : CallFilter {
  void apply(FilterCall& /*call*/) const override {}
};

CustomHttpFilter slow_filter(const CustomHttpFilter::Parse& parse,
                             const CustomHttpFilter::Parse& parse_override) {
  return {.type = "com.example.Slow", .parse = parse, .parse_override = parse_override};
}

std::string slow_listener(const std::string& name) {
  return listener_yaml(name, name, absl::StrCat("{name: slow, typed_config: ", kSlow, "}, "));
}

// A bootstrap in which `server` serves resource names without an authority, and `other` serves
// names with the authority "other".
std::string bootstrap_of(const std::string& server, const std::string& other) {
  const auto only = [](const std::string& uri) {
    const nlohmann::json insecure{{"type", "insecure"}};
    return nlohmann::json::array(
        {{{"server_uri", uri}, {"channel_creds", nlohmann::json::array({insecure})}}});
  };
  return nlohmann::json{{"xds_servers", only(server)},
                        {"authorities", {{"other", {{"xds_servers", only(other)}}}}},
                        {"node", {{"id", kNodeId}}}}
      .dump();
}

std::string of_other(const std::string& type, const std::string& name) {
  return absl::StrCat("\"xdstp://other/envoy.config.", type, "/", name, "\"");
}

std::string other_endpoints(const std::string& address) {
  return endpoints_yaml(of_other("endpoint.v3.ClusterLoadAssignment", "c"), {{address}});
}

std::string other_yaml(const std::string& address) {
  const std::string routes = of_other("route.v3.RouteConfiguration", "r");
  const std::string cluster = of_other("cluster.v3.Cluster", "c");
  return listener_yaml(of_other("listener.v3.Listener", "invoices"), routes) +
         routes_yaml(routes, cluster) +
         cluster_yaml(cluster, of_other("endpoint.v3.ClusterLoadAssignment", "c")) +
         other_endpoints(address);
}

}  // namespace

TEST_CASE("runtime: while one control plane's response is parsed, another's updates are applied",
          "[e2e][runtime][A47]") {
  const BackendProcess slow("slow");
  const BackendProcess before("before");
  const BackendProcess after("after");
  Door begun;
  Door finished;
  const auto plane = start_plane(slow_listener("orders") + routes_yaml("orders", "c") +
                                 cluster_yaml("c") + endpoints_yaml("c", {{slow.address}}));
  const auto other = start_plane(other_yaml(before.address));

  RuntimeOptions options = options_for(plane->address());
  options.bootstrap_json = bootstrap_of(plane->address(), other->address());
  options.scheduler_threads = 1;
  const auto wait = [&](const RawFilterConfig&) -> absl::StatusOr<CallFilterPtr> {
    begun.open();
    finished.wait();
    return std::make_shared<const Passing>();
  };
  options.http_filters.push_back(slow_filter(wait, nullptr));
  const auto runtime = start_runtime(std::move(options));

  Calls orders(runtime->channel("xds:///orders"));
  orders.start(1, {.wait_for_ready = true});
  REQUIRE(begun.wait());
  const auto invoices = runtime->channel("xds://other/invoices");
  CHECK(call(invoices).cluster == "before");
  other->update(resources(other_endpoints(after.address)));
  CHECK(eventually([&] { return call(invoices).cluster == "after"; }));
  CHECK(orders.running() == 1);  // The response is still being parsed.

  finished.open();
  for (const Answer& answer : orders.finish())
    CHECK(answer.cluster == "slow");
}

TEST_CASE("runtime: its end does not wait for the rest of a resource that is parsed",
          "[e2e][runtime][shutdown]") {
  constexpr int kRoutes = 5000;
  std::string routes;
  for (int i = 0; i < kRoutes; ++i) {
    absl::StrAppend(&routes,
                    i > 0 ? ", " : "",
                    "{match: {prefix: /s",
                    i,
                    "/}, route: {cluster: c}, typed_per_filter_config: {slow: ",
                    kSlow,
                    "}}");
  }
  const auto plane = start_plane(slow_listener("orders") +
                                 replaced(routes_yaml("orders", "c"),
                                          "routes: [{match: {prefix: \"\"}, route: {cluster: c}}]",
                                          absl::StrCat("routes: [", routes, "]")));
  Door begun;
  Door ending;
  std::atomic<int> parsed = 0;
  RuntimeOptions options = options_for(plane->address());
  const auto pass = [](const RawFilterConfig&) -> absl::StatusOr<CallFilterPtr> {
    return std::make_shared<const Passing>();
  };
  // From the tenth route on, parsing takes 1 ms for each route. ~Runtime must stop the parser
  // before all routes are parsed.
  Door never;
  const auto count = [&](const RawFilterConfig&) -> absl::StatusOr<CallFilterPtr> {
    if (++parsed == 10) {
      begun.open();
      ending.wait();
    }
    if (parsed >= 10) never.wait(std::chrono::milliseconds(1));
    return std::make_shared<const Passing>();
  };
  options.http_filters.push_back(slow_filter(pass, count));
  auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  channel->GetState(true);
  REQUIRE(begun.wait());
  ending.open();
  runtime = nullptr;
  INFO(parsed << " routes were parsed");
  CHECK(parsed < kRoutes);
}

}  // namespace signalbox::test
