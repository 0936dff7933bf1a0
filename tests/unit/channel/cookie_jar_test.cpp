// SPDX-License-Identifier: Apache-2.0
#include "signalbox/cookie_jar.hpp"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/session/session_cookie.hpp"
#include "xds/limits.hpp"

namespace signalbox {
namespace {

using namespace std::chrono_literals;
using Catch::Contains;

// A jar, and a clock that the test sets.
struct TimedJar {
  CookieJar::Clock::time_point now = CookieJar::Clock::time_point(1'800'000'000s);
  CookieJar jar{[this] { return now; }};
};

std::string header_after(const std::vector<std::string>& saved, const std::string& path) {
  TimedJar timed;
  for (const std::string& set_cookie : saved) {
    INFO(set_cookie);
    CHECK(timed.jar.save(set_cookie).ok());
  }
  return timed.jar.cookie_header(path);
}

}  // namespace

TEST_CASE("cookie jar: what is set is sent, by name and path", "[channel][cookie_jar][A55-42]") {
  struct Row {
    const char* what;
    std::vector<std::string> saved;
    std::string path;
    std::string header;
  };

  const auto row = GENERATE(values<Row>({
      {"nothing", {}, "/", ""},
      {"one", {"a=1"}, "/x/Y", "a=1"},
      {"the filter's", {"s=MTIuMC4wLjE6ODA7Yw==; HttpOnly"}, "/x/Y", "s=MTIuMC4wLjE6ODA7Yw=="},
      {"values keep what they are", {"a=\"x=y, z\""}, "/", "a=\"x=y, z\""},
      {"an empty value", {"a="}, "/", "a="},
      {"white space is no part of it", {"  a =  1  ; Path = /x "}, "/x", "a=1"},
      {"in the order in which they came", {"b=1", "a=2", "b=3"}, "/", "b=3; a=2"},
      {"names have letter cases", {"a=1", "A=2"}, "/", "a=1; A=2"},
      {"longer paths first", {"a=1", "b=2; Path=/x/Y", "c=3; Path=/x"}, "/x/Y", "b=2; c=3; a=1"},
      {"equal names, other paths", {"a=1; Path=/x", "a=2; Path=/y", "a=3; Path=/x"}, "/x", "a=3"},
      {"the path itself", {"a=1; Path=/x"}, "/x", "a=1"},
      {"below the path", {"a=1; Path=/x"}, "/x/Y", "a=1"},
      {"below a path with a slash", {"a=1; Path=/x/"}, "/x/Y", "a=1"},
      {"not the path", {"a=1; Path=/x"}, "/xy", ""},
      {"not below it", {"a=1; Path=/x/"}, "/x", ""},
      {"paths have letter cases", {"a=1; Path=/X"}, "/x", ""},
      {"a query is no part of the path", {"a=1; Path=/x"}, "/x?y=/z", "a=1"},
      {"nobody knows the path", {"a=1; Path=/x", "b=2; Path=/longer"}, "", "b=2; a=1"},
      {"a path that is none", {"a=1; Path=x", "b=2; Path=", "c=3; Path"}, "/", "a=1; b=2; c=3"},
      {"the last path counts", {"a=1; Path=/x; path=/y"}, "/y", "a=1"},
      {"other attributes do not", {"a=1; Secure; Domain=b.example; SameSite=Lax;"}, "/", "a=1"},
  }));
  INFO(row.what);
  CHECK(header_after(row.saved, row.path) == row.header);
}

TEST_CASE("cookie jar: Max-Age is a cookie's time, by the wall clock",
          "[channel][cookie_jar][A55-42][B6]") {
  struct Row {
    const char* attribute;
    CookieJar::Clock::duration lasts;  // max(): for ever.
  };

  constexpr auto kForever = CookieJar::Clock::duration::max();
  const auto row = GENERATE_COPY(values<Row>({
      {"", kForever},
      {"; Max-Age=60", 60s},
      {"; max-age= 60 ; HttpOnly", 60s},
      {"; Max-Age=60; Max-Age=5", 5s},
      {"; Max-Age=60; Max-Age=soon", 60s},
      {"; Max-Age=0; Max-Age=", 0s},
      {"; Max-Age=60; Max-Age=99999999999999999999", kForever},
      {"; Max-Age=0", 0s},
      {"; Max-Age=-1", 0s},
      {"; Max-Age=-99999999999999999999", 0s},
      {"; Max-Age=99999999999999999999", kForever},
      {"; Max-Age=9223372036854775807", kForever},
      {"; Max-Age=", kForever},
      {"; Max-Age=-", kForever},
      {"; Max-Age=soon", kForever},
      {"; Max-Age=6 0", kForever},
      {"; Max-Age=+60", kForever},
  }));
  INFO(row.attribute);
  TimedJar timed;
  CHECK(timed.jar.save(absl::StrCat("a=1", row.attribute)).ok());
  const bool is_eternal = row.lasts == kForever;
  timed.now += is_eternal ? CookieJar::Clock::duration(1'000'000h) : row.lasts;
  CHECK(timed.jar.cookie_header("/") == (is_eternal ? "a=1" : ""));
  if (is_eternal || row.lasts == 0s) return;
  timed.now -= 1ns;
  CHECK(timed.jar.cookie_header("/") == "a=1");
}

TEST_CASE("cookie jar: a cookie is taken back by one that has no time",
          "[channel][cookie_jar][A55-42]") {
  CHECK(header_after({"a=1", "a=; Max-Age=0"}, "/").empty());
  CHECK(header_after({"a=1; Path=/x", "a=2", "a=; Max-Age=0"}, "/x") == "a=1");
  CHECK(header_after({"a=1; Max-Age=5", "a=2"}, "/") == "a=2");
}

TEST_CASE("cookie jar: what is malformed is told, without its value, and changes nothing",
          "[channel][cookie_jar][A55-42]") {
  struct Row {
    std::string set_cookie;
    std::string says;
  };

  const auto row = GENERATE(values<Row>({
      {"", "has no '='"},
      {"secret", "has no '='"},
      {"; a=secret", "has no '='"},
      {"=secret", "'' is no name"},
      {"a b=secret", "'a b' is no name"},
      {"a,b=secret", "'a,b' is no name"},
      {"a=secret\r\nhost: b", "not printable ASCII"},
      {"a=secret\x7f", "not printable ASCII"},
      {"a=secret; Path=/\xc3\xa4", "not printable ASCII"},
      {std::string("a=secret\0", 9), "not printable ASCII"},
  }));
  TimedJar timed;
  CHECK(timed.jar.save("a=1").ok());
  const absl::Status status = timed.jar.save(row.set_cookie);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  CHECK_THAT(message, Contains("Set-Cookie: ") && Contains(row.says) && Contains("NAME=VALUE"));
  CHECK_THAT(message, !Contains("secret"));
  CHECK(timed.jar.cookie_header("/") == "a=1");
}

TEST_CASE("cookie jar: it is bounded, and what is in it stays", "[channel][cookie_jar][A55-42]") {
  TimedJar timed;
  CookieJar& jar = timed.jar;
  const auto refused = [&](const std::string& set_cookie, const std::string& why) {
    const absl::Status status = jar.save(set_cookie);
    CHECK(status.code() == absl::StatusCode::kResourceExhausted);
    CHECK_THAT(std::string(status.message()), Contains("Set-Cookie: ") && Contains(why));
  };
  SECTION("the length of one") {
    const std::string longest = "a=" + std::string(CookieJar::kLongestCookie - 2, 'x');
    CHECK(jar.save(longest).ok());
    refused(longest + "x", "has 8193 bytes, more than 8192");
    CHECK(jar.cookie_header("/") == longest);
  }
  SECTION("whatever a session's cookie may be") {
    const std::string name(xds::kMaxNameLength, 's');
    const std::string path = "/" + std::string(xds::kMaxNameLength - 1, 'p');
    const std::string longest = name + "=" + std::string(lb::kLongestCookieValue, 'A');
    CHECK(jar.save(longest + "; HttpOnly; Path=" + path + "; Max-Age=315576000000").ok());
    CHECK(jar.cookie_header(path) == longest);
  }
  SECTION("their number") {
    CHECK(jar.save("brief=1; Max-Age=10").ok());
    for (std::size_t i = 1; i < CookieJar::kMostCookies; ++i)
      CHECK(jar.save(absl::StrCat("c", i, "=", i)).ok());
    refused("more=1", "no room for 'more': the jar has 50 cookies");
    CHECK(jar.save("more=; Max-Age=0").ok());  // Max-Age=0 removes a cookie, which needs no room.
    CHECK(jar.save("c1=other").ok());
    timed.now += 10s;
    CHECK(jar.save("more=1").ok());
    CHECK_THAT(jar.cookie_header("/"), Contains("c1=other") && Contains("more=1"));
  }
  SECTION("their size") {
    const std::string half(CookieJar::kMostBytes / 2 - 10, 'x');
    CHECK(jar.save("a=" + half).ok());
    CHECK(jar.save("b=" + half).ok());
    CHECK(jar.save("c=" + std::string(17, 'x')).ok());
    refused("d=", "no room for 'd': the jar's limit is 8192 bytes");
    CHECK(jar.save("c=" + std::string(17, 'y')).ok());
    refused("c=" + std::string(18, 'z'), "the jar's limit is 8192 bytes");
    CHECK(jar.save("a=1").ok());
  }
}

TEST_CASE("cookie jar: the calls of a session may run at once", "[channel][cookie_jar][A55-42]") {
  CookieJar jar;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&jar, thread] {
      for (int i = 0; i < 1000; ++i) {
        jar.save(absl::StrCat("a=", i)).IgnoreError();
        jar.save(absl::StrCat("b", thread, "=", i, "; Path=/x")).IgnoreError();
        jar.cookie_header("/x");
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  const std::string header = jar.cookie_header("/x");
  CHECK_THAT(header, Contains("a=999"));
  for (int thread = 0; thread < 4; ++thread)
    CHECK_THAT(header, Contains(absl::StrCat("b", thread, "=999")));
}

}  // namespace signalbox
