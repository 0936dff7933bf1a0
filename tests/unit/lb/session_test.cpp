// SPDX-License-Identifier: Apache-2.0
#include "lb/route/session.hpp"

#include <catch2/catch.hpp>

#include "tests/support/session_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

TEST_CASE_METHOD(SessionFixture,
                 "session: a call without a cookie gets one, and it leads back",
                 "[lb][session][A55-16][A55-21][A55-24]") {
  add("a", "10.0.0.1:80");
  add("a", "10.0.0.2:80");
  configure(to("a"), session_by("s"));
  const std::string set_cookie = call("").set_cookie();
  CHECK(set_cookie == "s=" + base64("10.0.0.1:80;a") + "; HttpOnly");
  const Pick again = call(set_cookie);
  CHECK(address_of(again) == "10.0.0.1:80");
  CHECK(again.set_cookie().empty());
  CHECK(address_of(call("s=" + base64("10.0.0.2:80;a"))) == "10.0.0.2:80");
}

}  // namespace
}  // namespace signalbox::lb
