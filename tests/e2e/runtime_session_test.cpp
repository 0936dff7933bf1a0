// SPDX-License-Identifier: Apache-2.0
//
// Sessions over real connections: which cookies of clients are followed, the form of the runtime's
// own cookies, and the file of its keys.
#include <array>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/happened.hpp"
#include "tests/support/route_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test::runtime_session_test {
namespace {

using Catch::Matchers::Contains;

const char kPath[] = "/signalbox.demo.v1.Orders/Place";
const char kOther[] = "/signalbox.demo.v1.Other/Place";

const std::string kFilter =
    "{name: session, typed_config: "
    "{\"@type\": type.googleapis.com/"
    "envoy.extensions.filters.http.stateful_session.v3.StatefulSession, "
    "session_state: {name: cookie, typed_config: "
    "{\"@type\": type.googleapis.com/"
    "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState, "
    "cookie: {name: session, path: /signalbox.demo.v1.Orders, ttl: 60s}}}}}, ";

// Three backends of one cluster.
struct SessionWorld {
  SessionWorld()
      : plane(start_plane(
            listener_yaml("orders", "orders", kFilter) + routes_yaml("orders", "c") +
            cluster_yaml("c") +
            endpoints_yaml(
                "c", {{backends[0].address(), backends[1].address(), backends[2].address()}}))) {}

  RuntimeOptions options() const { return options_for(plane->address()); }

  std::array<HoldingBackend, 3> backends{
      HoldingBackend("c"), HoldingBackend("c"), HoldingBackend("c")};
  std::unique_ptr<ControlPlane> plane;
};

std::shared_ptr<Router> router_of(Runtime& runtime) {
  auto router = runtime.router("xds:///orders");
  REQUIRE(router.ok());
  return *router;
}

Pick pick_with(const Router& router, const std::string& cookie, const char* path = kPath) {
  signalbox::testing::TestHeaders::List list;
  if (!cookie.empty()) list.emplace_back("cookie", cookie);
  const signalbox::testing::TestHeaders headers(std::move(list));
  Pick pick = router.pick_until({.path = path, .headers = &headers, .seed = next_seed()},
                                std::chrono::steady_clock::now() + kPatience,
                                OnFail::kWait);
  INFO(pick.status().ToString());
  REQUIRE(pick.outcome() == PickOutcome::kComplete);
  return pick;
}

std::string address_of(const Pick& pick) {
  return pick.connection()->address().str();
}

std::string keys(const std::string& letters) {
  std::string text;
  for (const char letter : letters)
    text += absl::Base64Escape(std::string(32, letter)) + "\n";
  return text;
}

// Whether calls without a session reach all backends.
bool sees_all(const SessionWorld& world, const Router& router) {
  std::set<std::string> seen;
  return eventually([&] {
    seen.insert(address_of(pick_with(router, "")));
    return seen.size() == world.backends.size();
  });
}

// A router that has all connections. The caller must keep it: the target and its connections end
// with their last router.
std::shared_ptr<Router> ready_router(const SessionWorld& world, Runtime& runtime) {
  auto router = router_of(runtime);
  REQUIRE(sees_all(world, *router));
  return router;
}

}  // namespace

TEST_CASE("session: calls with a cookie stay where it says", "[e2e][runtime][session][A55-39]") {
  const SessionWorld world;
  const auto runtime = start_runtime(world.options());
  const auto router = ready_router(world, *runtime);

  const Pick first = pick_with(*router, "");
  const std::string& cookie = first.set_cookie();
  CHECK(cookie == absl::StrCat("session=",
                               absl::Base64Escape(address_of(first) + ";c"),
                               "; HttpOnly; Path=/signalbox.demo.v1.Orders; Max-Age=60"));
  for (int i = 0; i < 20; ++i) {
    const Pick pick = pick_with(*router, cookie);
    CHECK(address_of(pick) == address_of(first));
    CHECK(pick.set_cookie().empty());
  }
  CHECK(pick_with(*router, cookie, kOther).set_cookie().empty());
}

TEST_CASE("session: a cookie of one runtime is good for another, if it is sealed for the same key",
          "[e2e][runtime][session][sealed][B6]") {
  const SessionWorld world;
  const TemporaryFolder folder;
  const auto start = [&](const std::string& file) {
    RuntimeOptions options = world.options();
    options.session_cookies.key_file = file;
    return start_runtime(std::move(options));
  };
  const std::string shared = folder.write("shared", keys("a"));
  const auto one = start(shared);
  const auto same = start(shared);
  const auto stranger = start(folder.write("other", keys("b")));
  const auto of_one = ready_router(world, *one);
  const auto of_same = ready_router(world, *same);
  const auto of_stranger = ready_router(world, *stranger);

  const Pick first = pick_with(*of_one, "");
  const std::string& cookie = first.set_cookie();
  CHECK_FALSE(absl::StrContains(cookie, absl::Base64Escape(address_of(first)).substr(0, 12)));
  std::set<std::string> strangers;
  for (int i = 0; i < 20; ++i) {
    const Pick pick = pick_with(*of_same, cookie);
    CHECK(address_of(pick) == address_of(first));
    CHECK(pick.set_cookie().empty());
    const Pick other = pick_with(*of_stranger, cookie);
    CHECK_FALSE(other.set_cookie().empty());
    strangers.insert(address_of(other));
  }
  CHECK(strangers.size() > 1);

  // The other runtime gets the first runtime's key while it runs.
  folder.write("other", keys("ab"));
  CHECK(eventually([&] { return pick_with(*of_stranger, cookie).set_cookie().empty(); }));
}

TEST_CASE("session: a cookie that is plain, or of an old key, is good, and replaced",
          "[e2e][runtime][session][sealed][B6]") {
  const bool accepts_plain = GENERATE(false, true);
  CAPTURE(accepts_plain);
  const SessionWorld world;
  const TemporaryFolder folder;
  const auto start = [&](const std::string& name, const std::string& letters, bool plain = false) {
    RuntimeOptions options = world.options();
    options.session_cookies = {.key_file = folder.write(name, keys(letters)),
                               .accept_plain = plain};
    return start_runtime(std::move(options));
  };
  const auto open = start_runtime(world.options());
  const auto before = start("before", "a");
  const auto rotated = start("rotated", "ba", accepts_plain);
  const auto of_open = ready_router(world, *open);
  const auto of_before = ready_router(world, *before);
  const auto of_rotated = ready_router(world, *rotated);

  const Pick first = pick_with(*of_before, "");
  const Pick again = pick_with(*of_rotated, first.set_cookie());
  CHECK(address_of(again) == address_of(first));
  REQUIRE_FALSE(again.set_cookie().empty());
  CHECK(pick_with(*of_rotated, again.set_cookie()).set_cookie().empty());
  CHECK_FALSE(pick_with(*of_before, again.set_cookie()).set_cookie().empty());

  const Pick plain = pick_with(*of_open, "");
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    const Pick taken = pick_with(*of_rotated, plain.set_cookie());
    seen.insert(address_of(taken));
    CHECK_FALSE(taken.set_cookie().empty());
    CHECK(taken.set_cookie() != plain.set_cookie());
  }
  CHECK((seen == std::set<std::string>{address_of(plain)}) == accepts_plain);
}

TEST_CASE("session: by option cookies are of Envoy's form, and every runtime reads them",
          "[e2e][runtime][session][A55-45]") {
  const SessionWorld world;
  RuntimeOptions options = world.options();
  options.session_cookies.form = SessionCookieForm::kEnvoy;
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const auto before = now();
  const auto writer = start_runtime(std::move(options));
  const auto reader = start_runtime(world.options());
  const auto writing = ready_router(world, *writer);
  const auto reading = ready_router(world, *reader);

  const Pick first = pick_with(*writing, "");
  const std::string& cookie = first.set_cookie();
  const std::string value = cookie.substr(8, cookie.find(';') - 8);
  CHECK(cookie ==
        absl::StrCat("session=", value, "; HttpOnly; Path=/signalbox.demo.v1.Orders; Max-Age=60"));
  std::string text;
  REQUIRE(absl::Base64Unescape(value, &text));
  google::protobuf::Empty message;
  REQUIRE(message.ParseFromString(text));
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  REQUIRE(fields.field_count() == 3);
  CHECK(fields.field(0).number() == 1);
  CHECK(fields.field(0).length_delimited() == address_of(first));
  CHECK(fields.field(1).number() == 2);
  CHECK(fields.field(1).varint() >= static_cast<std::uint64_t>(before + 60));
  CHECK(fields.field(1).varint() <= static_cast<std::uint64_t>(now() + 60));
  CHECK(fields.field(2).number() == 3);
  CHECK(fields.field(2).length_delimited() == "c");
  for (const auto& router : {writing, reading}) {
    for (int i = 0; i < 10; ++i) {
      const Pick pick = pick_with(*router, cookie);
      CHECK(address_of(pick) == address_of(first));
      CHECK(pick.set_cookie().empty());
    }
  }
}

TEST_CASE(
    "session: a call with a flawed cookie of Envoy's form goes as without one, and is counted",
    "[e2e][runtime][session][A55-17][A55-45]") {
  using std::string_literals::operator""s;
  const SessionWorld world;
  const auto runtime = start_runtime(world.options());
  const auto router = ready_router(world, *runtime);
  const auto channel = runtime->channel("xds:///orders");
  const auto message = [](const std::string& address) {
    return "\x0a"s + static_cast<char>(address.size()) + address;
  };
  const auto session = [](const std::string& text) {
    return "session=" + absl::Base64Escape(text);
  };
  const auto bad = [&] {
    return metric(*runtime,
                  "signalbox_affinity_picks_total",
                  {"cluster=\"c\"", "result=\"fallback_bad_cookie\""})
        .value_or(0);
  };
  const std::string& address = world.backends[0].address();
  const std::string whole = message(address);
  // The cookie without a flaw is followed. Each row below adds one flaw.
  REQUIRE(address_of(pick_with(*router, session(whole))) == address);
  REQUIRE(bad() == 0);

  const std::vector<std::pair<std::string, std::string>> rows{
      {"cut in its address", whole.substr(0, whole.size() - 1)},
      {"cut in its time", whole + "\x10\x85"},
      {"too long: a cluster of 4200 bytes", whole + "\x1a\xe8\x20" + std::string(4200, 'x')},
      {"a port that is no number", message("127.0.0.1:http")},
      {"a port that is too large", message("127.0.0.1:70000")},
      {"a field that Envoy does not write", whole + "\x22\x03" + "abc"},
      {"gRPC's form and Envoy's", "10.0.0.2:80;<" + whole},
  };
  double expected = 0;
  for (const auto& [flaw, text] : rows) {
    INFO(flaw);
    const Answer answer = call(channel, {.headers = {{"cookie", session(text)}}});
    INFO(answer.text());
    CHECK(answer.ok());
    CHECK(bad() == ++expected);
    CHECK_FALSE(pick_with(*router, session(text)).set_cookie().empty());
    CHECK(bad() == ++expected);
  }
}

TEST_CASE("session: a sealed cookie is of no use for another target",
          "[e2e][runtime][session][sealed]") {
  const SessionWorld world;
  const TemporaryFolder folder;
  world.plane->update(resources(listener_yaml("parcels", "orders", kFilter)));
  RuntimeOptions options = world.options();
  options.session_cookies.key_file = folder.write("keys", keys("a"));
  const auto runtime = start_runtime(std::move(options));
  const auto parcels = runtime->router("xds:///parcels");
  REQUIRE(parcels.ok());
  REQUIRE(sees_all(world, **parcels));
  const std::string cookie = pick_with(*router_of(*runtime), "").set_cookie();
  CHECK(pick_with(*router_of(*runtime), cookie).set_cookie().empty());
  CHECK_FALSE(pick_with(**parcels, cookie).set_cookie().empty());
}

TEST_CASE("session: keys that cannot be used are told and counted, and the last good ones stay",
          "[e2e][runtime][session][sealed]") {
  const SessionWorld world;
  const TemporaryFolder folder;
  Happened<std::string> logged;
  RuntimeOptions options = world.options();
  const std::string path = folder.write("keys", keys("a"));
  std::filesystem::permissions(
      path, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  options.session_cookies.key_file = path;
  options.log = [&](const std::string& text) {
    if (!absl::StrContains(text, ": connected: ")) logged.add(text);
  };
  const auto runtime = start_runtime(std::move(options));
  const auto rejected = [&] {
    return metric(*runtime, "signalbox_config_rejected_total", {"reason=\"seal_keys\""});
  };
  const std::string counter = "signalbox_config_rejected_total{reason=\"seal_keys\"} ";
  // The test's key file is readable by other users. The runtime warns and still uses the file.
  CHECK_THAT(logged.next(), Contains("/keys: others can read it, and so can make cookies"));
  CHECK_THAT(runtime->metrics_text(), Contains(counter + "0"));
  const std::string cookie = pick_with(*router_of(*runtime), "").set_cookie();
  folder.write("keys", "no key\n");
  CHECK_THAT(logged.next(), Contains("/keys: line 1: must be 32 bytes in base64"));
  CHECK(rejected() == 1);
  CHECK(pick_with(*router_of(*runtime), cookie).set_cookie().empty());
}

TEST_CASE("session: what is wrong with a client's cookie is logged, and without its text",
          "[e2e][runtime][session][A55-17]") {
  const SessionWorld world;
  Happened<std::pair<std::string, std::thread::id>> logged;
  RuntimeOptions options = world.options();
  options.log = [&](const std::string& text) {
    if (!absl::StrContains(text, ": connected: ")) logged.add({text, std::this_thread::get_id()});
  };
  const auto runtime = start_runtime(std::move(options));
  pick_with(*router_of(*runtime), "session=evil!\r\n");
  const auto [text, thread] = logged.next();
  // The log runs on another thread, so a call does not wait for it.
  CHECK(thread != std::this_thread::get_id());
  CHECK_THAT(text, Contains("xds:///orders: a call's cookie \"session\" is not used"));
  CHECK_FALSE(absl::StrContains(text, "evil"));
}

TEST_CASE("session: keys that cannot be used are an error of start()",
          "[e2e][runtime][session][sealed]") {
  const TemporaryFolder folder;
  RuntimeOptions options = options_for("127.0.0.1:1");
  const auto why = [&] { return std::string(Runtime::start(options).status().message()); };
  options.session_cookies.key_file = folder.path("none");
  CHECK_THAT(why(), Contains("RuntimeOptions::session_cookies.key_file: ") && Contains("/none"));
  options.session_cookies.key_file = folder.write("keys", keys("a") + "short\n");
  CHECK_THAT(why(), Contains("/keys: line 2: must be 32 bytes in base64, found"));
  options.session_cookies = {.key_file = std::nullopt, .accept_plain = true};
  CHECK_THAT(why(), Contains("accept_plain: without a key_file all cookies are plain"));
  options.session_cookies = {.key_file = folder.write("keys", keys("a")),
                             .form = SessionCookieForm::kEnvoy};
  CHECK_THAT(why(),
             Contains("session_cookies.form: Envoy cannot read cookies that a key_file seals"));
}

}  // namespace signalbox::test::runtime_session_test
