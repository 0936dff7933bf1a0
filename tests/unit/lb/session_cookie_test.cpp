// SPDX-License-Identifier: Apache-2.0
#include "lb/session/session_cookie.hpp"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <arpa/inet.h>
#include <catch2/catch.hpp>

#include "tests/support/property.hpp"
#include "tests/support/route_fixture.hpp"

namespace signalbox::lb::session_cookie_test {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

TEST_CASE("session_cookie: paths match as of RFC 6265, section 5.1.4", "[lb][session][A55-14]") {
  struct Row {
    const char* cookie;
    const char* path;
    bool matches;
  };

  const auto row = GENERATE(values<Row>({
      {"", "/s/M", true},
      {"/", "/s/M", true},
      {"/s/M", "/s/M", true},
      {"/s", "/s/M", true},
      {"/s/", "/s/M", true},
      {"/s/", "/s", false},
      {"/s", "/sx/M", false},
      {"/s/M", "/s/Mx", false},
      {"/s/M", "/s", false},
      {"/S", "/s/M", false},
      {"/other", "/s/M", false},
  }));
  INFO(row.cookie << " and " << row.path);
  CHECK(path_matches(row.path, row.cookie) == row.matches);
}

TEST_CASE("session_cookie: finds the first cookie of its name", "[lb][session][A55-15]") {
  struct Row {
    const char* when;
    TestHeaders::List headers;
    std::optional<std::string> value;
  };

  const auto row = GENERATE(values<Row>({
      {"none", {}, std::nullopt},
      {"another header", {{"set-cookie", "s=1"}}, std::nullopt},
      {"alone", {{"cookie", "s=1"}}, "1"},
      {"among others", {{"cookie", "a=0; s=1; b=2"}}, "1"},
      {"no spaces", {{"cookie", "a=0;s=1;b=2"}}, "1"},
      {"many spaces", {{"cookie", " a=0 ;\t s = 1 ;  b=2"}}, "1"},
      {"twice: the first wins", {{"cookie", "s=1; s=2"}}, "1"},
      {"in two headers: the first wins",
       {{"cookie", "a=0"}, {"cookie", "s=1"}, {"cookie", "s=2"}},
       "1"},
      {"names are told apart by case", {{"cookie", "S=1; s=2"}}, "2"},
      {"a name that begins alike", {{"cookie", "ss=1; s=2"}}, "2"},
      {"a name that ends alike", {{"cookie", "as=1; s=2"}}, "2"},
      {"as it was set", {{"cookie", "s=MQ==; HttpOnly; Path=/; Max-Age=3"}}, "MQ=="},
      {"as others were set", {{"cookie", "a=0; HttpOnly; Path=/"}, {"cookie", "s=1"}}, "1"},
      {"padding is of the value", {{"cookie", "s=MQ=="}}, "MQ=="},
      {"in quotes", {{"cookie", "s=\"1\""}}, "1"},
      {"a quote that does not end", {{"cookie", "s=\""}}, "\""},
      {"nor does this one", {{"cookie", "s=\"1"}}, "\"1"},
      {"a quote that has not begun", {{"cookie", "s=1\""}}, "1\""},
      {"spaces around it", {{"cookie", "s= 1"}, {"cookie", "s=2"}}, "1"},
      {"spaces after it", {{"cookie", "s=1\t; b=2"}}, "1"},
      {"spaces and quotes in it", {{"cookie", "s=a \"b\" c; b=2"}}, "a \"b\" c"},
      {"of many bytes", {{"cookie", "s=0123456789abcdefghij"}}, "0123456789abcdefghij"},
      {"of many bytes, and more", {{"cookie", "s=0123456789abcdef;g"}}, "0123456789abcdef"},
      {"no value", {{"cookie", "s="}}, ""},
      {"no equals sign", {{"cookie", "s"}}, ""},
      {"in two headers, and nothing before it", {{"cookie", "s=1"}, {"cookie", "s=2"}}, "1"},
      {"empty ones", {{"cookie", ";;"}, {"cookie", ""}, {"cookie", "; s=1;"}}, "1"},
      {"its name in another's value", {{"cookie", "a=s=1"}}, std::nullopt},
  }));
  DYNAMIC_SECTION(row.when) {
    const TestHeaders headers(row.headers);
    const FoundCookie found = find_cookie(headers, "s");
    CHECK(found.value.has_value() == row.value.has_value());
    if (found.value && row.value) CHECK(std::string(*found.value) == *row.value);
    CHECK_FALSE(found.is_cut);
  }
}

std::string crumbs(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += "a=0;";
  return text;
}

TEST_CASE("session_cookie: looks at so many cookies, and at so many bytes, of all headers",
          "[lb][session][limits][B9]") {
  struct Row {
    const char* when;
    TestHeaders::List headers;
    bool is_found;
  };

  const std::string filler(kMostCookieBytes - 7, 'x');
  const auto row = GENERATE_COPY(values<Row>({
      {"the 128th cookie", {{"cookie", crumbs(127) + "s=1"}}, true},
      {"the 129th cookie", {{"cookie", crumbs(128) + "s=1"}}, false},
      {"the 129th, in another header", {{"cookie", crumbs(128)}, {"cookie", "s=1"}}, false},
      {"the last byte", {{"cookie", "a=" + filler + ";s=12"}}, true},
      {"a byte more", {{"cookie", "a=" + filler + ";s=123"}}, false},
      {"a byte more, in another header", {{"cookie", "a=" + filler}, {"cookie", "s=12345"}}, false},
      {"behind a header that is too long",
       {{"cookie", "a=" + std::string(kMostCookieBytes, 'x')}, {"cookie", "s=1"}},
       false},
      {"a value that is too long", {{"cookie", "s=" + std::string(kMostCookieBytes, 'x')}}, false},
  }));
  DYNAMIC_SECTION(row.when) {
    const TestHeaders headers(row.headers);
    const FoundCookie found = find_cookie(headers, "s");
    CHECK(found.value.has_value() == row.is_found);
    CHECK(found.is_cut != row.is_found);
  }
  const TestHeaders exactly{{"cookie", crumbs(128)}};
  CHECK_FALSE(find_cookie(exactly, "s").is_cut);
}

// What the cookie's value says: "hosts | cluster", or the error.
std::string read(absl::string_view value) {
  std::string text;
  if (const auto flaw = decode_cookie(value, text)) return std::string(said_of(*flaw));
  CookieHost host;
  if (const auto flaw = parse_cookie_host(text, host)) return std::string(said_of(*flaw));
  const char* const form = host.form == CookieForm::kEnvoy ? " (Envoy)" : "";
  return absl::StrCat(host.hosts, " | ", host.cluster, form);
}

// The errors of a text that names no host, and of a text that is no message.
const std::string kNone(said_of(CookieFlaw::kHost));
const std::string kNoMessage(said_of(CookieFlaw::kMessage));

TEST_CASE("session_cookie: reads the three forms, and Envoy's",
          "[lb][session][A55-17][A55-45][A60][A61][D6]") {
  struct Row {
    std::string text;
    std::string host;
  };

  std::string many = "1.1.1.1:1";
  while (many.size() < 139)
    many += ",1.1.1.1:1";
  const auto row = GENERATE_COPY(values<Row>({
      {"10.0.0.1:80", "10.0.0.1:80 | "},
      {"[2001:db8::1]:80", "[2001:db8::1]:80 | "},
      {"10.0.0.1:80;orders", "10.0.0.1:80 | orders"},
      {"10.0.0.1:80;a;b", "10.0.0.1:80 | a;b"},
      {"10.0.0.1:80;", "10.0.0.1:80 | "},
      {"10.0.0.1:80,[::1]:81;orders", "10.0.0.1:80,[::1]:81 | orders"},
      {"10.0.0.1:80;cluster:orders", "10.0.0.1:80 | cluster:orders"},
      {std::string("\x0a\x0b", 2) + "10.0.0.1:80", "10.0.0.1:80 |  (Envoy)"},
      {std::string("\x0a\x0b", 2) + "10.0.0.1:80\x10\x2a", "10.0.0.1:80 |  (Envoy)"},
      {std::string("\x10\x2a\x0a\x0b", 4) + "10.0.0.1:80", "10.0.0.1:80 |  (Envoy)"},
      {std::string("\x0a\x0e", 2) + "[2001:db8::]:1", "[2001:db8::]:1 |  (Envoy)"},
      {std::string("\x0a\x0b", 2) + "10.0.0.1:80\x10\x2a\x1a\x06orders",
       "10.0.0.1:80 | orders (Envoy)"},
      {std::string("\x0a\x0c", 2) + "10.0.0.1:80", kNoMessage},
      // An Envoy cookie has only one address, so a list of them makes it invalid.
      {std::string("\x0a\x8b\x01", 3) + many, kNoMessage},
      {std::string("\x0a\x8b", 2) + many, kNoMessage},
      {"\x0a", kNoMessage},
      {"", kNone},
      {";orders", kNone},
      {",10.0.0.1:80", kNone},
      {"10.0.0.1:80,", kNone},
      {"10.0.0.1:80,,10.0.0.2:80", kNone},
      {"10.0.0.1:80, 10.0.0.2:80", kNone},
      {"10.0.0.1:80,host:80", kNone},
      {" 10.0.0.1:80", kNone},
      {"localhost:80", kNone},
  }));
  INFO(row.text);
  CHECK(read(absl::Base64Escape(row.text)) == row.host);
}

// "10.0.0.1:80,10.0.0.2:80,…"
std::string addresses(std::size_t count) {
  std::string text;
  for (std::size_t i = 1; i <= count; ++i)
    absl::StrAppend(&text, i == 1 ? "" : ",", "10.0.0.", i, ":80");
  return text;
}

TEST_CASE("session_cookie: names so many addresses, and what names more is not used",
          "[lb][session][limits][A55-17][A61]") {
  static_assert(kMostCookieHosts == 8, "said_of() says the number");
  const std::string most = addresses(kMostCookieHosts);
  const std::string too_many(said_of(CookieFlaw::kTooManyHosts));
  CHECK(read(absl::Base64Escape(most + ";orders")) == most + " | orders");
  for (const std::string& text : {addresses(kMostCookieHosts + 1),
                                  addresses(kMostCookieHosts + 1) + ";orders",
                                  addresses(250) + ";orders",
                                  most + ",",
                                  most + ",not looked at"}) {
    INFO(text);
    CHECK(read(absl::Base64Escape(text)) == too_many);
  }
  // An error in one of the first kMostCookieHosts addresses is reported, and not their number.
  CHECK(read(absl::Base64Escape("host:80," + addresses(kMostCookieHosts))) == kNone);
}

// A protobuf message: `before`, and then field 1 with the address.
std::string message(const std::string& before, const std::string& address) {
  return before + '\x0a' + static_cast<char>(address.size()) + address;
}

TEST_CASE("session_cookie: what only looks like Envoy's cookie names no host",
          "[lb][session][A55-17][A55-45]") {
  struct Row {
    const char* what;
    std::string text;
  };

  const std::string good = message("", "10.0.0.1:80");
  const auto row = GENERATE_COPY(values<Row>({
      {"no address", "\x10\x2a"},
      {"an empty address", message("", "")},
      {"a port that is no number", message("", "10.0.0.1:http")},
      {"a port beyond the last", message("", "10.0.0.1:65536")},
      {"no port", message("", "10.0.0.1")},
      {"a name", message("", "orders.internal:80")},
      {"two addresses in one", message("", "10.0.0.1:80,10.0.0.2:80")},
      {"gRPC's text", message("", "10.0.0.1:80;orders")},
      {"two addresses", good + good},
      {"an address that is a number", "\x08\x01" + good},
      {"a time that is a text", good + "\x12\x01" + "5"},
      {"two times", good + "\x10\x2a\x10\x2a"},
      {"a cluster that is a number", good + "\x18\x01"},
      {"two clusters", good + "\x1a\x01" + "a" + "\x1a\x01" + "b"},
      {"a field that is not known", good + "\x20\x01"},
      {"a text that is not known", good + "\x22\x01" + "x"},
      {"a group", good + "\x23\x24"},
      {"a time that is cut", good + "\x10\x80"},
      {"a cluster that is cut", good + "\x1a\x07orders"},
      {"a wire type that is none", good + "\x0f"},
  }));
  DYNAMIC_SECTION(row.what) {
    CHECK(read(absl::Base64Escape(row.text)) == kNoMessage);
  }
  CHECK(read(absl::Base64Escape(good)) == "10.0.0.1:80 |  (Envoy)");
}

TEST_CASE("session_cookie: of each cut of Envoy's cookie only those with the whole address name it",
          "[lb][session][A55-17][A55-45]") {
  std::string whole;
  write_envoy_cookie("10.0.0.1:80", "orders", 300, whole);
  const auto reads = [&](std::size_t size) {
    return read(absl::Base64Escape(whole.substr(0, size)));
  };
  CHECK(reads(whole.size()) == "10.0.0.1:80 | orders (Envoy)");
  for (std::size_t size = 1; size < whole.size(); ++size) {
    INFO(size);
    const bool ends_with_field = size == 13 || size == 16;
    CHECK(reads(size) == (ends_with_field ? "10.0.0.1:80 |  (Envoy)" : kNoMessage));
  }
}

TEST_CASE("session_cookie: a text that gRPC and Envoy would read as two hosts names none",
          "[lb][session][A55-17][A55-45]") {
  // protobuf reads this text as a field with a number of eight bytes, a field with a number of one
  // byte, and the beginning of a group that '<' ends.
  const std::string grpc = "10.0.0.1:80;";
  const std::string both = message(grpc + "<", "10.0.0.2:80");
  CHECK(read(absl::Base64Escape(both)) == std::string(said_of(CookieFlaw::kTwoForms)));
  // Without the end of the group the text is no message, so it is a cookie in gRPC's form.
  const std::string one = message(grpc, "10.0.0.2:80");
  CHECK(absl::StartsWith(read(absl::Base64Escape(one)), "10.0.0.1:80 | "));
}

TEST_CASE("session_cookie: a cluster is meant with A60's \"cluster:\" before it or without",
          "[lb][session][A55-46][A60]") {
  const CookieHost with{"10.0.0.1:80", "cluster:orders"};
  CHECK(with.names_cluster("orders"));
  CHECK(with.names_cluster("cluster:orders"));
  CHECK_FALSE(with.names_cluster("cluster:"));
  CHECK_FALSE(with.names_cluster(""));
  const CookieHost without{"10.0.0.1:80", "orders"};
  CHECK(without.names_cluster("orders"));
  CHECK_FALSE(without.names_cluster("cluster:orders"));
  CHECK_FALSE(without.names_cluster("order"));
}

TEST_CASE("session_cookie: base64 with or without padding, and nothing else",
          "[lb][session][A55-17]") {
  CHECK(read("MTAuMC4wLjE6OA==") == "10.0.0.1:8 | ");
  CHECK(read("MTAuMC4wLjE6OA") == "10.0.0.1:8 | ");
  std::string text;
  for (const char* wrong : {"MTAuMC4wLjE6OA=", "MTAuMC4wLjE6O!", "%%%%", "MTAuM", "-_-_"}) {
    INFO(wrong);
    CHECK(decode_cookie(wrong, text) == CookieFlaw::kEncoding);
  }
}

TEST_CASE("session_cookie: a value that would decode to 4 KiB is not decoded",
          "[lb][session][limits]") {
  std::string text;
  const std::string longest(kLongestCookieValue, 'A');
  CHECK(decode_cookie(longest, text) == std::nullopt);
  CHECK(text.size() < 4096);
  const std::size_t had = text.capacity();
  CHECK(decode_cookie(longest + "AAAA", text) == CookieFlaw::kTooLong);
  CHECK(text.capacity() == had);
}

TEST_CASE("session_cookie: an address is an IP address and a port", "[lb][session][A55-17]") {
  for (const char* good : {"0.0.0.0:0",
                           "255.255.255.255:65535",
                           "[::]:1",
                           "[::ffff:1.2.3.4]:1",
                           "[1:2:3:4:5:6:7:8]:1",
                           "[1:2:3:4:5:6:1.2.3.4]:1",
                           "[1::8]:1",
                           "[1:2:3:4:5:6:7::]:1",
                           "[FE80::a]:80"}) {
    INFO(good);
    CHECK(is_ip_and_port(good));
  }
  for (const char* bad : {"",
                          ":",
                          "1.2.3.4",
                          "1.2.3.4:",
                          "1.2.3.4:65536",
                          "1.2.3.4:-1",
                          "1.2.3.4:+1",
                          "1.2.3.4: 1",
                          "1.2.3.4:123456",
                          "1.2.3.4:000080",
                          "1.2.3.4:4294967376",
                          "1.2.3:1",
                          "1.2.3.4.5:1",
                          "1.2.3.256:1",
                          "1.2.3.04:1",
                          "1.2.3.:1",
                          "1.2..3:1",
                          "a.b.c.d:1",
                          "::1:80",
                          "[::1]",
                          "[::1:80",
                          "::1]:80",
                          "[1.2.3.4]:1",
                          "[]:1",
                          "[:]:1",
                          "[:::]:1",
                          "[1::2::3]:1",
                          "[1:2:3:4:5:6:7]:1",
                          "[1:2:3:4:5:6:7:8:9]:1",
                          "[1:2:3:4:5:6:7:8::]:1",
                          "[12345::]:1",
                          "[g::]:1",
                          "[1:]:1",
                          "[:1]:1",
                          "[1.2.3.4::]:1",
                          "[::1.2.3]:1",
                          "[fe80::1%eth0]:80"}) {
    INFO(bad);
    CHECK_FALSE(is_ip_and_port(bad));
  }
}

TEST_CASE("session_cookie: IP addresses are those that the system knows",
          "[lb][session][property]") {
  const auto is_known = [](const std::string& ip) {
    in6_addr v6{};
    return inet_pton(AF_INET6, ip.c_str(), &v6) == 1;
  };
  CHECK(test::holds("an IPv6 address is one here as there", 2'000, [&] {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        ":", "::", ":", "1", "ab", "0", "ffff", "12345", "1.2.3.4", ".", "256"));
    std::string ip;
    for (const std::string& piece : pieces)
      ip += piece;
    INFO(ip);
    RC_ASSERT(is_ip_and_port("[" + ip + "]:80") == is_known(ip));
  }));
}

rc::Gen<std::string> any_host() {
  return rc::gen::apply(
      [](bool is_v6, std::array<std::uint16_t, 4> parts, std::uint16_t port) {
        return is_v6 ? absl::StrCat(
                           "[2001:db8::", absl::Hex(parts[0]), ":", absl::Hex(parts[1]), "]:", port)
                     : absl::StrCat(parts[0] % 256,
                                    ".",
                                    parts[1] % 256,
                                    ".",
                                    parts[2] % 256,
                                    ".",
                                    parts[3] % 256,
                                    ":",
                                    port);
      },
      rc::gen::arbitrary<bool>(),
      rc::gen::arbitrary<std::array<std::uint16_t, 4>>(),
      rc::gen::inRange<std::uint16_t>(1, 65535));
}

// Reads the value of a cookie as a pick does.
CookieHost host_in(const std::string& value, std::string& text) {
  RC_ASSERT_FALSE(decode_cookie(value, text).has_value());
  CookieHost host;
  RC_ASSERT_FALSE(parse_cookie_host(text, host).has_value());
  return host;
}

TEST_CASE("session_cookie: what was written is read", "[lb][session][property][A55-17][A55-22]") {
  CHECK(test::holds("a cookie in gRPC's form", 500, [] {
    const auto count = *rc::gen::inRange<std::size_t>(1, kMostCookieHosts + 1);
    const auto each = *rc::gen::container<std::vector<std::string>>(count, any_host());
    const std::string hosts = absl::StrJoin(each, ",");
    const auto cluster = *rc::gen::arbitrary<std::string>();
    std::string text;
    const CookieHost host = host_in(plain_cookie(hosts, cluster), text);
    RC_ASSERT(host.form == CookieForm::kGrpc);
    RC_ASSERT(host.hosts == hosts);
    RC_ASSERT(host.cluster == cluster);
    RC_ASSERT(host.names_hosts(hosts));
    RC_ASSERT(host.names_cluster(cluster));
  }));
  CHECK(test::holds("a cookie in Envoy's form", 500, [] {
    const auto address = *any_host();
    const auto cluster = *rc::gen::arbitrary<std::string>();
    std::string written;
    write_envoy_cookie(address, cluster, *rc::gen::arbitrary<std::uint64_t>(), written);
    std::string text;
    const CookieHost host = host_in(absl::Base64Escape(written), text);
    RC_ASSERT(host.form == CookieForm::kEnvoy);
    RC_ASSERT(host.hosts == address);
    RC_ASSERT(host.cluster == cluster);
  }));
}

TEST_CASE("session_cookie: what follows the value of a Set-Cookie", "[lb][session][A55-22]") {
  CHECK(attributes_of({"s", "", 0s}) == "; HttpOnly");
  CHECK(attributes_of({"s", "/", 0s}) == "; HttpOnly; Path=/");
  CHECK(attributes_of({"s", "", 120s}) == "; HttpOnly; Max-Age=120");
  CHECK(attributes_of({"s", "/p", 1900ms}) == "; HttpOnly; Path=/p; Max-Age=1");
  CHECK(attributes_of({"s", "", 999ms}) == "; HttpOnly");
}

}  // namespace
}  // namespace signalbox::lb::session_cookie_test
