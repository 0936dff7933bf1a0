// SPDX-License-Identifier: Apache-2.0
#include "lb/session/session.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "tests/support/session_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

CookieSealPtr seal_of(char letter) {
  SealKey key{};
  key.fill(static_cast<unsigned char>(letter));
  return std::make_shared<const CookieSeal>(SealKeys{key});
}

TEST_CASE("session: keeps the texts of its cookie, short and long", "[lb][session]") {
  // The text that a Session copies is the name with the attributes, "; HttpOnly", and the cookie.
  const auto name_size = GENERATE(1, 45, 46, 47, 158, 159, 300);
  const auto host_count = GENERATE(1, 3, 7, 8);
  const std::string name(static_cast<std::size_t>(name_size), 'n');
  const std::string hosts = absl::StrJoin(
      std::vector<std::string>(static_cast<std::size_t>(host_count), "10.0.0.1:80"), ",");
  const SessionTerms terms;
  Session session;
  session.terms = &terms;
  {
    const std::string value = base64(hosts);
    const CompiledCookie config(SessionCookie{name, "", {}}, /*strict=*/false);
    session.begin(config, FoundCookie{value});
    session.keep();
  }
  CHECK(session.name() == name);
  // The Session counts the memory of longer texts than it has room for itself (184 bytes).
  const std::size_t texts = name.size() + 10 + base64(hosts).size();
  if (texts > 184) CHECK(session.memory() >= texts);
  CHECK(session.read() == hosts);
}

// Two endpoints of the cluster "a".
struct TwoBackends : SessionFixture {
  TwoBackends() {
    add("a", "10.0.0.1:80");
    add("a", "10.0.0.2:80");
    configure(to("a"), session_by("s"));
  }

  const std::string first = "s=" + base64("10.0.0.1:80;a");
  const std::string second = "s=" + base64("10.0.0.2:80;a");
};

TEST_CASE_METHOD(TwoBackends,
                 "session: what became of each wish is counted, pick by pick",
                 "[lb][session][affinity]") {
  struct Row {
    const char* when;
    std::string cookie;
    AffinityResult result;
    std::optional<CookieSet> set;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"none", "", AffinityResult::kNew, CookieSet::kNew},
      {"a hit", second, AffinityResult::kHit, std::nullopt},
      {"an older form hits", "s=" + base64("10.0.0.2:80"), AffinityResult::kHit, CookieSet::kMoved},
      {"nobody has the host",
       "s=" + base64("10.0.0.3:80;a"),
       AffinityResult::kUnknownHost,
       CookieSet::kMoved},
      {"nobody has the host, and no cluster is named",
       "s=" + base64("10.0.0.3:80"),
       AffinityResult::kUnknownHost,
       CookieSet::kMoved},
      {"nobody has the host, nor the route the cluster",
       "s=" + base64("10.0.0.3:80;b"),
       AffinityResult::kOtherCluster,
       CookieSet::kMoved},
      {"the route has not the cluster, but the host is there",
       "s=" + base64("10.0.0.2:80;b"),
       AffinityResult::kHit,
       CookieSet::kMoved},
      {"a bad one", "s=!", AffinityResult::kBadCookie, CookieSet::kNew},
  }));
  DYNAMIC_SECTION(row.when) {
    const Pick pick = call(row.cookie);
    CHECK(pick.outcome() == PickOutcome::kComplete);
    CHECK(pick.set_cookie().empty() != row.set.has_value());
    for (std::size_t i = 0; i < kAffinityResults; ++i) {
      const auto result = static_cast<AffinityResult>(i);
      CHECK(counted("a", result) == (result == row.result ? 1 : 0));
    }
    for (const CookieSet set : {CookieSet::kNew, CookieSet::kMoved})
      CHECK(counted("a", set) == (set == row.set ? 1 : 0));
  }
}

// The cookie that Envoy makes for an address.
std::string envoys(const std::string& address) {
  std::string text;
  write_envoy_cookie(address, "", 0, text);
  return base64(text);
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a cookie of Envoy's form that hits is kept as it is",
                 "[lb][session][affinity][A55-45]") {
  struct Row {
    const char* when;
    std::string cookie;
    AffinityResult result;
    std::optional<CookieSet> set;
  };

  std::string with_cluster;
  write_envoy_cookie("10.0.0.2:80", "a", 5, with_cluster);
  std::string of_another;
  write_envoy_cookie("10.0.0.2:80", "b", 5, of_another);
  std::string with_time;
  write_envoy_cookie("10.0.0.2:80", "", 5, with_time);
  const auto row = GENERATE_COPY(values<Row>({
      {"Envoy's", envoys("10.0.0.2:80"), AffinityResult::kHit, std::nullopt},
      {"with a time that is over", base64(with_time), AffinityResult::kHit, std::nullopt},
      {"ours, of Envoy's form", base64(with_cluster), AffinityResult::kHit, std::nullopt},
      {"of another cluster", base64(of_another), AffinityResult::kHit, CookieSet::kMoved},
      {"nobody has the host",
       envoys("10.0.0.9:80"),
       AffinityResult::kUnknownHost,
       CookieSet::kMoved},
      {"A60's text", base64("10.0.0.2:80;cluster:a"), AffinityResult::kHit, std::nullopt},
      {"A60's text, of another cluster",
       base64("10.0.0.9:80;cluster:b"),
       AffinityResult::kOtherCluster,
       CookieSet::kMoved},
      {"cut short", base64(with_time.substr(0, 9)), AffinityResult::kBadCookie, CookieSet::kNew},
  }));
  const auto form = GENERATE(CookieForm::kGrpc, CookieForm::kEnvoy);
  use({.form = form});
  DYNAMIC_SECTION(row.when) {
    const Pick pick = call("s=" + row.cookie);
    CHECK(pick.outcome() == PickOutcome::kComplete);
    CHECK(pick.set_cookie().empty() != row.set.has_value());
    CHECK(counted("a", row.result) == 1);
    for (const CookieSet set : {CookieSet::kNew, CookieSet::kMoved})
      CHECK(counted("a", set) == (set == row.set ? 1 : 0));
    if (row.result == AffinityResult::kHit) CHECK(address_of(pick) == "10.0.0.2:80");
  }
}

TEST_CASE_METHOD(TwoBackends,
                 "session: by option new cookies are of Envoy's form, and lead back",
                 "[lb][session][A55-45]") {
  std::uint64_t unix_seconds = 1'800'000'000;
  use({.form = CookieForm::kEnvoy, .unix_seconds = [&] { return unix_seconds; }});
  backends["a"][1].hosts = "10.0.0.2:80,[::2]:80";
  const auto begin = [&] {
    backends["a"][0].is_usable = false;
    Pick pick = call("");
    backends["a"][0].is_usable = true;
    return pick;
  };
  std::string expected;
  SECTION("without a ttl there is no time in them") {
    write_envoy_cookie("10.0.0.2:80", "a", 0, expected);
    CHECK(begin().set_cookie() == "s=" + base64(expected) + "; HttpOnly");
  }
  SECTION("with one there is when they end") {
    configure(to("a"), session_by("s", "", 60s));
    write_envoy_cookie("10.0.0.2:80", "a", 1'800'000'060, expected);
    const std::string given = begin().set_cookie();
    CHECK(given == "s=" + base64(expected) + "; HttpOnly; Max-Age=60");
    unix_seconds += 3600;
    CHECK(address_of(call(given)) == "10.0.0.2:80");
    CHECK(call(given).set_cookie().empty());
  }
  SECTION("of a pick that comes later, too") {
    configure(to("a"), session_by("s", "", 60s));
    Pick pick = begin();
    pick.put_off();
    unix_seconds += 10;
    backends["a"][0].is_usable = false;
    router.repick(pick, {"/s/M"});
    write_envoy_cookie("10.0.0.2:80", "a", 1'800'000'070, expected);
    CHECK(pick.set_cookie() == "s=" + base64(expected) + "; HttpOnly; Max-Age=60");
  }
  SECTION("one of gRPC's form that hits stays as it is") {
    CHECK(call(first).set_cookie().empty());
    CHECK(address_of(call("s=" + base64("10.0.0.2:80,[::2]:80;a"))) == "10.0.0.2:80");
    CHECK(call("s=" + base64("10.0.0.2:80,[::2]:80;a")).set_cookie().empty());
  }
  SECTION("a retry goes where the attempt before it went") {
    Pick pick = begin();
    pick.end(14);
    pick.put_off();
    router.repick(pick, {"/s/M"});
    CHECK(address_of(pick) == "10.0.0.2:80");
  }
}

TEST_CASE("session: a seal takes the place of Envoy's form, too", "[lb][session][sealed][A55-45]") {
  SessionFixture one({.seal = seal_of('a'), .accepts_plain = true});
  one.add("a", "10.0.0.1:80");
  one.add("a", "10.0.0.2:80");
  one.configure(to("a"), session_by("s"));
  const Pick pick = one.call("s=" + envoys("10.0.0.2:80"));
  CHECK(SessionFixture::address_of(pick) == "10.0.0.2:80");
  CHECK_FALSE(pick.set_cookie().empty());
  CHECK(SessionFixture::address_of(one.call(pick.set_cookie())) == "10.0.0.2:80");
  CHECK(one.call(pick.set_cookie()).set_cookie().empty());
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a cookie of another cluster is just that, whatever its host is there",
                 "[lb][session][affinity][A55-19]") {
  backends["a"][1].is_usable = false;
  call("s=" + base64("10.0.0.2:80;b"));
  CHECK(counted("a", AffinityResult::kOtherCluster) == 1);
  call(second);
  call("s=" + base64("10.0.0.2:80"));
  CHECK(counted("a", AffinityResult::kOtherCluster) == 1);
  CHECK(counted("a", AffinityResult::kUnhealthy) == 2);
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a strict one stays strict once its cookie has been read",
                 "[lb][session][A55-43]") {
  add("b", "10.0.0.3:80");
  backends["a"][1].is_usable = false;
  configure(to({{"a", 1}, {"b", 1}}), session_by("s", "", {}, true));
  SECTION("by its filter, which has a choice of clusters") {
    CHECK(call(second).outcome() == PickOutcome::kDrop);
  }
  SECTION("by an earlier pick") {
    configure(to("a"), session_by("s", "", {}, true));
    Pick pick = call(second);
    backends["a"][1].is_usable = true;
    router.repick(pick, {"/s/M"});
    CHECK(address_of(pick) == "10.0.0.2:80");
    backends["a"][1].is_usable = false;
    router.repick(pick, {"/s/M"});
    CHECK(pick.outcome() == PickOutcome::kDrop);
  }
  SECTION("but without a host there is nothing to be strict about") {
    CHECK(call("s=!").outcome() == PickOutcome::kComplete);
    CHECK(call("").outcome() == PickOutcome::kComplete);
  }
}

TEST_CASE_METHOD(TwoBackends,
                 "session: the picker is told the time, and of calls without a session nothing",
                 "[lb][session][A75-27][A75-28]") {
  call(second);
  REQUIRE(last);
  CHECK(last->now == now);
  CHECK_FALSE(last->strict);
  CHECK(wishes == std::vector<std::string>{"10.0.0.2:80"});
  configure(to("a"), StatefulSessionFilter{});
  last.reset();
  CHECK(call(second).outcome() == PickOutcome::kComplete);
  CHECK_FALSE(last);
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a pick that is put off has nothing to say until it is complete again",
                 "[lb][session][A55-21]") {
  Pick pick = call("");
  REQUIRE_FALSE(pick.set_cookie().empty());
  pick.put_off();
  CHECK(pick.set_cookie().empty());
  backends["a"][0].is_usable = false;
  backends["a"][1].is_usable = false;
  router.repick(pick, {"/s/M"});
  CHECK(pick.outcome() == PickOutcome::kFail);
  CHECK(pick.set_cookie().empty());
  backends["a"][1].is_usable = true;
  router.repick(pick, {"/s/M"});
  CHECK(host_in(pick.set_cookie()) == "10.0.0.2:80;a");
  CHECK(counted("a", CookieSet::kNew) == 1);  // One cookie for all attempts of the call.
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a retry goes where the attempt before it went, and no longer",
                 "[lb][session][A55-37]") {
  // The call has no cookie, or a cookie for a host outside of the cluster, or a cookie for a host
  // that can be used again after the call went elsewhere.
  const std::string cookie = GENERATE_COPY(std::string(), "s=" + base64("10.0.0.9:80;a"), first);
  backends["a"][0].is_usable = false;
  Pick pick = call(cookie);
  REQUIRE(address_of(pick) == "10.0.0.2:80");
  backends["a"][0].is_usable = true;
  SECTION("its endpoint had seen it") {
    pick.end(14);
    pick.put_off();
    router.repick(pick, {"/s/M"});
    CHECK(address_of(pick) == "10.0.0.2:80");
    CHECK(host_in(pick.set_cookie()) == "10.0.0.2:80;a");
    AND_WHEN("it cannot be used any more") {
      pick.end(14);
      pick.put_off();
      backends["a"][1].is_usable = false;
      router.repick(pick, {"/s/M"});
      CHECK(address_of(pick) == "10.0.0.1:80");
      if (cookie == first)  // The cookie names this host already.
        CHECK(pick.set_cookie().empty());
      else
        CHECK(host_in(pick.set_cookie()) == "10.0.0.1:80;a");
    }
  }
  SECTION("it never got there") {
    pick.put_off();
    router.repick(pick, {"/s/M"});
    CHECK(address_of(pick) == "10.0.0.1:80");
  }
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a retry stays at the cookie's host after a pick that was given up",
                 "[lb][session][A55-37]") {
  backends["a"][1].is_usable = false;
  Pick pick = call(second);
  REQUIRE(address_of(pick) == "10.0.0.1:80");
  pick.put_off();  // The call never got there.
  backends["a"][1].is_usable = true;
  router.repick(pick, {"/s/M"});
  REQUIRE(address_of(pick) == "10.0.0.2:80");
  pick.end(14);
  pick.put_off();
  router.repick(pick, {"/s/M"});
  CHECK(address_of(pick) == "10.0.0.2:80");
  CHECK(pick.set_cookie().empty());
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a cluster that does not count its calls has sessions, too",
                 "[lb][session]") {
  counts_calls = false;
  add("b", "10.0.1.1:80");
  configure(to("b"), session_by("s"));
  REQUIRE(ref("b").stats() == nullptr);
  CHECK(host_in(call("").set_cookie()) == "10.0.1.1:80;b");
  CHECK(address_of(call("s=" + base64("10.0.1.1:80;b"))) == "10.0.1.1:80");
  CHECK(host_in(call("s=" + base64("10.0.1.9:80;b")).set_cookie()) == "10.0.1.1:80;b");
}

TEST_CASE("session: a cookie's lifetime is known in whole seconds, as far as 32 bits hold them",
          "[lb][session][A55-22]") {
  struct Row {
    Duration ttl;
    std::uint32_t seconds;
  };

  const auto row = GENERATE(values<Row>({
      {-5s, 0},
      {999ms, 0},
      {1900ms, 1},
      {4'294'967'295s, 4'294'967'295},
      {4'294'967'296s, 4'294'967'295},
  }));
  CHECK(CompiledCookie(SessionCookie{"s", "", row.ttl}, false).ttl_seconds() == row.seconds);
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a retry of a call that was at its host stays there, and moves nothing",
                 "[lb][session][A55-37][A55-24]") {
  Pick pick = call(second);
  pick.end(14);
  pick.put_off();
  // A configuration without sessions arrives before the retry; the call keeps its session.
  configure(to("a"), StatefulSessionFilter{});
  router.repick(pick, {"/s/M"});
  CHECK(address_of(pick) == "10.0.0.2:80");
  CHECK(pick.set_cookie().empty());
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a call that the gate turns away gets no cookie",
                 "[lb][session][A55-21]") {
  struct Shut final : CallGate {
    bool enter() const noexcept override { return false; }

    void ended(const CallEnd& /*end*/) const noexcept override {}

    absl::Status refuse() const override { return absl::UnavailableError("full"); }

    std::uint32_t limit() const override { return 0; }

    bool is_full() const override { return true; }
  };

  const Shut gate;
  publish(with_filters(all_to(to("a")), {filter("session", session_by("s"))}),
          answering([&](const PickArgs& args) {
            PickResult refused = answer(args);
            refused.trackers.add_gate(gate);
            return refused;
          }));
  const Pick pick = call("");
  CHECK(pick.outcome() == PickOutcome::kDrop);
  CHECK(pick.set_cookie().empty());
  CHECK(counted("a", CookieSet::kNew) == 0);
}

TEST_CASE_METHOD(TwoBackends,
                 "session: without word of the endpoint, or room for it, there is no cookie",
                 "[lb][session][limits]") {
  SECTION("the picker does not know") {
    publish(with_filters(all_to(to("a")), {filter("session", session_by("s"))}),
            answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
    CHECK(call("").outcome() == PickOutcome::kComplete);
    CHECK(call("").set_cookie().empty());
    CHECK(counted("a", AffinityResult::kNone) == 0);
  }
  SECTION("it would be longer than what is read") {
    std::string hosts = "10.0.0.1:80";
    while (hosts.size() < 4096)
      hosts += ",10.0.0.1:80";
    backends["a"][0].hosts = hosts;
    CHECK(call("").outcome() == PickOutcome::kComplete);
    CHECK(call("").set_cookie().empty());
    CHECK(counted("a", CookieSet::kNew) == 0);
  }
}

TEST_CASE_METHOD(SessionFixture,
                 "session: its cookie may be a filter's, and headers more follow",
                 "[lb][session][A39]") {
  add("a", "10.0.0.1:80");
  add("a", "1.1.1.1:1");  // Its cookie fits into a string without memory of its own.
  const auto adds = [](const char* text, std::vector<std::pair<std::string, std::string>> headers) {
    return filter(text, scripted(text, [headers](FilterCall& call) {
                    for (const auto& [name, value] : headers)
                      CHECK(call.add_header(name, value));
                  }));
  };
  // So many headers that their list is reallocated: the first header then moves to other memory.
  const std::vector<std::pair<std::string, std::string>> many(20, {"x-more", std::string(64, 'x')});
  publish(with_filters(all_to(to("a")),
                       {adds("before", {{"cookie", "s=" + base64("1.1.1.1:1")}}),
                        filter("session", session_by("s")),
                        adds("after", many)}),
          answering([this](const PickArgs& args) { return answer(args); }));
  Pick pick = call("");
  CHECK(address_of(pick) == "1.1.1.1:1");
  CHECK(counted("a", AffinityResult::kHit) == 1);
}

TEST_CASE_METHOD(TwoBackends, "session: a second filter begins no second one", "[lb][session]") {
  publish(with_filters(all_to(to("a")),
                       {filter("one", session_by("s")), filter("two", session_by("t"))}),
          answering([&](const PickArgs& args) { return answer(args); }));
  const Pick pick = call("t=" + base64("10.0.0.2:80;a"));
  CHECK(address_of(pick) == "10.0.0.1:80");
  CHECK(absl::StartsWith(pick.set_cookie(), "s="));
}

TEST_CASE_METHOD(TwoBackends,
                 "session: what is wrong with cookies is told once a minute, and not their text",
                 "[lb][session][A55-17]") {
  call("s=!");
  call("s=" + base64("localhost:80"));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "xds:///orders: a call's cookie \"s\" is not used, and the call picked as if it had none: "
        "it is not base64 (logged once a minute at most; signalbox_affinity_picks_total counts all "
        "of them as fallback_bad_cookie)");
  now += 59s;
  call("s=" + base64("localhost:80"));
  CHECK(warnings.size() == 1);
  now += 1s;
  Pick pick = call("s=" + base64("localhost:80"));
  REQUIRE(warnings.size() == 2);
  CHECK(absl::StrContains(warnings[1], "it does not begin with an IP address and a port"));
  now += 61s;
  router.repick(pick, {"/s/M"});
  CHECK(warnings.size() == 2);
  call(first);
  call("");
  CHECK(warnings.size() == 2);
  CHECK(counted("a", AffinityResult::kBadCookie) == 5);
}

TEST_CASE("session: with keys, cookies are sealed for their name and target",
          "[lb][session][sealed]") {
  SessionFixture one({.seal = seal_of('a')});
  one.add("a", "10.0.0.1:80");
  one.add("a", "10.0.0.2:80");
  one.configure(to("a"), session_by("s"));
  one.backends["a"][0].is_usable = false;
  const std::string cookie = one.call("").set_cookie();
  one.backends["a"][0].is_usable = true;
  CHECK_FALSE(absl::StrContains(cookie, "MTAuMC4wLjI6ODA"));  // "10.0.0.2:80" in base64.
  CHECK(absl::EndsWith(cookie, "; HttpOnly"));

  SECTION("it leads back, unchanged") {
    CHECK(SessionFixture::address_of(one.call(cookie)) == "10.0.0.2:80");
    CHECK(one.call(cookie).set_cookie().empty());
  }
  SECTION("under another name it says nothing") {
    one.configure(to("a"), session_by("t"));
    CHECK(SessionFixture::address_of(one.call("t" + cookie.substr(1))) == "10.0.0.1:80");
    CHECK(one.counted("a", AffinityResult::kBadCookie) == 1);
    CHECK(absl::StrContains(one.warnings.at(0), "it is not sealed with one of our keys"));
  }
  SECTION("a plain one is none of ours") {
    CHECK(SessionFixture::address_of(one.call("s=" + base64("10.0.0.2:80;a"))) == "10.0.0.1:80");
    CHECK(one.counted("a", AffinityResult::kBadCookie) == 1);
  }
  SECTION("a plain one is taken during a migration, and replaced") {
    one.use({.seal = seal_of('a'), .accepts_plain = true});
    const std::string plain = "s=" + base64("10.0.0.2:80;a");
    CHECK(SessionFixture::address_of(one.call(plain)) == "10.0.0.2:80");
    const std::string sealed = one.call(plain).set_cookie();
    CHECK(SessionFixture::address_of(one.call(sealed)) == "10.0.0.2:80");
    CHECK(one.call(sealed).set_cookie().empty());
    CHECK(one.counted("a", AffinityResult::kBadCookie) == 0);
    CHECK(one.counted("a", CookieSet::kMoved) == 0);
    CHECK(SessionFixture::address_of(one.call("s=!")) == "10.0.0.1:80");
    CHECK(one.counted("a", AffinityResult::kBadCookie) == 1);
  }
  SECTION("one of an old key is taken, and replaced") {
    SealKey a{};
    SealKey b{};
    a.fill('a');
    one.use({.seal = std::make_shared<const CookieSeal>(SealKeys{b, a})});
    const Pick pick = one.call(cookie);
    CHECK(SessionFixture::address_of(pick) == "10.0.0.2:80");
    CHECK(one.counted("a", CookieSet::kMoved) == 0);
    one.use({.seal = std::make_shared<const CookieSeal>(SealKeys{b})});
    CHECK(SessionFixture::address_of(one.call(pick.set_cookie())) == "10.0.0.2:80");
    CHECK(one.call(pick.set_cookie()).set_cookie().empty());
  }
  SECTION("what it is sealed for is its name, a zero byte and the target, in every process") {
    std::string made;
    REQUIRE(seal_of('a')->seal("10.0.0.2:80;a", absl::string_view("s\0xds:///orders", 15), made));
    CHECK(SessionFixture::address_of(one.call("s=" + made)) == "10.0.0.2:80");
  }
  SECTION("one that is too long is not opened") {
    one.call("s=" + std::string(kLongestCookieValue + 4, 'A'));
    CHECK(absl::StrContains(one.warnings.at(0), "it decodes to 4 KiB or more"));
  }
}

TEST_CASE("session: a cookie is not set if it is longer than what later calls read",
          "[lb][session]") {
  // With ";a" 4095 bytes are encoded, of which base64 makes the longest value.
  const auto more = GENERATE(std::size_t{0}, std::size_t{1});
  SessionFixture one;
  one.add("a", "10.0.0.1:80," + std::string(4093 - 12 + more, 'x'));
  one.configure(to("a"), session_by("s"));
  CHECK(one.call("").set_cookie().empty() == (more == 1));
}

TEST_CASE("session: a cookie that one process made is accepted by another",
          "[lb][session][sealed][B6]") {
  const auto same_key = GENERATE(true, false);
  SessionFixture one({.seal = seal_of('a')});
  SessionFixture other({.seal = seal_of(same_key ? 'a' : 'b')});
  for (SessionFixture* each : {&one, &other}) {
    each->add("a", "10.0.0.1:80");
    each->add("a", "10.0.0.2:80");
    each->configure(to("a"), session_by("s", "", 1s));
  }
  one.backends["a"][0].is_usable = false;
  const std::string cookie = one.call("").set_cookie();
  // The other runtime's clock is long past the cookie's Max-Age, which only the client must
  // observe.
  other.now = Instant(std::chrono::hours(24 * 365));
  CHECK(SessionFixture::address_of(other.call(cookie)) ==
        (same_key ? "10.0.0.2:80" : "10.0.0.1:80"));
  CHECK(other.call(cookie).set_cookie().empty() == same_key);
}

TEST_CASE_METHOD(TwoBackends,
                 "session: nothing of one call is seen by the next that has its memory",
                 "[lb][session]") {
  {
    const Pick pick = call("s=" + base64("10.0.0.9:80;b"));
  }
  {
    const Pick pick = call("s=!");
  }
  {
    Pick pick = call("");
    pick.end(0);
  }
  const Pick pick = call("");
  CHECK(wishes == std::vector<std::string>{"10.0.0.9:80", "", "", ""});
  CHECK(counted("a", AffinityResult::kNew) == 2);
  CHECK(counted("a", CookieSet::kNew) == 3);
  CHECK(address_of(pick) == "10.0.0.1:80");
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a picker need not have asked what the cookie says",
                 "[lb][session][A55-24]") {
  const Backend& one = backends["a"][0];
  publish(with_filters(all_to(to("a")), {filter("session", session_by("s"))}),
          answering([&](const PickArgs&) {
            PickResult answer = result(Complete{one.connection.get()});
            answer.affinity = {AffinityResult::kHit, &one.hosts};
            return answer;
          }));
  CHECK(call(first).set_cookie().empty());
  CHECK(host_in(call(second).set_cookie()) == "10.0.0.1:80;a");
}

TEST_CASE_METHOD(TwoBackends,
                 "session: a cookie that was only explained is not told of for another call",
                 "[lb][session][explain][A55-17]") {
  {
    const TestHeaders headers({{"cookie", "s=!"}});
    router.explain({"/s/M", &headers}, now);
  }
  call("");
  CHECK(warnings.empty());
}

TEST_CASE("session: an old key's cookie is replaced, and not that of the next call",
          "[lb][session][sealed][A55-24]") {
  SessionFixture sealed({.seal = seal_of('a'), .accepts_plain = true});
  SessionFixture plain;
  for (SessionFixture* each : {&sealed, &plain}) {
    each->add("a", "10.0.0.1:80");
    each->configure(to("a"), session_by("s"));
  }
  // The cookie lacks its base64 padding. It is not the text that signalbox writes for this host,
  // so it has to be decoded.
  std::string cookie = "s=" + base64("10.0.0.1:80;a");
  REQUIRE(cookie.back() == '=');
  cookie.resize(cookie.find_last_not_of('=') + 1);
  CHECK_FALSE(sealed.call(cookie).set_cookie().empty());
  CHECK(plain.call(cookie).set_cookie().empty());
}

TEST_CASE_METHOD(TwoBackends,
                 "session: who picks again reads its cookie, with his own keys",
                 "[lb][session][sealed]") {
  use({.seal = seal_of('b')});
  const std::string cookie = [&] {
    backends["a"][0].is_usable = false;
    const Pick pick = call("");
    backends["a"][0].is_usable = true;
    return pick.set_cookie();
  }();
  use({.seal = seal_of('a')});
  const Router first_router = router;
  publish(with_filters(all_to(to("a")), {filter("session", session_by("s"))}),
          answering([](const PickArgs&) { return result(Queue{}); }));
  Pick pick = call(cookie);
  REQUIRE(pick.outcome() == PickOutcome::kQueue);
  configure(to("a"), session_by("s"));
  use({.seal = seal_of('b')});
  router.repick(pick, {"/s/M"});
  CHECK(address_of(pick) == "10.0.0.2:80");
  CHECK(counted("a", AffinityResult::kHit) == 1);
}

/// The only header of a call; its owner may overwrite it.
struct CookieHeader final : HeaderSource {
  explicit CookieHeader(std::string text) : cookie(std::move(text)) {}

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view value)> visit) const override {
    if (name == "cookie") visit(cookie);
  }

  std::string cookie;
};

TEST_CASE_METHOD(TwoBackends,
                 "session: what a call that a filter delays has of its cookie is its own",
                 "[lb][session][A33]") {
  configure_filters(all_to(to("a")),
                    {filter("session", session_by("s")), filter("fault", delaying(1s))});
  // The cookie is not the text that signalbox writes for this host, so the cookie is decoded.
  CookieHeader headers("s=" + base64("10.0.0.2:80"));
  Pick pick = router.pick({"/s/M", &headers, 7});
  REQUIRE(pick.delay() == 1s);
  headers.cookie.assign(headers.cookie.size(), 'x');
  configure(to("a"), session_by("t"));
  pick.end_delay();
  router.repick(pick, {"/s/M"});
  CHECK(address_of(pick) == "10.0.0.2:80");
  CHECK(absl::StartsWith(pick.set_cookie(), "s="));  // The new cookie names its cluster, too.
}

// The outcome of a call, with the counts of sessions and cookies, and the warnings.
std::string history(TwoBackends& world, const std::string& cookie, const char* path) {
  const Pick pick = world.call(cookie, path);
  std::string told = absl::StrCat(static_cast<int>(pick.outcome()),
                                  " ",
                                  TwoBackends::address_of(pick),
                                  " ",
                                  pick.status().ToString(),
                                  " ",
                                  pick.set_cookie());
  for (const char* cluster : {"a", "b"}) {
    if (!world.refs.contains(ClusterName(cluster))) continue;
    for (std::size_t i = 0; i < kAffinityResults; ++i)
      absl::StrAppend(&told, " ", world.counted(cluster, static_cast<AffinityResult>(i)));
    for (const CookieSet set : {CookieSet::kNew, CookieSet::kMoved})
      absl::StrAppend(&told, " ", world.counted(cluster, set));
  }
  return absl::StrCat(told, " ", absl::StrJoin(world.warnings, "; "));
}

TEST_CASE_METHOD(TwoBackends,
                 "session: where its cookie leads is asked before its route is known",
                 "[lb][session]") {
  const Seat* const seat = seats.at(CookieKey(base64("10.0.0.2:80;a")));
  CHECK(SnapshotCell::Reader(*cell)->sessions.seats() == &seats);
  CHECK(SnapshotCell::Reader(*cell)->sessions.cookie() == "s");
  call(second);
  CHECK(last->seat == seat);
  CHECK(last->key == CookieKey(base64("10.0.0.2:80;a")));
  CHECK(last->unread != nullptr);
  {
    const Pick pick = call("");
    CHECK(address_of(pick) == "10.0.0.1:80");
    CHECK(absl::StartsWith(pick.set_cookie(), "s="));
  }
  CHECK(last->seat == nullptr);
  CHECK(last->key == CookieKey());
  CHECK(router.pick({"/s/M", nullptr, 7}).outcome() == PickOutcome::kComplete);
  call("s=" + std::string(kLongestCookieValue, 'A'));
  CHECK(last->seat != nullptr);
  call(second);
  call("s=" + std::string(kLongestCookieValue + 1, 'A'));
  CHECK(last->seat == nullptr);
  CHECK(last->key == CookieKey());

  SECTION("but not where seats are not known") {
    has_seats = false;
    configure(to("a"), session_by("s"));
    call(second);
    CHECK(last->seat == nullptr);
  }
  SECTION("nor for a cookie that nobody knows at sight") {
    use({.seal = seal_of('a'), .accepts_plain = true});
    call(second);
    CHECK(last->seat == nullptr);
    CHECK(last->key == CookieKey());
  }
  SECTION("nor where routes have cookies of two names") {
    Route other = route(prefix("/other"), to("a"));
    other.filter_overrides = {{"session", HttpFilterConfig(session_by("t"))}};
    configure(config_of({other, route(prefix(""), to("a"))}), session_by("s"));
    CHECK(SnapshotCell::Reader(*cell)->sessions.cookie().empty());
    CHECK(address_of(call(second)) == "10.0.0.2:80");
    CHECK(last->seat == nullptr);
    CHECK(address_of(call("t" + second.substr(1), "/other/M")) == "10.0.0.2:80");
    CHECK(address_of(call(second, "/other/M")) == "10.0.0.1:80");
  }
}

TEST_CASE("session: a cookie that is looked for before the route says what it says after",
          "[lb][session][A55-14][A55-16][A55-17][A55-19]") {
  struct Row {
    const char* what;
    ForwardAction action;
    std::vector<HttpFilter> filters;
  };

  const auto row = GENERATE(values<Row>({
      {"a session", to("a"), {filter("s", session_by("s", "/s"))}},
      {"a strict one", to("a"), {filter("s", session_by("s", "/s/", {}, true))}},
      {"two clusters", to({{"a", 1}, {"b", 1}}), {filter("s", session_by("s"))}},
      {"two sessions of one cookie",
       to("a"),
       {filter("s", session_by("s", "/s")), filter("t", session_by("s"))}},
      {"of two in a chain",
       to("a"),
       {filter("s", session_by("s", "/s")), filter("t", session_by("t"))}},
      {"behind a filter that has something to say",
       to("a"),
       {filter("it",
               scripted("it",
                        [](FilterCall& call) {
                          call.add_header("cookie", "s=" + base64("10.0.0.2:80;a"));
                        })),
        filter("s", session_by("s"))}},
  }));
  const std::string second = base64("10.0.0.2:80;a");
  const std::vector<std::string> cookies = {
      "",
      "s=" + second,
      "s=" + second + "; Path=/; HttpOnly",
      "o=1; s=" + second,
      " s = \"" + second + "\" ",
      "s=" + second + "; s=" + base64("10.0.0.1:80;a"),
      "s=",
      "s",
      "s=!",
      "ss=" + second,
      "t=" + second,
      "s=" + base64("10.0.0.2:80;b"),
      "s=" + base64("10.0.0.9:80;a"),
      "s=" + std::string(kLongestCookieValue + 1, 'A'),
      "s=" + std::string(kMostCookieBytes, 'A'),
  };
  DYNAMIC_SECTION(row.what) {
    TwoBackends first;
    TwoBackends after;
    for (TwoBackends* world : {&first, &after}) {
      world->add("b", "10.0.1.1:80");
      world->has_seats = world == &first;
      world->configure_filters(all_to(row.action), row.filters);
    }
    for (const std::string& cookie : cookies) {
      for (const char* path : {"/s/M", "/s", "/other/M"}) {
        INFO(path << " " << cookie.substr(0, 100));
        CHECK(history(first, cookie, path) == history(after, cookie, path));
      }
    }
  }
}

TEST_CASE("session: a thread keeps so many that have ended, and none that is large",
          "[lb][session][limits]") {
  const SessionTerms terms;
  const CompiledCookie config(SessionCookie{"s", "", 0s}, false);
  const auto ended_with = [&](std::size_t value_bytes, std::size_t count) {
    const TestHeaders headers({{"cookie", "s=" + std::string(value_bytes, 'A')}});
    std::vector<SessionPtr> sessions;
    for (std::size_t i = 0; i < count; ++i) {
      sessions.push_back(make_session(terms));
      sessions.back()->begin(config, find_cookie(headers, config.name()));
      sessions.back()->read();
    }
    return sessions;
  };
  const auto used = [&](std::size_t least_memory) {
    std::vector<SessionPtr> sessions;
    for (std::size_t i = 0; i < 2 * kSpareSessions; ++i)
      sessions.push_back(make_session(terms));
    return std::ranges::count_if(
        sessions, [&](const SessionPtr& session) { return session->memory() >= least_memory; });
  };
  // Each thread has its own spare sessions; a new thread has none.
  std::thread([&] {
    CHECK(ended_with(kLongestCookieValue, 3).front()->memory() > kLargestSpare);
    CHECK(used(kLargestSpare + 1) == 0);
    ended_with(800, 2 * kSpareSessions);
    CHECK(used(500) == kSpareSessions);
    CHECK(used(500) == kSpareSessions);  // All spare sessions came back.
  }).join();
}

TEST_CASE_METHOD(TwoBackends,
                 "session: calls may end on other threads, and in any number",
                 "[lb][session]") {
  std::vector<Pick> picks;
  for (std::size_t i = 0; i < 2 * kSpareSessions; ++i)
    picks.push_back(call(""));
  std::thread([held = std::move(picks)]() mutable { held.clear(); }).join();
  // A pick that outlives the thread that made it.
  std::optional<Pick> late;
  std::thread([&] { late = call(""); }).join();
  CHECK(host_in(late->set_cookie()) == "10.0.0.1:80;a");
}

}  // namespace
}  // namespace signalbox::lb
