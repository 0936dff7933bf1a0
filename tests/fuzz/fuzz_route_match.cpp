// SPDX-License-Identifier: Apache-2.0
//
// A virtual host and one to four calls, made of the bytes. RouteTable must choose the same route as
// route_model, which tries the rules (gRFC A28, A63) one by one and does not use RE2.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/route/route_match.hpp"
#include "tests/fuzz/byte_source.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/route_model.hpp"

namespace signalbox::fuzz {
namespace {

using Kind = TextMatcher::Kind;

constexpr Kind kPathKinds[] = {Kind::kExact, Kind::kPrefix, Kind::kRegex};
constexpr Kind kKinds[] = {
    Kind::kExact, Kind::kPrefix, Kind::kSuffix, Kind::kContains, Kind::kRegex};
constexpr char kLetters[] = {'a', 'b', 'A', '/', ',', '1', '-', '.'};
constexpr char kRegexLetters[] = {'a', 'b', 'A', '/', ',', '1', '.', '*'};
constexpr const char* kHeaders[] = {"a", "b", "content-type", "c-bin"};
constexpr const char* kValues[] = {
    "", "1", "2", "-1", "9223372036854775807", "9223372036854775808", "a", "application/grpc"};
constexpr std::optional<std::uint32_t> kFractions[] = {std::nullopt, 0, 1'000'000, 500'000};

// --- from bytes -------------------------------------------------------------

template <typename Letters>
std::string make_text(ByteSource& bytes, const Letters& letters) {
  std::string text;
  for (std::size_t left = bytes.below(5); left > 0; --left)
    text += bytes.one_of(letters);
  return text;
}

// A pattern of plain characters and dots; a star may follow each of them.
std::string make_regex(ByteSource& bytes) {
  std::string regex;
  for (const char letter : make_text(bytes, kRegexLetters)) {
    if (letter != '*' || (!regex.empty() && regex.back() != '*')) regex += letter;
  }
  return regex;
}

template <typename Kinds>
TextMatcher make_matcher(ByteSource& bytes, const Kinds& kinds) {
  TextMatcher matcher;
  matcher.kind = bytes.one_of(kinds);
  matcher.ignore_case = bytes.flip();
  matcher.text = matcher.kind == Kind::kRegex ? make_regex(bytes) : make_text(bytes, kLetters);
  return matcher;
}

HeaderMatcher make_header_matcher(ByteSource& bytes) {
  HeaderMatcher header{.name = bytes.one_of(kHeaders), .matcher = {}, .invert = bytes.flip()};
  switch (bytes.below(3)) {
    case 0:
      header.matcher = make_matcher(bytes, kKinds);
      break;
    case 1:
      header.matcher = IntegerRange{static_cast<std::int64_t>(bytes.below(4)) - 2,
                                    static_cast<std::int64_t>(bytes.below(4))};
      break;
    default:
      header.matcher = PresenceMatcher{bytes.flip()};
  }
  return header;
}

Route make_route(ByteSource& bytes) {
  Route route;
  route.match.path = make_matcher(bytes, kPathKinds);
  route.match.fraction_per_million = bytes.one_of(kFractions);
  for (std::size_t left = bytes.below(3); left > 0; --left)
    route.match.headers.push_back(make_header_matcher(bytes));
  return route;
}

void check_routing(ByteSource bytes) {
  VirtualHost host;
  // Up to 16 routes, so that one host can have many regular expressions.
  for (std::size_t left = 1 + bytes.below(16); left > 0; --left)
    host.routes.push_back(make_route(bytes));
  const lb::RouteTable table(host);

  for (std::size_t calls = 1 + bytes.below(4); calls > 0; --calls) {
    const std::string path = make_text(bytes, kLetters);
    testing::TestHeaders::List list;
    for (std::size_t left = bytes.below(4); left > 0; --left) {
      const std::string name = bytes.one_of(kHeaders);
      list.emplace_back(name, bytes.one_of(kValues));
    }
    const testing::TestHeaders headers(std::move(list));
    PickArgs call;
    call.path = path;
    call.headers = &headers;
    call.seed = bytes.below(256);
    const auto expected = testing::expected_route(host, path, headers, call.seed);
    const auto found = table.find(call);
    const auto said = [](std::optional<std::size_t> place) {
      return place ? std::to_string(*place) : "none";
    };
    SIGNALBOX_FUZZ_EXPECT(found == expected,
                          "A28: the first route that matches",
                          absl::StrCat(said(found), ", not ", said(expected), ", for ", path));
  }
}

}  // namespace
}  // namespace signalbox::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  signalbox::fuzz::check_routing(signalbox::fuzz::ByteSource(data, size));
  return 0;
}
