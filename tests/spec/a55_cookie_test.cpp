// SPDX-License-Identifier: Apache-2.0
//
// gRFC A55, "StatefulSessionFilter Processing", as A60 and A61 change it: the cookie's half of
// session affinity, in the document's order. a55_override_host_test has the endpoints' half.
// tests/unit/xds/parse_http_filter_test has the configurations that are refused.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/session_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

// Two endpoints in each of two clusters.
struct Backends : SessionFixture {
  Backends() {
    for (const char* hosts : {"10.0.0.1:80", "10.0.0.2:80"})
      add("a", hosts);
    for (const char* hosts : {"10.0.1.1:80", "10.0.1.2:80"})
      add("b", hosts);
  }
};

std::string cookie(const std::string& host) {
  return "s=" + base64(host);
}

SCENARIO("A55: Envoy's configuration, as the document has it", "[spec][A55-39]") {
  GIVEN("the filter of the document's example") {
    Backends channel;
    channel.configure(to("a"),
                      session_by("global-session-cookie", "/Package1.Service2/Method3", 120s));
    WHEN("a call matches") {
      const Pick pick = channel.call("", "/Package1.Service2/Method3");
      THEN("its cookie is what Envoy's clients know, with the cluster in it (A60)") {
        CHECK(pick.set_cookie() ==
              absl::StrCat("global-session-cookie=",
                           base64("10.0.0.1:80;a"),
                           "; HttpOnly; Path=/Package1.Service2/Method3; Max-Age=120"));
      }
    }
    WHEN("a client comes with a cookie that Envoy gave it, with or without a time in it") {
      const std::string name = "global-session-cookie=";
      for (const std::string& value : {base64("10.0.0.2:80"),
                                       base64("\x0a\x0b"
                                              "10.0.0.2:80\x10\xc0\xc4\x07")}) {
        const Pick pick = channel.call(name + value, "/Package1.Service2/Method3");
        THEN("it stays on its host: " + value) {
          CHECK(SessionFixture::address_of(pick) == "10.0.0.2:80");
        }
      }
    }
  }
}

// A model of an Envoy proxy (CookieBasedSessionState). It reads its own protobuf message in the
// cookie. Without one, the whole text is an address. It sets a cookie when the call goes to another
// host.
class EnvoyProxy {
 public:
  explicit EnvoyProxy(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  /// Returns the host of the call; `cookie` is the client's cookie before and after it.
  std::string call(std::string& cookie) {
    const std::string wish = address_in(cookie);
    const bool is_known = std::ranges::find(hosts_, wish) != hosts_.end();
    if (is_known) return wish;
    const std::string& host = hosts_[next_++ % hosts_.size()];
    std::string text;
    // Seconds since the start of the proxy's machine.
    lb::write_envoy_cookie(host, "", 3'600, text);
    cookie = "s=" + base64(text);
    return host;
  }

 private:
  static std::string address_in(const std::string& cookie) {
    const std::string text = host_in(cookie);
    const auto message = lb::read_envoy_cookie(text);
    return message ? std::string(message->address) : text;
  }

  const std::vector<std::string> hosts_;
  std::size_t next_ = 1;
};

SCENARIO("A55: a session whose calls go through Envoy and through us by turns keeps its host",
         "[spec][A55-39][A55-45]") {
  struct Row {
    const char* when;
    CookieForm form;
    bool envoy_is_first;
    int moves;
  };

  const auto row = GENERATE(values<Row>({
      {"gRPC's form, and Envoy is first", CookieForm::kGrpc, true, 0},
      // Envoy does not read gRPC's form, so it sets a cookie of its own form, and follows it from
      // then on.
      {"gRPC's form, and we are first", CookieForm::kGrpc, false, 1},
      {"Envoy's form, and Envoy is first", CookieForm::kEnvoy, true, 0},
      {"Envoy's form, and we are first", CookieForm::kEnvoy, false, 0},
  }));
  GIVEN(std::string(row.when)) {
    Backends channel;
    channel.use({.form = row.form, .unix_seconds = [] { return 1'800'000'000; }});
    channel.configure(to("a"), session_by("s", "", 60s));
    EnvoyProxy envoy({"10.0.0.1:80", "10.0.0.2:80"});
    std::string cookie;
    std::string host;
    int moves = 0;
    for (int i = 0; i < 100; ++i) {
      std::string went;
      if ((i % 2 == 0) == row.envoy_is_first) {
        went = envoy.call(cookie);
      } else {
        const Pick pick = channel.call(cookie);
        went = SessionFixture::address_of(pick);
        if (!pick.set_cookie().empty())
          cookie = pick.set_cookie().substr(0, pick.set_cookie().find(';'));
      }
      if (!host.empty() && went != host) ++moves;
      host = went;
    }
    THEN("it moves as often as said") {
      CHECK(moves == row.moves);
    }
  }
}

SCENARIO("A55: overrides replace the filter, or turn it off", "[spec][A55-12][A39]") {
  GIVEN("a filter that is off for one route, and another's for the next") {
    Backends channel;
    Route off = route(exact("/s/Off"), to("a"));
    off.filter_overrides = {{"session", StatefulSessionFilter{}}};
    Route other = route(exact("/s/Other"), to("a"));
    other.filter_overrides = {{"session", session_by("other")}};
    channel.configure(config_of({off, other, route(prefix(""), to("a"))}), session_by("s"));
    THEN("each call has the session of its route, or none") {
      CHECK(channel.call(cookie("10.0.0.2:80;a"), "/s/Off").set_cookie().empty());
      CHECK_FALSE(channel.last);
      CHECK(channel.call("", "/s/Other").set_cookie().substr(0, 6) == "other=");
      CHECK(channel.call("", "/s/M").set_cookie().substr(0, 2) == "s=");
    }
  }
}

SCENARIO("A55: a path that is not the cookie's skips the filter, for request and response",
         "[spec][A55-14]") {
  GIVEN("a cookie for /Package1.Service2") {
    Backends channel;
    channel.configure(to("a"), session_by("s", "/Package1.Service2"));
    WHEN("the call is to another service, with a good cookie") {
      const Pick pick = channel.call(cookie("10.0.0.2:80;a"), "/Package2.Service1/Method3");
      THEN("it is picked as any, and its response says nothing") {
        CHECK(SessionFixture::address_of(pick) == "10.0.0.1:80");
        CHECK_FALSE(channel.last);
        CHECK(pick.set_cookie().empty());
      }
    }
    WHEN("it is to one whose name only begins so") {
      const Pick pick = channel.call(cookie("10.0.0.2:80;a"), "/Package1.Service22/M");
      THEN("it is skipped, too") {
        CHECK_FALSE(channel.last);
        CHECK(pick.set_cookie().empty());
      }
    }
    WHEN("it is to a method of the service") {
      const Pick pick = channel.call(cookie("10.0.0.2:80;a"), "/Package1.Service2/M");
      THEN("it is of the session") {
        CHECK(SessionFixture::address_of(pick) == "10.0.0.2:80");
      }
    }
  }
}

SCENARIO("A55: the cookie is looked for in all cookie headers; the first of its name counts",
         "[spec][A55-15]") {
  GIVEN("a call with several headers and cookies") {
    Backends channel;
    channel.configure(to("a"), session_by("s"));
    const TestHeaders headers{{"cookie", "lang=en; theme=dark"},
                              {"cookie", "x=1; " + cookie("10.0.0.2:80;a")},
                              {"cookie", cookie("10.0.0.1:80;a")}};
    const Pick pick = channel.router.pick({"/s/M", &headers, 7});
    THEN("the first leads") {
      CHECK(SessionFixture::address_of(pick) == "10.0.0.2:80");
    }
  }
  GIVEN("a client that sends back what it was told, with attributes and all") {
    Backends channel;
    channel.configure(to("a"), session_by("s", "/s", 60s));
    channel.backends["a"][0].is_usable = false;
    const std::string set_cookie = channel.call("").set_cookie();
    channel.backends["a"][0].is_usable = true;
    THEN("it is understood") {
      CHECK(SessionFixture::address_of(channel.call(set_cookie)) == "10.0.0.2:80");
    }
  }
}

SCENARIO("A55: a call without the cookie passes through, and gets one", "[spec][A55-16]") {
  GIVEN("a call with other cookies only") {
    Backends channel;
    channel.configure(to("a"), session_by("s"));
    const Pick pick = channel.call("lang=en");
    THEN("the picker is asked for no host, and the response says who took it") {
      CHECK(channel.wishes == std::vector<std::string>{""});
      CHECK(pick.set_cookie() == cookie("10.0.0.1:80;a") + "; HttpOnly");
      CHECK(channel.counted("a", AffinityResult::kNew) == 1);
      CHECK(channel.counted("a", CookieSet::kNew) == 1);
    }
  }
}

SCENARIO("A55: a value that is no base64, or no IP and port, is as none; somebody hears of it",
         "[spec][A55-17]") {
  for (const char* value : {"%%%", "bm90IGFuIGFkZHJlc3M=", "MTAuMC4wLjI=", ""}) {
    GIVEN("the value \"" + std::string(value) + "\"") {
      Backends channel;
      channel.configure(to("a"), session_by("s"));
      const Pick pick = channel.call("s=" + std::string(value));
      THEN("it passes through, and gets a good one") {
        CHECK(channel.wishes == std::vector<std::string>{""});
        CHECK(pick.outcome() == PickOutcome::kComplete);
        CHECK(pick.set_cookie() == cookie("10.0.0.1:80;a") + "; HttpOnly");
        CHECK(channel.warnings.size() == 1);
        CHECK(channel.counted("a", AffinityResult::kBadCookie) == 1);
      }
    }
  }
}

SCENARIO("A55: a good value is what the picker is asked for, and its answer is heard",
         "[spec][A55-18][A61]") {
  GIVEN("an endpoint with two addresses, which is connected on its second") {
    Backends channel;
    channel.add("a", "10.0.0.9:80,[2001:db8::9]:80");
    channel.configure(to("a"), session_by("s"));
    WHEN("a cookie names both, the other one first") {
      const Pick pick = channel.call(cookie("[2001:db8::9]:80,10.0.0.9:80;a"));
      THEN("the picker has the list as it is, and the new cookie its list") {
        CHECK(channel.wishes == std::vector<std::string>{"[2001:db8::9]:80,10.0.0.9:80"});
        CHECK(host_in(pick.set_cookie()) == "10.0.0.9:80,[2001:db8::9]:80;a");
      }
    }
  }
}

SCENARIO("A60: the cookie's cluster replaces the chosen one, if the route names it",
         "[spec][A55-19][A60]") {
  GIVEN("a route with two weighted clusters, and one to a third") {
    Backends channel;
    channel.add("c", "10.0.2.1:80");
    const XdsConfig config =
        config_of({route(exact("/s/C"), to("c")), route(prefix(""), to({{"a", 1}, {"b", 1}}))});
    channel.configure(config, session_by("s"));
    WHEN("calls of a session come, whatever they draw") {
      THEN("all go to its cluster and its host") {
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
          const Pick pick = channel.call(cookie("10.0.1.2:80;b"), "/s/M", seed);
          CHECK(pick.cluster() == &channel.ref("b"));
          CHECK(SessionFixture::address_of(pick) == "10.0.1.2:80");
          CHECK(pick.set_cookie().empty());
        }
      }
    }
    WHEN("the cookie's cluster is one that only another route names") {
      const Pick pick = channel.call(cookie("10.0.2.1:80;c"), "/s/M", 7);
      THEN("the selector's stays, and the cookie is set anew") {
        CHECK(pick.cluster() != &channel.ref("c"));
        const std::string cluster = pick.cluster()->name().str();
        CHECK(host_in(pick.set_cookie()) == SessionFixture::address_of(pick) + ";" + cluster);
        CHECK(channel.counted(cluster.c_str(), AffinityResult::kOtherCluster) == 1);
      }
    }
    WHEN("the route has lost the cookie's cluster") {
      channel.configure(to("a"), session_by("s"));
      const Pick pick = channel.call(cookie("10.0.1.2:80;b"));
      THEN("the call goes to what it has now") {
        CHECK(pick.cluster() == &channel.ref("a"));
        CHECK(host_in(pick.set_cookie()) == "10.0.0.1:80;a");
      }
    }
  }
}

SCENARIO("A60: \"cluster:\" may stand before the cluster's name, as the document's text has it",
         "[spec][A55-46][A60]") {
  GIVEN("a route with two weighted clusters") {
    Backends channel;
    channel.configure(to({{"a", 1}, {"b", 1}}), session_by("s"));
    WHEN("calls of a session come, whatever they draw") {
      THEN("all go to its cluster and its host, and the cookie stays as it is") {
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
          const Pick pick = channel.call(cookie("10.0.1.2:80;cluster:b"), "/s/M", seed);
          CHECK(pick.cluster() == &channel.ref("b"));
          CHECK(SessionFixture::address_of(pick) == "10.0.1.2:80");
          CHECK(pick.set_cookie().empty());
        }
      }
    }
  }
  GIVEN("a cluster whose name begins so, and one that has the rest of it") {
    Backends channel;
    channel.add("cluster:a", "10.0.3.1:80");
    channel.configure(to({{"a", 1}, {"cluster:a", 1}}), session_by("s"));
    THEN("the name as it is comes first") {
      const Pick pick = channel.call(cookie("10.0.3.1:80;cluster:a"));
      CHECK(pick.cluster() == &channel.ref("cluster:a"));
      CHECK(pick.set_cookie().empty());
    }
  }
}

SCENARIO("A60: a cluster that the route names with weight 0 keeps its sessions, and gets no others",
         "[spec][A55-47][A60]") {
  GIVEN("a session on a cluster that had a weight") {
    Backends channel;
    channel.configure(to({{"a", 0}, {"b", 1}, {"c", 0}}), session_by("s"));
    WHEN("the session calls") {
      THEN("it stays") {
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
          const Pick pick = channel.call(cookie("10.0.0.2:80;a"), "/s/M", seed);
          CHECK(pick.cluster() == &channel.ref("a"));
          CHECK(SessionFixture::address_of(pick) == "10.0.0.2:80");
          CHECK(pick.set_cookie().empty());
        }
      }
    }
    WHEN("others call") {
      THEN("none goes there") {
        for (std::uint64_t seed = 0; seed < 1'000; ++seed)
          CHECK(channel.call("", "/s/M", seed).cluster() == &channel.ref("b"));
      }
    }
  }
  GIVEN("a listener without sessions") {
    const XdsConfig config = all_to(to({{"a", 0}, {"b", 1}}));
    THEN("the cluster of weight 0 is none of its clusters") {
      CHECK(clusters_of(config) == std::set<ClusterName>{ClusterName("b")});
    }
  }
}

SCENARIO("A60: the cluster's reference is taken after the filter ran", "[spec][A55-20][A60]") {
  GIVEN("a call whose cookie changes its cluster") {
    Backends channel;
    channel.configure(to({{"a", 4294967294U}, {"b", 1}}), session_by("s"));
    const Pick pick = channel.call(cookie("10.0.1.2:80;b"));
    THEN("it holds that one, and not the one that was drawn") {
      CHECK(channel.ref("b").uses() == 1);
      CHECK(channel.ref("a").uses() == 0);
      CHECK(channel.asked == std::vector<std::string>{"b"});
    }
  }
}

SCENARIO("A55: the response sets the cookie where host or cluster are others",
         "[spec][A55-21][A75-48][D6]") {
  GIVEN("a session whose host is gone") {
    Backends channel;
    channel.configure(to("a"), session_by("s"));
    channel.backends["a"][1].is_usable = false;
    const Pick pick = channel.call(cookie("10.0.0.2:80;a"));
    THEN("the child's choice takes it, and the cookie moves there") {
      CHECK(SessionFixture::address_of(pick) == "10.0.0.1:80");
      CHECK(host_in(pick.set_cookie()) == "10.0.0.1:80;a");
      CHECK(channel.counted("a", CookieSet::kMoved) == 1);
      CHECK(channel.counted("a", AffinityResult::kUnhealthy) == 1);
    }
  }
  GIVEN("a cookie without a cluster, whose host is there") {
    Backends channel;
    channel.configure(to("a"), session_by("s"));
    const Pick pick = channel.call(cookie("10.0.0.2:80"));
    THEN("it is replaced by one that has it") {
      CHECK(SessionFixture::address_of(pick) == "10.0.0.2:80");
      CHECK(host_in(pick.set_cookie()) == "10.0.0.2:80;a");
    }
  }
}

SCENARIO("A55: the cookie's text", "[spec][A55-22]") {
  struct Row {
    std::string path;
    Duration ttl;
    std::string attributes;
  };

  const auto row = GENERATE(values<Row>({
      {"", 0s, "; HttpOnly"},
      {"/", 0s, "; HttpOnly; Path=/"},
      {"", 30s, "; HttpOnly; Max-Age=30"},
      {"/s", 24h, "; HttpOnly; Path=/s; Max-Age=86400"},
  }));
  GIVEN("the attributes \"" + row.attributes + "\"") {
    Backends channel;
    channel.configure(to("a"), session_by("s", row.path, row.ttl));
    THEN("they follow the value in this order") {
      CHECK(channel.call("").set_cookie() == cookie("10.0.0.1:80;a") + row.attributes);
    }
  }
}

SCENARIO("A61: the address in use comes first; losing one of several loses no session",
         "[spec][A55-23][A61]") {
  GIVEN("a session on an endpoint with two addresses") {
    Backends channel;
    channel.backends["a"].clear();
    channel.add("a", "10.0.0.8:80");
    channel.add("a", "10.0.0.9:80,10.0.1.9:80");
    channel.configure(to("a"), session_by("s"));
    channel.backends["a"][0].is_usable = false;
    const std::string given = channel.call("").set_cookie();
    CHECK(host_in(given) == "10.0.0.9:80,10.0.1.9:80;a");
    channel.backends["a"][0].is_usable = true;
    WHEN("the endpoint has only the second one now") {
      channel.backends["a"][1].hosts = "10.0.1.9:80";
      const Pick pick = channel.call(given);
      THEN("the session stays, and its cookie follows") {
        CHECK(SessionFixture::address_of(pick) == "10.0.0.9:80");
        CHECK(host_in(pick.set_cookie()) == "10.0.1.9:80;a");
        CHECK(channel.counted("a", AffinityResult::kHit) == 1);
      }
    }
    WHEN("it is connected on the other one") {
      channel.backends["a"][1].hosts = "10.0.1.9:80,10.0.0.9:80";
      const Pick pick = channel.call(given);
      THEN("that stands first") {
        CHECK(host_in(pick.set_cookie()) == "10.0.1.9:80,10.0.0.9:80;a");
      }
    }
  }
}

SCENARIO("A55: where nothing changed, no cookie is set", "[spec][A55-24]") {
  GIVEN("a session on its host") {
    Backends channel;
    channel.configure(to("a"), session_by("s", "", 60s));
    const std::string given = channel.call("").set_cookie();
    THEN("none of its next calls is told anything") {
      for (int i = 0; i < 3; ++i)
        CHECK(channel.call(given).set_cookie().empty());
      CHECK(channel.counted("a", CookieSet::kNew) == 1);
      CHECK(channel.counted("a", CookieSet::kMoved) == 0);
    }
  }
}

SCENARIO("A55: all attempts of a call go to the same endpoint while it is usable",
         "[spec][A55-37][A44]") {
  GIVEN("a new session whose first attempt fails") {
    Backends channel;
    channel.configure(to("a"), session_by("s"));
    Pick pick = channel.call("");
    REQUIRE(SessionFixture::address_of(pick) == "10.0.0.1:80");
    pick.end(14);
    WHEN("another endpoint would be the child's choice by now") {
      std::swap(channel.backends["a"][0], channel.backends["a"][1]);
      pick.put_off();
      channel.router.repick(pick, {"/s/M"});
      THEN("the next attempt is where the first one was") {
        CHECK(SessionFixture::address_of(pick) == "10.0.0.1:80");
        CHECK(host_in(pick.set_cookie()) == "10.0.0.1:80;a");
      }
    }
  }
}

SCENARIO("Envoy: a strict session fails rather than to move", "[spec][A55-43]") {
  GIVEN("a strict filter, and a host that cannot be used") {
    Backends channel;
    channel.configure(to("a"), session_by("s", "", 0s, true));
    channel.backends["a"][1].is_usable = false;
    WHEN("its session calls") {
      const Pick pick = channel.call(cookie("10.0.0.2:80;a"));
      THEN("the call fails, and its cookie stays as it is") {
        CHECK(pick.outcome() == PickOutcome::kDrop);
        CHECK(pick.status() ==
              absl::UnavailableError("xds:///orders: cluster a: strict (node ID: n)"));
        CHECK(pick.set_cookie().empty());
      }
    }
    WHEN("a call has no cookie, or a bad one") {
      THEN("it begins a session as any") {
        CHECK(channel.call("").outcome() == PickOutcome::kComplete);
        CHECK(channel.call("s=!").outcome() == PickOutcome::kComplete);
      }
    }
    WHEN("such a call is tried again, and its endpoint is gone") {
      Pick pick = channel.call("");
      pick.end(14);
      pick.put_off();
      channel.backends["a"][0].is_usable = false;
      channel.backends["a"][1].is_usable = true;
      channel.router.repick(pick, {"/s/M"});
      THEN("it has no cookie that could hold it there") {
        CHECK(SessionFixture::address_of(pick) == "10.0.0.2:80");
      }
    }
  }
}

}  // namespace
}  // namespace signalbox::lb
