// SPDX-License-Identifier: Apache-2.0
//
// gRFC A76, "Improvements to the Ring Hash LB Policy", in the document's order.
//
// Not here:
//   - The document fails the pick of a call without a hash when request_hash_header is empty. Here
//     the config selector leaves such a call without a hash, and the picker draws one (decision
//     32).
//   - GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY is not read: request_hash_header counts
//     where a configuration has it.
//   - Ring hash without xDS: signalbox has no service config. A control plane sends the field in a
//     TypedStruct of type ring_hash_experimental.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/xx_hash.hpp"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "tests/support/route_fixture.hpp"
#include "tests/unit/lb/ring_hash_harness.hpp"
#include "tests/unit/xds/lb_policy_text.hpp"
#include "xds/parse/endpoints.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox {
namespace {

using namespace lb;
using testing::TestHeaders;
using Strings = std::vector<std::string>;

// The hash key of the only endpoint of an EDS resource. The endpoint has this metadata.
std::string hash_key(const std::string& metadata, const xds::ParseOptions& options = {}) {
  const auto received = xds::parse_endpoints(
      xds::serialise<envoy::config::endpoint::v3::ClusterLoadAssignment>(
          "cluster_name: \"orders\" endpoints { locality { zone: \"z\" } load_balancing_weight { "
          "value: 1 } lb_endpoints { endpoint { address { socket_address { address: \"10.0.0.1\" "
          "port_value: 80 } } } " +
          metadata + " } }"),
      options);
  return xds::value_of<Endpoints>(received)
      .priorities.at(0)
      .localities.at(0)
      ->endpoints.at(0)
      .hash_key;
}

std::string metadata(const std::string& filter, const std::string& value) {
  return "metadata { filter_metadata { key: \"" + filter +
         "\" value { fields { key: \"hash_key\" value { " + value + " } } } } }";
}

}  // namespace

// --- "Explicitly setting the request hash key" -------------------------------------------------

TEST_CASE("A76: ring_hash_experimental has a field request_hash_header",
          "[spec][xds][parse][A52][A76]") {
  const auto parsed = [](const std::string& fields) {
    return xds::config_of<RingHashConfig>(
        xds::list(xds::typed_struct("ring_hash_experimental", fields)));
  };
  const auto field = [](const std::string& name, const std::string& value) {
    return "fields { key: \"" + name + "\" value { " + value + " } } ";
  };
  CHECK(parsed("").request_hash_header.empty());
  CHECK(parsed("").min_ring_size == 1024);
  CHECK(parsed("").max_ring_size == 4096);  // A42's own default; that of Envoy's fields is larger.
  CHECK(parsed(field("requestHashHeader", "string_value: \"\"")).request_hash_header.empty());
  const auto all = parsed(field("requestHashHeader", "string_value: \"X-Session_1.a\"") +
                          field("minRingSize", "number_value: 8") +
                          field("maxRingSize", "number_value: 8388608"));
  CHECK(all.request_hash_header == "x-session_1.a");
  CHECK(all.min_ring_size == 8);
  CHECK(all.max_ring_size == 8'388'608);
  // A runtime without ring_hash passes the entry over. An entry without a structure is passed over,
  // too.
  const std::string entries = xds::typed_struct("ring_hash_experimental", "") + xds::kRoundRobin;
  CHECK(same_config(
      xds::value_of<Cluster>(xds::parse(xds::list(entries), xds::without_policies())).lb_policy,
      make_lb_config(RoundRobinConfig{})));
  CHECK(same_config(xds::value_of<Cluster>(
                        xds::parse(xds::list(
                            xds::any("type_url: \"type.googleapis.com/ring_hash_experimental\"") +
                            xds::kRoundRobin)))
                        .lb_policy,
                    make_lb_config(RoundRobinConfig{})));
}

TEST_CASE("A76: a request_hash_header that is no header name, or a binary header, is rejected",
          "[spec][xds][parse][A42][A76]") {
  struct Row {
    std::string name;
    std::string value;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"requestHashHeader",
       "string_value: \"trace-BIN\"",
       "must not be a binary header (-bin), found \"trace-bin\""},
      {"requestHashHeader",
       "string_value: \"two words\"",
       "must be the name of a header, found \"two words\""},
      {"requestHashHeader",
       "string_value: \":path\"",
       "must be the name of a header, found \":path\""},
      {"requestHashHeader", "number_value: 1", "must be the name of a header, found 1.0"},
      {"requestHashHeader",
       "list_value { values { string_value: \"a\" } values { bool_value: true } }",
       "must be the name of a header, found [\"a\",true]"},
      {"minRingSize", "number_value: 0", "must be a whole number in [1, 8388608], found 0.0"},
      {"minRingSize", "number_value: 1.5", "must be a whole number in [1, 8388608], found 1.5"},
      {"maxRingSize",
       "number_value: 8388609",
       "must be a whole number in [1, 8388608], found 8388609.0"},
      {"maxRingSize", "string_value: \"8\"", "must be a whole number in [1, 8388608], found \"8\""},
  }));
  CHECK(xds::error_in(xds::list(xds::typed_struct(
            "ring_hash_experimental",
            "fields { key: \"" + row.name + "\" value { " + row.value + " } }"))) ==
        xds::kValue + "." + row.name + ": " + row.error);
  CHECK(xds::error_in(xds::list(
            xds::typed_struct("ring_hash_experimental",
                              "fields { key: \"maxRingSize\" value { number_value: 8 } }"))) ==
        xds::kValue +
            ".minRingSize: must be at most maxRingSize, which is 8, found 1024 (its default)");
}

TEST_CASE("A76: the header's values, joined by commas, are the request's hash key",
          "[spec][lb][ring_hash][A76]") {
  RingHashHarness leaf(kAbc, by_header("session"));
  leaf.bring({{"a", 'r'}, {"b", 'r'}, {"c", 'r'}});
  const auto reaches = [&](const TestHeaders& headers, std::uint64_t hash) {
    return leaf.answer({.headers = &headers, .seed = 1, .hash = hash});
  };
  const auto owner = [&](absl::string_view key) {
    return "complete " + order_from(kAbc, xx_hash(key)).front();
  };
  const std::string by_chance = "complete " + order_from(kAbc, draw(1, Salt::kRequestHash)).front();
  for (std::uint64_t hash = 0; hash < 5; ++hash) {
    const std::uint64_t other = draw(hash, Salt::kDrop);
    for (const char* value : {"1", "2", "3", "4"})
      CHECK(reaches({{"session", value}}, other) == owner(value));
    CHECK(reaches({{"session", "x"}, {"session", "y"}}, other) == owner("x,y"));
    CHECK(reaches({{"session", ""}}, other) == by_chance);
    CHECK(reaches({{"other", "1"}}, other) == by_chance);
    CHECK(leaf.answer({.seed = 1, .hash = other}) == by_chance);
  }
}

TEST_CASE("A76: with a random hash a pick takes the first READY endpoint and connects at most one",
          "[spec][lb][ring_hash][A76]") {
  struct Row {
    const char* states;
    const char* answer;
  };

  const auto row = GENERATE(values<Row>({
      {"rii", "complete a"},
      {"iir", "complete c, connect a"},
      {"fir", "complete c, connect b"},
      {"iic", "queue"},
      {"icr", "complete c"},  // One endpoint is already CONNECTING.
      {"iii", "queue, connect a"},
      {"fcf", "queue"},
  }));
  CAPTURE(row.states);
  RingHashHarness leaf(kAbc);
  std::map<std::string, char> states;
  for (std::size_t at = 0; at < 3; ++at) {
    if (row.states[at] != 'i') states[kAbc[at]] = row.states[at];
  }
  leaf.bring(states);
  std::uint64_t seed = 0;
  while (order_from(kAbc, draw(seed, Salt::kRequestHash)) != kAbc)
    ++seed;
  CHECK(leaf.answer({.seed = seed}) == row.answer);
}

TEST_CASE("A76: one call without the header takes at most one endpoint out of IDLE at a time",
          "[spec][lb][ring_hash][A76]") {
  RingHashHarness leaf(kAbc, by_header("session"));
  std::uint64_t seed = 0;
  while (order_from(kAbc, draw(seed, Salt::kRequestHash)) != kAbc)
    ++seed;
  const PickArgs call{.seed = seed};
  CHECK(leaf.answer(call) == "queue, connect a");
  leaf.want("a");
  leaf.settle();
  CHECK(leaf.answer(call) == "queue");  // "a" is CONNECTING, so the pick does not connect "b".
  leaf.idle("a");
  leaf.connecting("a");
  leaf.fail("a");  // The policy itself connects "b" now (A61).
  leaf.settle();
  CHECK(leaf.answer(call) == "queue");
  CHECK(leaf.held.size() == 2);
}

TEST_CASE("A76: a call without the header fails when all endpoints have failed",
          "[spec][lb][ring_hash][A76]") {
  RingHashHarness leaf(kAbc, by_header("session"));
  leaf.bring({{"a", 'f'}, {"b", 'f'}, {"c", 'f'}});
  CHECK(leaf.answer(PickArgs{.seed = 1}).starts_with("fail: ring_hash: all 3 endpoints failed"));
}

// --- "Explicitly setting the endpoint hash key" ------------------------------------------------

TEST_CASE("A76: an endpoint's place on the ring is the hash of its hash_key, and follows the key",
          "[spec][lb][ring_hash][A76]") {
  const auto keyed = [](const char* address) {
    Endpoints slice = *slice_of({address, "b", "c"});
    auto locality = *slice.priorities[0].localities[0];
    locality.endpoints[0].hash_key = "pod-1";
    slice.priorities[0].localities[0] = std::make_shared<const Locality>(std::move(locality));
    return slice;
  };
  RingHashHarness leaf;
  leaf.list(keyed("a"));
  const std::uint64_t hash = xx_hash("pod-1_0");
  CHECK(leaf.answer(hash) == "queue, connect a");
  leaf.list(keyed("a2"));
  leaf.settle();
  CHECK(leaf.answer(hash) == "queue, connect a2");

  // A new hash key moves the same address to another place on the ring.
  RingHashHarness plain(kAbc);
  CHECK(plain.answer(xx_hash("a_0")) == "queue, connect a");
  plain.list(keyed("a"));
  plain.settle();
  CHECK(plain.answer(hash) == "queue, connect a");
}

TEST_CASE("A76: without a hash_key the first address is hashed", "[spec][lb][ring_hash][A76]") {
  RingHashHarness leaf(Strings{"a,x", "b,y"});
  CHECK(leaf.answer(xx_hash("a_0")) == "queue, connect a");
  CHECK(leaf.answer(xx_hash("b_0")) == "queue, connect b");
}

TEST_CASE("A76: hash_key is the field of that name in the endpoint's envoy.lb metadata",
          "[spec][xds][parse][A76]") {
  CHECK(hash_key("") == "");
  CHECK(hash_key("metadata {}") == "");
  CHECK(hash_key(metadata("envoy.lb", "string_value: \"k\"")) == "k");
  CHECK(hash_key(metadata("envoy.lb", "number_value: 1")) == "");
  CHECK(hash_key(metadata("envoy.other", "string_value: \"k\"")) == "");
}

// --- "Temporary environment variable protection" -----------------------------------------------

TEST_CASE("A76: GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT=true ignores hash_key",
          "[spec][xds][parse][A76]") {
  const auto in = [](const char* value) {
    return xds::parse_options_from(
        [&](const std::string& name) {
          return name == "GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT" ? value : nullptr;
        },
        /*trusted_server=*/false);
  };
  const std::string keyed = metadata("envoy.lb", "string_value: \"k\"");
  CHECK(hash_key(keyed, in(nullptr)) == "k");
  CHECK(hash_key(keyed, in("false")) == "k");
  CHECK(hash_key(keyed, in("true")) == "");
}

}  // namespace signalbox
