// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/peer_names.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/route_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;

using Names = std::vector<std::string>;

bool allows(const TextMatcher& matcher, const PeerNames& names) {
  return PeerNameCheck({matcher}).check(names).ok();
}

}  // namespace

TEST_CASE("peer names: a DNS name in a certificate may begin with a wildcard", "[lb][tls][A29]") {
  struct Row {
    const char* when;
    const char* pattern;
    const char* name;
    bool matches;
  };

  const auto row = GENERATE(values<Row>({
      {"the same", "a.example.com", "a.example.com", true},
      {"another", "b.example.com", "a.example.com", false},
      {"case does not count", "A.Example.COM", "a.eXample.com", true},
      {"the pattern is absolute", "a.example.com.", "a.example.com", true},
      {"the name is absolute", "a.example.com", "a.example.com.", true},
      {"one label", "*.example.com", "a.example.com", true},
      {"one label, in any case", "*.Example.com", "a.eXAMPLE.com", true},
      {"one label, both absolute", "*.example.com.", "a.example.com.", true},
      {"no label", "*.example.com", "example.com", false},
      {"an empty label", "*.example.com", ".example.com", false},
      {"two labels", "*.example.com", "a.b.example.com", false},
      {"the end only", "*.example.com", "a.badexample.com", false},
      {"part of a label", "a*.example.com", "ab.example.com", false},
      {"part of a label, the other side", "*a.example.com", "ba.example.com", false},
      {"not the first label", "a.*.com", "a.example.com", false},
      {"two wildcards", "*.*.com", "a.example.com", false},
      {"two wildcards, one of them the name's", "*.*.com", "a.*.com", false},
      {"nothing but a wildcard", "*", "com", false},
      {"nothing but an absolute wildcard", "*.", "com", false},
      {"the name has the wildcard", "a.example.com", "*.example.com", false},
      {"the pattern begins with a dot", ".example.com", ".example.com", false},
      {"the name begins with a dot", "example.com", ".example.com", false},
      {"no pattern", "", "", false},
      {"no name", "a.example.com", "", false},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(matches_dns_name(row.pattern, row.name) == row.matches);
  }
}

TEST_CASE("peer names: each kind of matcher compares as it says", "[lb][tls][A29]") {
  struct Row {
    const char* when;
    TextMatcher matcher;
    PeerNames names;
    bool allowed;
  };

  const std::string id = "spiffe://orders/ns/prod";
  const auto row = GENERATE_COPY(values<Row>({
      {"exact, a DNS name", exact("a.example"), {{"a.example"}, {}}, true},
      {"exact, a DNS name as such", exact("A.example."), {{"a.example"}, {}}, true},
      {"exact, a wildcard", exact("a.example"), {{"*.example"}, {}}, true},
      {"exact, another name", exact("b.example"), {{"a.example"}, {}}, false},
      {"exact, a URI", exact(id), {{}, {id}}, true},
      {"exact, a URI in another case", exact("SPIFFE://orders/ns/prod"), {{}, {id}}, false},
      {"exact, in any case", in_any_case(exact("SPIFFE://Orders/ns/prod")), {{}, {id}}, true},
      {"exact, wildcards are of DNS alone", exact("a.example"), {{}, {"*.example"}}, false},
      {"exact, last dots are of DNS alone", exact("a.example."), {{}, {"a.example"}}, false},
      {"prefix", prefix("spiffe://orders/"), {{}, {id}}, true},
      {"prefix of another", prefix("spiffe://users/"), {{}, {id}}, false},
      {"prefix, in any case", in_any_case(prefix("SPIFFE://")), {{}, {id}}, true},
      {"prefix of a DNS name", prefix("a."), {{"a.example"}, {}}, true},
      {"prefix is text, wildcards too", prefix("*."), {{"*.example"}, {}}, true},
      {"suffix", suffix("/prod"), {{}, {id}}, true},
      {"suffix of another", suffix("/test"), {{}, {id}}, false},
      {"suffix does not meet a wildcard", suffix("a.example"), {{"*.example"}, {}}, false},
      {"contains", containing("/ns/"), {{}, {id}}, true},
      {"contains not", containing("/sa/"), {{}, {id}}, false},
      {"regex, the whole", regex("spiffe://[a-z]+/ns/.*"), {{}, {id}}, true},
      {"regex, a part", regex("spiffe://[a-z]+"), {{}, {id}}, false},
      {"the second name", exact("b.example"), {{"a.example", "b.example"}, {}}, true},
      {"no name at all", containing(""), {}, false},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(allows(row.matcher, row.names) == row.allowed);
  }
}

TEST_CASE("peer names: one of several matchers is enough, and none asks for none",
          "[lb][tls][A29]") {
  const PeerNames names{{"a.example"}, {}};
  CHECK(PeerNameCheck({exact("b.example"), suffix(".example")}).check(names).ok());
  CHECK_FALSE(PeerNameCheck({exact("b.example"), suffix(".com")}).check(names).ok());
  CHECK(PeerNameCheck(std::vector<TextMatcher>{}).check(names).ok());
  CHECK(PeerNameCheck(std::vector<TextMatcher>{}).check({}).ok());
}

TEST_CASE("peer names: a refusal says what was found and what was asked for", "[lb][tls][A29]") {
  const PeerNameCheck check({exact("b.example"), regex("c.*")});
  const absl::Status status = check.check({{"a.example"}, {"spiffe://\n"}});
  CHECK(status.code() == absl::StatusCode::kUnauthenticated);
  CHECK(std::string(status.message()) ==
        R"(the server's certificate has "a.example", "spiffe://\n", and match_subject_alt_names )"
        R"(asks for exact "b.example", safe_regex "c.*")");
  CHECK(std::string(PeerNameCheck({exact("b")}).check({}).message()) ==
        R"(the server's certificate has no name, and match_subject_alt_names asks for exact "b")");
  // A server that is not trusted may send many long names; the message has only a few of them.
  const absl::Status many = check.check({Names(1'000, std::string(1'000, 'x')), {}});
  CHECK_THAT(std::string(many.message()), Catch::Contains(" and 992 more"));
  CHECK(many.message().size() < 2'000);
}

}  // namespace signalbox::lb
