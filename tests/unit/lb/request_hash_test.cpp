// SPDX-License-Identifier: Apache-2.0
#include "lb/route/request_hash.hpp"

#include <bit>

#include <catch2/catch.hpp>

#include "lb/route/config_selector.hpp"
#include "lb/xx_hash.hpp"
#include "tests/support/property.hpp"
#include "tests/support/route_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using Hash = std::optional<std::uint64_t>;

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

}  // namespace

TEST_CASE("request_hash: what each policy gives", "[lb][ring_hash][A42]") {
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

TEST_CASE("request_hash: a header may be rewritten first", "[lb][ring_hash][A42]") {
  const TestHeaders headers{{"path", "/shop/ann/shop"}};
  CHECK(hash({rewritten("path", "/shop", "")}, headers) == xx_hash("/ann"));
  CHECK(hash({rewritten("path", "/([a-z]+)/([a-z]+)", "\\2-\\1")}, headers) ==
        xx_hash("ann-shop/shop"));
  CHECK(hash({rewritten("path", "nothing", "x")}, headers) == xx_hash("/shop/ann/shop"));
  CHECK(hash({rewritten("absent", "a", "b")}, headers) == std::nullopt);
}

TEST_CASE("request_hash: results are joined in order", "[lb][ring_hash][A42]") {
  const TestHeaders headers{{"a", "1"}, {"b", "2"}, {"c", "3"}};
  const std::uint64_t a = xx_hash("1");
  const std::uint64_t b = xx_hash("2");
  const std::uint64_t c = xx_hash("3");
  CHECK(hash({header("a"), header("b")}, headers) == joined(a, b));
  CHECK(hash({header("b"), header("a")}, headers) == joined(b, a));
  CHECK(hash({header("a"), header("b"), header("c")}, headers) == joined(*joined(a, b), c));
  // Those without a result turn nothing.
  CHECK(hash({header("x"), header("a"), header("x"), header("b")}, headers) == joined(a, b));
}

TEST_CASE("request_hash: a terminal policy ends the list, if there is a result",
          "[lb][ring_hash][A42]") {
  const TestHeaders headers{{"a", "1"}, {"b", "2"}};
  CHECK(hash({header("a", true), header("b")}, headers) == xx_hash("1"));
  CHECK(hash({header("x", true), header("b")}, headers) == xx_hash("2"));
  CHECK(hash({header("a"), header("x", true), header("b")}, headers) == xx_hash("1"));
  CHECK(hash({header("x", true), header("y", true)}, headers) == std::nullopt);
}

TEST_CASE("request_hash: a channel has one hash, another channel another", "[lb][ring_hash][A42]") {
  const TestHeaders headers{{"a", "1"}};
  const Hash one = hash({channel()}, headers, 1);
  CHECK(one.has_value());
  CHECK(hash({channel()}, {{"a", "2"}}, 1) == one);
  CHECK(hash({channel()}, headers, 2) != one);
  CHECK(hash({header("a"), channel()}, headers, 1) == joined(xx_hash("1"), *one));
  CHECK(hash({channel(true), header("a")}, headers, 1) == one);
}

TEST_CASE("config_selector: gives a call the hash of its route", "[lb][config_selector][A42]") {
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

TEST_CASE("request_hash: is the same in every compilation, and follows the rule",
          "[lb][ring_hash][A42][S5]") {
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

}  // namespace signalbox::lb
