// SPDX-License-Identifier: Apache-2.0
//
// gRFC A42, "xDS Ring Hash LB Policy", in the document's order, with the pick and the recovery that
// A61 gave it, and the weights of A113. a76_ring_hash_keys_test has A76.
//
// Not here:
//   - A call without a hash by its policies gets a random hash from the picker, not from the
//     config selector. Its pick follows A76: the call does not wait for a randomly drawn endpoint
//     while another endpoint is READY (decision 32).
//   - An address that EDS names twice is a NACK (A27), so an address has no more weight for being
//     named twice. The endpoint's weight and its locality's weight are the only weights.
//   - "Move Load Reporting into xds_cluster_impl Policy": runtime_load_reports_test (tests/e2e).
//   - GRPC_XDS_EXPERIMENTAL_ENABLE_RING_HASH is not read: the policy is always there.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/health/endpoint_weights.hpp"
#include "lb/leaf/hash_ring.hpp"
#include "lb/route/config_selector.hpp"
#include "lb/route/request_hash.hpp"
#include "lb/xx_hash.hpp"
#include "messages/route_config.hpp"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "tests/support/printed.hpp"
#include "tests/support/property.hpp"
#include "tests/support/route_fixture.hpp"
#include "tests/unit/lb/ring_hash_harness.hpp"
#include "tests/unit/xds/lb_policy_text.hpp"
#include "xds/parse/route_config.hpp"

namespace signalbox::a42_ring_hash_test {
namespace {

using namespace lb;
using namespace signalbox::testing;
using Hash = std::optional<std::uint64_t>;
using Strings = std::vector<std::string>;
using Weights = std::vector<std::uint64_t>;

constexpr auto kIdle = ConnectivityState::kIdle;
constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kReady = ConnectivityState::kReady;
constexpr auto kFailed = ConnectivityState::kTransientFailure;

// The hash policies of a route with this action.
std::vector<HashPolicy> hash_policies_of(const std::string& action) {
  const auto received =
      xds::parse_route_config(xds::serialise<envoy::config::route::v3::RouteConfiguration>(
                                  "name: \"r\" virtual_hosts { domains: \"*\" routes { match { "
                                  "prefix: \"\" } route { cluster: \"c\" " +
                                  action + " } } }"),
                              {});
  const auto& config = xds::value_of<RouteConfig>(received);
  return std::get<ForwardAction>(config.virtual_hosts.at(0).routes.at(0).action).hash_policies;
}

HashPolicy header(std::string name, bool terminal = false) {
  return {HeaderHash{std::move(name), std::nullopt}, terminal};
}

HashPolicy rewritten(std::string name, std::string pattern, std::string substitution) {
  return {
      HeaderHash{std::move(name), HeaderHash::Rewrite{std::move(pattern), std::move(substitution)}},
      false};
}

HashPolicy channel(bool terminal = false) {
  return {ChannelHash{}, terminal};
}

Hash hash(const std::vector<HashPolicy>& policies,
          const TestHeaders& headers,
          std::uint64_t channel_id = 1) {
  return RequestHash(policies, channel_id).of(&headers);
}

Hash joined(std::uint64_t before, std::uint64_t next) {
  return std::rotl(before, 1) ^ next;
}

// A ring, and the names of its items.
struct Built {
  Built(std::vector<std::string> names, const Weights& weights, HashRing::Sizes sizes)
      : keys(std::move(names)) {
    std::vector<HashRing::Item> items;
    for (std::size_t at = 0; at < keys.size(); ++at)
      items.push_back({keys[at], weights.empty() ? 1 : weights[at]});
    ring = HashRing(items, sizes);
  }

  std::vector<std::size_t> points() const {
    std::vector<std::size_t> points(keys.size());
    for (std::size_t at = 0; at < ring.size(); ++at)
      ++points[ring.item(at)];
    return points;
  }

  const std::string& at(std::uint64_t hash) const { return keys[ring.item(ring.find(hash))]; }

  std::vector<std::string> keys;
  HashRing ring;
};

std::vector<std::string> addresses(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t number = 0; number < count; ++number)
    names.push_back(absl::StrCat("10.0.", number / 250, ".", number % 250, ":443"));
  return names;
}

std::uint64_t key(std::uint64_t number) {
  return draw(number, Salt::kRequestHash);
}

// The number of points of the policy's ring, as the picker explains it.
std::uint64_t points_of(const RingHashHarness& leaf) {
  struct Steps final : PickTrace {
    void tell(PickStep step) override { steps.push_back(std::move(step)); }

    std::vector<PickStep> steps;
  } told;

  leaf.published.back().picker->explain({.hash = 1}, told);
  for (const PickStep& step : told.steps) {
    const std::size_t at = step.reason.find("the ring has ");
    if (at != std::string::npos) return std::stoull(step.reason.substr(at + 13));
  }
  FAIL("the explanation has no number of points");
  return 0;
}

// The expected answer of a pick, by the document's pseudo-code: that of A76 if the hash is random
// (`by_chance`), else that of A61.
std::string walk(const Strings& order, const std::map<std::string, char>& states, bool by_chance) {
  bool requested = false;
  if (by_chance) {
    for (const auto& [name, state] : states)
      requested = requested || state == 'c';
  }
  std::string connect;
  for (const std::string& name : order) {
    const auto found = states.find(name);
    const char state = found == states.end() ? 'i' : found->second;
    if (state == 'r') return "complete " + name + connect;
    if (state == 'f') continue;
    if (state == 'i' && !requested) connect = ", connect " + name;
    if (!by_chance) return "queue" + connect;
    requested = true;
  }
  return requested ? "queue" + connect : "fail";
}

LocalityPtr locality(std::uint32_t weight,
                     const std::vector<std::pair<const char*, std::uint32_t>>& endpoints) {
  Locality made;
  made.weight = weight;
  made.name.zone = endpoints.front().first;
  for (const auto& [address, own] : endpoints)
    made.endpoints.push_back({.addresses = {Address(address)}, .weight = own});
  return std::make_shared<const Locality>(std::move(made));
}

}  // namespace

// --- "Hash Policy: xDS API Fields" -------------------------------------------------------------

TEST_CASE("A42: the hash policies of a RouteAction are read in their order",
          "[spec][xds][parse][A42]") {
  CHECK(hash_policies_of("").empty());
  CHECK(hash_policies_of(
            "hash_policy { header { header_name: \"X-User\" } } "
            "hash_policy { header { header_name: \"h\" regex_rewrite { "
            "  pattern { regex: \"(a+)\" } substitution: \"<\\\\1>\" } } terminal: true } "
            "hash_policy { filter_state { key: \"io.grpc.channel_id\" } }") ==
        std::vector<HashPolicy>{{HeaderHash{"x-user", {}}, false},
                                {HeaderHash{"h", HeaderHash::Rewrite{"(a+)", "<\\1>"}}, true},
                                {ChannelHash{}, false}});
}

TEST_CASE("A42: the results of several hash policies are combined in their order",
          "[spec][lb][ring_hash][A42]") {
  const TestHeaders headers{{"a", "1"}, {"b", "2"}, {"c", "3"}};
  const std::uint64_t a = xx_hash("1");
  const std::uint64_t b = xx_hash("2");
  const std::uint64_t c = xx_hash("3");
  CHECK(hash({header("a"), header("b")}, headers) == joined(a, b));
  CHECK(hash({header("b"), header("a")}, headers) == joined(b, a));
  CHECK(hash({header("a"), header("b"), header("c")}, headers) == joined(*joined(a, b), c));
  // Hash policies without a result do not rotate the hash.
  CHECK(hash({header("x"), header("a"), header("x"), header("b")}, headers) == joined(a, b));
}

TEST_CASE("A42: identical lists of hash policies give the same hash",
          "[spec][lb][ring_hash][A42][S5]") {
  CHECK(test::holds("joined by the rule", 1'000, [] {
    const auto steps = *rc::gen::container<std::vector<std::pair<int, bool>>>(
        rc::gen::pair(rc::gen::inRange(0, 6), rc::gen::arbitrary<bool>()));
    const TestHeaders headers{{"0", "zero"}, {"1", "one"}, {"2", ""}};
    std::vector<HashPolicy> policies;
    for (const auto& [which, terminal] : steps)
      policies.push_back(which == 5 ? channel(terminal) : header(std::to_string(which), terminal));
    Hash expected;
    for (const HashPolicy& policy : policies) {
      const Hash one = hash({policy}, headers);
      if (one.has_value()) expected = (*one) ^ (expected ? std::rotl(*expected, 1) : 0);
      if (policy.terminal && expected.has_value()) break;
    }
    RC_ASSERT(hash(policies, headers) == expected);
  }));
}

TEST_CASE("A42: a call without a hash goes to a random endpoint, the same in all its picks",
          "[spec][lb][ring_hash][A42]") {
  RingHashHarness leaf(kAbc);
  leaf.bring({{"a", 'r'}, {"b", 'r'}, {"c", 'r'}});
  std::map<std::string, int> shares;
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    const std::string answer = leaf.answer({.seed = seed});
    REQUIRE(leaf.answer({.seed = seed}) == answer);
    ++shares[answer];
  }
  REQUIRE(shares.size() == 3);
  for (const auto& [answer, count] : shares)
    CHECK(count == Approx(1'000).margin(250));
}

TEST_CASE("A42: a terminal policy ends the list when there is a hash",
          "[spec][lb][ring_hash][A42]") {
  const TestHeaders headers{{"a", "1"}, {"b", "2"}};
  CHECK(hash({header("a", true), header("b")}, headers) == xx_hash("1"));
  CHECK(hash({header("x", true), header("b")}, headers) == xx_hash("2"));
  CHECK(hash({header("a"), header("x", true), header("b")}, headers) == xx_hash("1"));
  CHECK(hash({header("x", true), header("y", true)}, headers) == std::nullopt);
}

TEST_CASE("A42: a header or channel policy may be terminal", "[spec][xds][parse][A42]") {
  const auto kind = GENERATE(as<std::string>{},
                             "header { header_name: \"h\" }",
                             "filter_state { key: \"io.grpc.channel_id\" }");
  CHECK(hash_policies_of("hash_policy { terminal: true " + kind + " }").at(0).terminal);
  CHECK_FALSE(hash_policies_of("hash_policy { " + kind + " }").at(0).terminal);
}

TEST_CASE("A42: a hash policy of an unsupported type gives no result and is no error",
          "[spec][xds][parse][A42]") {
  const auto other = GENERATE(as<std::string>{},
                              "",
                              "cookie {}",
                              "connection_properties {}",
                              "query_parameter {}",
                              "filter_state { key: \"x\" }",
                              "terminal: true");
  CHECK(hash_policies_of("hash_policy { " + other +
                         " } hash_policy { header { header_name: \"h\" } }") ==
        std::vector<HashPolicy>{{HeaderHash{"h", {}}, false}});
}

TEST_CASE("A42: a header policy hashes the value that route matching sees",
          "[spec][lb][ring_hash][A42]") {
  const TestHeaders headers{{"user", "ann"},
                            {"many", "x"},
                            {"many", "y"},
                            {"empty", ""},
                            {"token-bin", "1"},
                            {"content-type", "text/plain"}};
  CHECK(hash({}, headers) == std::nullopt);
  CHECK(hash({header("user")}, headers) == xx_hash("ann"));
  CHECK(hash({header("many")}, headers) == xx_hash("x,y"));
  CHECK(hash({header("empty")}, headers) == xx_hash(""));
  CHECK(hash({header("absent")}, headers) == std::nullopt);
  CHECK(hash({header("token-bin")}, headers) == std::nullopt);
  CHECK(hash({header("content-type")}, headers) == xx_hash("application/grpc"));
  CHECK(RequestHash({header("user")}, 1).of(nullptr) == std::nullopt);
}

TEST_CASE("A42: a header policy may rewrite the value before it is hashed",
          "[spec][lb][ring_hash][A42]") {
  const TestHeaders headers{{"path", "/shop/ann/shop"}};
  CHECK(hash({rewritten("path", "/shop", "")}, headers) == xx_hash("/ann"));
  CHECK(hash({rewritten("path", "/([a-z]+)/([a-z]+)", "\\2-\\1")}, headers) ==
        xx_hash("ann-shop/shop"));
  CHECK(hash({rewritten("path", "nothing", "x")}, headers) == xx_hash("/shop/ann/shop"));
  CHECK(hash({rewritten("absent", "a", "b")}, headers) == std::nullopt);
}

TEST_CASE(
    "A42: io.grpc.channel_id is one value for all calls of a channel, another for another channel",
    "[spec][lb][ring_hash][A42]") {
  const TestHeaders headers{{"a", "1"}};
  const Hash one = hash({channel()}, headers, 1);
  CHECK(one.has_value());
  CHECK(hash({channel()}, {{"a", "2"}}, 1) == one);
  CHECK(hash({channel()}, headers, 2) != one);
  CHECK(hash({header("a"), channel()}, headers, 1) == joined(xx_hash("1"), *one));
  CHECK(hash({channel(true), header("a")}, headers, 1) == one);
}

// --- "XdsConfigSelector Changes" ---------------------------------------------------------------

TEST_CASE("A42: the hash is XXH64 with seed 0", "[spec][lb][ring_hash][A42]") {
  CHECK(xx_hash("") == 0xef46db3751d8e999ULL);
  CHECK(xx_hash("a") == 0xd24ec4f1a98c6e5bULL);
  CHECK(xx_hash("abc") == 0x44bc2cf5ad770999ULL);
}

TEST_CASE("A42: the config selector computes the hash by the policies of the chosen route",
          "[spec][lb][config_selector][A42]") {
  ForwardAction hashed = to("a");
  hashed.hash_policies = {header("user"), channel()};
  const XdsConfig config =
      config_of({route(exact("/s/Hashed"), hashed), route(prefix(""), to("a"))});
  const auto selector = make_config_selector(config, refs_for(config), 7);
  const TestHeaders headers{{"user", "ann"}};
  const auto select = [&](const char* path) {
    PickArgs args;
    args.path = path;
    args.headers = &headers;
    return std::get<Selection>(selector->select(args)).hash;
  };
  CHECK(select("/s/Hashed") == RequestHash(hashed.hash_policies, 7).of(&headers));
  CHECK(select("/s/Other") == std::nullopt);
}

// --- "Ring Hash LB Policy: xDS API Fields" -----------------------------------------------------

TEST_CASE("A42: lb_policy RING_HASH chooses ring_hash, with or without ring_hash_lb_config",
          "[spec][xds][ring_hash][A42]") {
  for (const char* fields :
       {"lb_policy: RING_HASH", "lb_policy: RING_HASH ring_hash_lb_config {}"}) {
    const auto config = xds::config_of<RingHashConfig>(fields);
    CHECK(config.min_ring_size == 1024);
    CHECK(config.max_ring_size == 8'388'608);
    CHECK(config.request_hash_header.empty());
  }
}

TEST_CASE("A42: ring sizes are those of the Cluster, 1024 and 8M where it has none",
          "[spec][xds][parse][A42]") {
  struct Row {
    std::string sizes;
    std::uint64_t least;
    std::uint64_t most;
  };

  const auto row = GENERATE(values<Row>({
      {"", 1024, 8'388'608},
      {"minimum_ring_size { value: 1 }", 1, 8'388'608},
      {"maximum_ring_size { value: 2048 }", 1024, 2048},
      {"minimum_ring_size { value: 8388608 } maximum_ring_size { value: 8388608 }",
       8'388'608,
       8'388'608},
  }));
  for (const std::string& fields :
       {"lb_policy: RING_HASH ring_hash_lb_config { " + row.sizes + " }",
        xds::list(xds::entry("ring_hash.v3.RingHash", row.sizes)),
        xds::list(xds::entry("ring_hash.v3.RingHash", "hash_function: XX_HASH " + row.sizes))}) {
    CAPTURE(fields);
    const auto config = xds::config_of<RingHashConfig>(fields);
    CHECK(config.min_ring_size == row.least);
    CHECK(config.max_ring_size == row.most);
  }
  CHECK(xds::config_of<RingHashConfig>("lb_policy: RING_HASH").min_ring_size == 1024);
}

TEST_CASE("A42: a size above 8M and a hash function other than XX_HASH are NACKed",
          "[spec][xds][parse][A42]") {
  struct Row {
    std::string fields;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"minimum_ring_size {}", ".minimum_ring_size: must be in [1, 8388608], found 0"},
      {"minimum_ring_size { value: 8388609 }",
       ".minimum_ring_size: must be in [1, 8388608], found 8388609; "
       "LIST.minimum_ring_size: must be at most maximum_ring_size, which is 8388608, found "
       "8388609"},
      {"minimum_ring_size { value: 1 } maximum_ring_size {}",
       ".maximum_ring_size: must be in [1, 8388608], found 0; LIST.minimum_ring_size: must be at "
       "most maximum_ring_size, which is 0, found 1"},
      {"maximum_ring_size { value: 8388609 }",
       ".maximum_ring_size: must be in [1, 8388608], found 8388609"},
      {"minimum_ring_size { value: 9 } maximum_ring_size { value: 8 }",
       ".minimum_ring_size: must be at most maximum_ring_size, which is 8, found 9"},
      {"maximum_ring_size { value: 1023 }",
       ".minimum_ring_size: must be at most maximum_ring_size, which is 1023, found 1024 "
       "(its default)"},
      {"minimum_ring_size { value: 1024 } maximum_ring_size { value: 1023 }",
       ".minimum_ring_size: must be at most maximum_ring_size, which is 1023, found 1024"},
      {"hash_function: MURMUR_HASH_2", ".hash_function: must be XX_HASH, found MURMUR_HASH_2"},
      {"hash_function: 9", ".hash_function: must be XX_HASH, found 9"},
  }));
  const auto at = [&](const std::string& place) {
    std::string error = place + row.error;
    const std::size_t mark = error.find("LIST");
    return mark == std::string::npos ? error : error.replace(mark, 4, place);
  };
  CHECK(xds::error_in(xds::list(xds::entry("ring_hash.v3.RingHash", row.fields))) ==
        at(xds::kValue));
  CHECK(xds::error_in("lb_policy: RING_HASH ring_hash_lb_config { " + row.fields + " }") ==
        at("ring_hash_lb_config"));
}

// --- "Change Child Policy Config Generation in xds_cluster_resolver Policy" --------------------

TEST_CASE("A42: ROUND_ROBIN stands below a policy that picks localities, RING_HASH does not",
          "[spec][xds][ring_hash][A42]") {
  const auto policy_of = [](const std::string& fields) {
    return xds::value_of<Cluster>(xds::parse(fields)).lb_policy;
  };
  CHECK(same_config(policy_of("lb_policy: ROUND_ROBIN"),
                    make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{})})));
  CHECK(same_config(policy_of("lb_policy: RING_HASH"), make_lb_config(RingHashConfig{})));
}

// The document's example.
TEST_CASE("A42: an endpoint weighs its own weight times its locality's",
          "[spec][lb][endpoint_weights][A42]") {
  Endpoints endpoints;
  endpoints.priorities = {{{locality(3, {{"A", 2}, {"B", 1}}), locality(2, {{"C", 3}, {"D", 1}})}}};
  std::vector<std::pair<std::string, std::uint64_t>> weights;
  for (const WeighedEndpoint& one : weigh(endpoints, WeightRule::kProduct))
    weights.emplace_back(one.endpoint->addresses.front().str(), one.weight);
  CHECK(weights == decltype(weights){{"A", 6}, {"B", 3}, {"C", 6}, {"D", 2}});
}

TEST_CASE("A42: all localities share one ring, by the weights that A113 normalises",
          "[spec][lb][ring_hash][A42][A113]") {
  Endpoints slice;
  slice.priorities.push_back({{locality(3, {{"a", 2}, {"b", 1}}), locality(1, {{"c", 7}})}});
  RingHashHarness leaf;
  leaf.list(slice);
  leaf.bring({{"a", 'r'}, {"b", 'r'}, {"c", 'r'}});
  std::map<std::string, int> shares;
  constexpr int kCalls = 20'000;
  for (std::uint64_t call = 0; call < kCalls; ++call)
    ++shares[leaf.answer(draw(call, Salt::kDrop))];
  // A locality's share times the endpoint's share within it: 3/4 · 2/3, 3/4 · 1/3 and 1/4 · 1.
  CHECK(shares["complete a"] == Approx(kCalls * 0.50).epsilon(0.15));
  CHECK(shares["complete b"] == Approx(kCalls * 0.25).epsilon(0.2));
  CHECK(shares["complete c"] == Approx(kCalls * 0.25).epsilon(0.2));
}

// --- "ring_hash_experimental LB policy" --------------------------------------------------------

TEST_CASE("A42: a new address list is a new ring in a new picker", "[spec][lb][ring_hash][A42]") {
  RingHashHarness leaf(Strings{"a", "b"});
  const PickerPtr before = leaf.published.back().picker;
  const std::uint64_t hash = xx_hash("c_0");
  CHECK(leaf.answer(hash) != "queue, connect c");
  leaf.list(kAbc);
  leaf.settle();
  CHECK(leaf.published.back().picker != before);
  CHECK(leaf.answer(hash) == "queue, connect c");
}

TEST_CASE("A42: every change of an endpoint's state is a new picker that has the new state",
          "[spec][lb][ring_hash][A42]") {
  RingHashHarness leaf(kAbc);
  PickerPtr last = leaf.published.back().picker;
  const auto changed = [&] {
    leaf.settle();
    const PickerPtr now = leaf.published.back().picker;
    return std::exchange(last, now) != now;
  };
  leaf.bring({{"b", 'r'}});
  CHECK(changed());
  leaf.want("a");  // The policy stays READY: only the state of "a" is news.
  CHECK(changed());
  CHECK(leaf.answer(kHash) == "queue");
  leaf.idle("a");
  leaf.ready("a");
  CHECK(changed());
  CHECK(leaf.answer(kHash) == "complete a");
  leaf.idle("a");
  CHECK(changed());
  CHECK(leaf.answer(kHash) == "queue, connect a");
}

TEST_CASE("A42: another ring size is another ring of the same endpoints",
          "[spec][lb][ring_hash][A42]") {
  RingHashHarness leaf(kAbc);
  const auto reached = [&] {
    leaf.list(kAbc);
    leaf.settle();
    std::set<std::string> asked;
    for (std::uint64_t call = 0; call < 200; ++call) {
      const PickResult result = leaf.ask({.hash = draw(call, Salt::kDrop)});
      if (result.ask.has_value()) asked.insert(result.ask->address.str());
    }
    return asked;
  };
  leaf.config.min_ring_size = leaf.config.max_ring_size = 1;
  CHECK(reached() == std::set<std::string>{"a"});
  leaf.config.min_ring_size = leaf.config.max_ring_size = 1024;
  CHECK(reached() == std::set<std::string>{"a", "b", "c"});
}

// --- "LB Policy Config" ------------------------------------------------------------------------

TEST_CASE("A42: ring sizes above the client's cap count as the cap, which is 4096 by default",
          "[spec][lb][ring_hash][A42]") {
  struct Row {
    std::uint64_t min;
    std::uint64_t max;
    std::optional<std::uint64_t> cap;
    std::uint64_t points;
  };

  const auto row = GENERATE(values<Row>({
      {1024, 8'388'608, std::nullopt, 1024},
      {4096, 8'388'608, std::nullopt, 4096},
      {8'388'608, 8'388'608, std::nullopt, 4096},
      {8192, 8192, std::nullopt, 4096},
      {8192, 8'388'608, 16'384, 8192},  // A client with a higher cap.
      {8'388'608, 8'388'608, 16'384, 16'384},
      {1024, 8'388'608, 100, 100},
      {1024, 512, std::nullopt, 512},  // max_ring_size outranks min_ring_size.
  }));
  CAPTURE(row.min, row.max);
  PolicyOptions options;
  if (row.cap) options.ring_size_cap = *row.cap;
  RingHashHarness leaf(options);
  leaf.config.min_ring_size = row.min;
  leaf.config.max_ring_size = row.max;
  leaf.list(Strings{"a", "b"});
  CHECK(points_of(leaf) == row.points);
}

TEST_CASE("A42: with more endpoints than the cap the ring has as many endpoints as the cap",
          "[spec][lb][ring_hash][A42]") {
  PolicyOptions options;
  options.ring_size_cap = 2;
  RingHashHarness leaf(options);
  leaf.config.min_ring_size = 1024;
  leaf.list(Strings{"a", "b", "c", "d"});
  std::set<std::string> asked;
  for (std::uint64_t call = 0; call < 200; ++call) {
    const PickResult result = leaf.ask({.hash = draw(call, Salt::kDrop)});
    if (result.ask.has_value()) asked.insert(result.ask->address.str());
  }
  CHECK(asked == std::set<std::string>{"a", "c"});
}

// --- "Ring Construction" -----------------------------------------------------------------------

TEST_CASE(
    "A42: an entry's hash is that of the address and its number, and entries are sorted by hash",
    "[spec][lb][ring_hash][A42]") {
  const Built built({"10.0.0.1:443", "pod-7"}, {}, {16, 16});
  std::set<std::uint64_t> expected;
  for (const std::string& name : built.keys) {
    for (int number = 0; number < 8; ++number) {
      const std::uint64_t hash = xx_hash(absl::StrCat(name, "_", number));
      expected.insert(hash);
      CHECK(built.at(hash) == name);
    }
  }
  // A hash just past a point belongs to the next point. After the last point comes the first.
  std::uint64_t before = *expected.rbegin();
  for (const std::uint64_t hash : expected) {
    CHECK(built.ring.find(before + 1) == built.ring.find(hash));
    before = hash;
  }
}

TEST_CASE(
    "A42: the ring has min_ring_size entries or the fewest more that give the lightest a whole "
    "number",
    "[spec][lb][ring_hash][A42]") {
  struct Row {
    const char* what;
    Weights weights;
    HashRing::Sizes sizes;
    std::vector<std::size_t> points;
  };

  const auto row = GENERATE(values<Row>({
      {"one", {7}, {1024, 4096}, {1024}},
      {"two equal", {1, 1}, {1024, 4096}, {512, 512}},
      {"three equal: rounded up", {5, 5, 5}, {1024, 4096}, {342, 342, 342}},
      {"one to three", {1, 3}, {100, 4096}, {25, 75}},
      {"one to two: rounded up for the lightest", {1, 2}, {100, 4096}, {34, 68}},
      {"cut at the largest size", {1, 1, 2}, {1024, 8}, {2, 2, 4}},
      {"one point each", {1, 1, 1}, {1, 4}, {1, 1, 1}},
      {"fractions are carried over", {1, 1, 1, 1}, {1, 2}, {1, 0, 1, 0}},
  }));
  DYNAMIC_SECTION(row.what) {
    const Built built(addresses(row.weights.size()), row.weights, row.sizes);
    CHECK(built.points() == row.points);
  }
}

TEST_CASE("A42: entries are in proportion to weights", "[spec][lb][ring_hash][A42][A113][S5]") {
  CHECK(test::holds("points in proportion", 1'000, [] {
    const auto weights = *rc::gen::suchThat(
        rc::gen::container<Weights>(rc::gen::inRange<std::uint64_t>(1, 1'000'000)),
        [](const Weights& some) { return !some.empty() && some.size() <= 40; });
    const auto least = *rc::gen::inRange<std::uint64_t>(1, 2048);
    const HashRing::Sizes sizes{least, *rc::gen::inRange<std::uint64_t>(least, 4097)};
    const Built built(addresses(weights.size()), weights, sizes);
    RC_ASSERT(built.ring.size() >= 1);
    RC_ASSERT(built.ring.size() <= sizes.max + 1);  // Rounding may add one entry, as in gRPC.
    double sum = 0;
    for (const std::uint64_t weight : weights)
      sum += static_cast<double>(weight);
    const auto points = built.points();
    const auto size = static_cast<double>(built.ring.size());
    for (std::size_t at = 0; at < weights.size(); ++at) {
      const double share = size * static_cast<double>(weights[at]) / sum;
      RC_ASSERT(std::abs(static_cast<double>(points[at]) - share) <= 2.0);
    }
  }));
}

TEST_CASE("A42: the hashes of calls are shared by weight", "[spec][lb][ring_hash][A42][S5]") {
  CHECK(test::holds("keys by weight", 1'000, [] {
    const auto count = *rc::gen::inRange<std::size_t>(2, 10);
    const auto weights = *rc::gen::container<Weights>(count, rc::gen::inRange<std::uint64_t>(1, 9));
    const Built built(addresses(count), weights, {2048, 4096});
    constexpr int kKeys = 2'000;
    const auto first = *rc::gen::arbitrary<std::uint32_t>();
    std::map<std::string, int> keys;
    for (int number = 0; number < kKeys; ++number)
      ++keys[built.at(key(first + static_cast<std::uint64_t>(number)))];
    double sum = 0;
    for (const std::uint64_t weight : weights)
      sum += static_cast<double>(weight);
    for (std::size_t at = 0; at < count; ++at) {
      // The share of n points is a sum of n exponential arcs: its relative deviation is 1/√n.
      const double share = static_cast<double>(weights[at]) / sum;
      const double deviation = 6 * share / std::sqrt(share * 2048) + 6 * std::sqrt(share / kKeys);
      RC_ASSERT(std::abs(keys[built.keys[at]] / double{kKeys} - share) <= deviation);
    }
  }));
}

TEST_CASE("A42: an endpoint that leaves moves only the hashes that were its own",
          "[spec][lb][ring_hash][A42][S5]") {
  CHECK(test::holds("only its own keys move", 1'000, [] {
    constexpr std::uint64_t kPoints = 64;
    const auto count = *rc::gen::inRange<std::size_t>(2, 30);
    const auto leaver = *rc::gen::inRange<std::size_t>(0, count);
    const auto all = addresses(count);
    auto rest = all;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(leaver));
    const Built before(all, {}, {kPoints * count, kPoints * count});
    const Built after(rest, {}, {kPoints * (count - 1), kPoints * (count - 1)});
    constexpr int kKeys = 1'000;
    int moved = 0;
    for (std::uint64_t number = 0; number < kKeys; ++number) {
      const std::string& was = before.at(key(number));
      if (was == after.at(key(number))) continue;
      RC_ASSERT(was == all[leaver]);
      ++moved;
    }
    const double share = 1.0 / static_cast<double>(count);
    RC_ASSERT(moved / double{kKeys} <= share * (1 + 6 / std::sqrt(double{kPoints})) + 0.02);
  }));
}

// --- "Subchannel State Handling" ---------------------------------------------------------------

TEST_CASE("A42: endpoints start IDLE, and a pick that chooses one connects it",
          "[spec][lb][ring_hash][A42][A61]") {
  RingHashHarness leaf(kAbc);
  CHECK(leaf.state() == kIdle);
  CHECK(leaf.held.empty());
  CHECK(leaf.applied == 1);
  CHECK(leaf.answer(kHash) == "queue, connect a");
  CHECK(leaf.answer(kHash) == "queue");  // The picker asks for the connection once.

  leaf.want("a");
  CHECK(leaf.held == std::set<std::string>{"a"});
  CHECK(leaf.state() == kConnecting);
  CHECK(leaf.answer(kHash) == "queue");
  leaf.idle("a");
  CHECK(leaf.connects == Strings{"a"});
  leaf.ready("a");
  CHECK(leaf.state() == kReady);
  CHECK(leaf.answer(kHash) == "complete a");
  CHECK(leaf.held == std::set<std::string>{"a"});
}

TEST_CASE("A42: an endpoint that failed counts as failed until it is READY",
          "[spec][lb][ring_hash][A42][A62]") {
  RingHashHarness leaf({"a"});
  leaf.bring({{"a", 'f'}});
  CHECK(leaf.state() == kFailed);
  leaf.connects.clear();
  leaf.idle("a");  // The back-off is over.
  CHECK(leaf.connects == Strings{"a"});
  leaf.connecting("a");
  leaf.settle();
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.answer(kHash).rfind("fail: ", 0) == 0);
  leaf.ready("a");
  CHECK(leaf.state() == kReady);
}

TEST_CASE("A42: an endpoint that loses its connection is IDLE until a pick wants it",
          "[spec][lb][ring_hash][A42][A61]") {
  RingHashHarness leaf(kAbc);
  leaf.bring({{"a", 'r'}});
  leaf.connects.clear();
  leaf.idle("a");
  CHECK(leaf.state() == kIdle);
  CHECK(leaf.held.empty());
  CHECK(leaf.connects.empty());
  CHECK(leaf.answer(kHash) == "queue, connect a");
  leaf.want("a");
  CHECK(leaf.held == std::set<std::string>{"a"});
}

// --- "Aggregated Connectivity State" -----------------------------------------------------------

// Also checks that the policy connects one IDLE endpoint without a pick, if an endpoint has failed
// and no other is READY or CONNECTING.
TEST_CASE("A42: the six rules of the aggregated state, for all states of one to four endpoints",
          "[spec][lb][ring_hash][A42][B3]") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    std::string states(count, 'i');
    const auto next = [&states] {
      const std::string letters = "icrf";
      for (char& state : states) {
        const std::size_t at = letters.find(state) + 1;
        state = letters[at % letters.size()];
        if (at < letters.size()) return true;
      }
      return false;
    };
    do {
      CAPTURE(states);
      Strings names;
      std::map<std::string, char> wanted;
      for (std::size_t at = 0; at < count; ++at) {
        names.push_back(std::to_string(at));
        if (states[at] != 'i') wanted[names.back()] = states[at];
      }
      RingHashHarness leaf(names);
      leaf.bring(wanted);

      const auto of = [&](char state) { return std::ranges::count(states, state); };
      const auto failed = of('f');
      const bool unasked = of('r') == 0 && of('c') == 0 && failed > 0 && of('i') > 0;
      CHECK(leaf.held.size() == count - static_cast<std::size_t>(of('i')) + (unasked ? 1 : 0));
      ConnectivityState expected = kFailed;
      if (of('r') > 0) {
        expected = kReady;
      } else if (failed >= 2) {
        expected = kFailed;
      } else if (of('c') > 0 || unasked) {
        expected = kConnecting;
      } else if (failed == 1 && count > 1) {
        expected = kConnecting;
      } else if (of('i') > 0) {
        expected = kIdle;
      }
      CHECK(leaf.state() == expected);
    } while (next());
  }
}

TEST_CASE("A42: after a failure the policy connects one endpoint after another until one is READY",
          "[spec][lb][ring_hash][A42][B3]") {
  RingHashHarness leaf({"a", "b", "c", "d"});
  std::set<std::string> known;
  // The endpoint that is held and was not before.
  const auto next = [&] {
    std::vector<std::string> fresh;
    std::ranges::set_difference(leaf.held, known, std::back_inserter(fresh));
    REQUIRE(fresh.size() == 1);
    known = leaf.held;
    return fresh.front();
  };
  leaf.want("b");
  const std::string first = next();
  leaf.idle(first);
  leaf.fail(first);
  CHECK(leaf.state() == kConnecting);
  const std::string second = next();
  leaf.idle(second);
  leaf.fail(second);
  CHECK(leaf.state() == kFailed);
  const std::string third = next();
  leaf.idle(third);
  leaf.ready(third);
  CHECK(leaf.state() == kReady);
  leaf.fail(second);  // No other endpoint is connected while one is READY.
  CHECK(leaf.held == known);
  leaf.idle(third);
  CHECK(leaf.state() == kFailed);
  next();  // Another one, again.
}

TEST_CASE("A42: an endpoint that fails at once does not stop the search",
          "[spec][lb][ring_hash][A42]") {
  RingHashHarness leaf({"a", "b,x", "c"});
  // Address "x" is already held, and in back-off, for endpoint "a,x" when endpoint "x" needs it.
  leaf.list(Strings{"a,x", "x", "c"});
  leaf.want("a");
  leaf.idle("a");
  leaf.idle("x");
  leaf.fail("a");
  leaf.fail("x");
  CHECK(leaf.held == std::set<std::string>{"a", "c", "x"});
}

// --- "Picker Behavior" -------------------------------------------------------------------------

TEST_CASE("A42: a pick takes the first endpoint of the ring from its hash on that has not failed",
          "[spec][lb][ring_hash][A42][A61]") {
  struct Row {
    const char* states;  // The states of a, b, c, in ring order for the pick.
    const char* answer;
  };

  const auto row = GENERATE(values<Row>({
      {"rii", "complete a"},
      {"irr", "queue, connect a"},
      {"crr", "queue"},
      {"frf", "complete b"},
      {"fcr", "queue"},
      {"fir", "queue, connect b"},
      {"ffr", "complete c"},
      {"ffc", "queue"},
      {"rff", "complete a"},
  }));
  CAPTURE(row.states);
  std::map<std::string, char> states;
  for (std::size_t at = 0; at < 3; ++at) {
    if (row.states[at] != 'i') states[kAbc[at]] = row.states[at];
  }
  RingHashHarness leaf(kAbc);
  leaf.bring(states);
  CHECK(leaf.answer(kHash) == row.answer);
}

TEST_CASE("A42: a pick fails when all endpoints have failed, and says why",
          "[spec][lb][ring_hash][A42][A61]") {
  RingHashHarness leaf(kAbc);
  leaf.bring({{"a", 'f'}, {"b", 'f'}, {"c", 'f'}});
  const std::string why = "ring_hash: all 3 endpoints failed; last error: c: refused by c";
  CHECK(leaf.answer(kHash) == "fail: " + why);
  CHECK(leaf.answer(PickArgs{}) == "fail: " + why);
  CHECK(leaf.published.back().status == absl::UnavailableError(why));
}

TEST_CASE("A42: a queued call chooses the same endpoint in every pick",
          "[spec][lb][ring_hash][A42]") {
  RingHashHarness leaf(kAbc);
  CHECK(leaf.answer(kHash) == "queue, connect a");
  leaf.bring({{"b", 'r'}, {"c", 'r'}});  // "b" and "c" are READY before "a".
  CHECK(leaf.answer(kHash) == "queue, connect a");
  leaf.bring({{"a", 'r'}});
  CHECK(leaf.answer(kHash) == "complete a");
}

TEST_CASE("A42: every pick is that of the document's pseudo-code, for any states and hashes",
          "[spec][lb][ring_hash][A42][A61][A76][S5]") {
  CHECK(test::holds("picks as in the documents", 1'000, [] {
    const auto count = *rc::gen::inRange(1, 7);
    const auto letters = *rc::gen::container<std::string>(static_cast<std::size_t>(count),
                                                          rc::gen::element('i', 'c', 'r', 'f'));
    Strings names;
    std::map<std::string, char> states;
    for (int at = 0; at < count; ++at) {
      names.push_back(std::to_string(at));
      if (letters[static_cast<std::size_t>(at)] != 'i')
        states[names.back()] = letters[static_cast<std::size_t>(at)];
    }
    RingHashHarness leaf(names);
    leaf.bring(states);
    for (const std::string& held : leaf.held) {
      if (!states.contains(held)) states[held] = 'c';  // The policy connects it without a pick.
    }
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto hash = *rc::gen::arbitrary<std::uint64_t>();
    const auto matches = [](const std::string& answer, const std::string& expected) {
      return expected == "fail" ? answer.rfind("fail: ", 0) == 0 : answer == expected;
    };
    const std::string by_chance =
        walk(order_from(names, draw(seed, Salt::kRequestHash)), states, true);
    RC_ASSERT(matches(leaf.answer({.seed = seed}), by_chance));
    leaf.bring({});
    leaf.list(names);
    RingHashHarness again(names);
    again.bring(states);
    RC_ASSERT(matches(again.answer(hash), walk(order_from(names, hash), states, false)));
  }));
}

}  // namespace signalbox::a42_ring_hash_test
