// SPDX-License-Identifier: Apache-2.0
//
// A virtual host and a call, both made of the bytes: RouteTable chooses the route that a matcher
// chooses which takes the rules (gRFC A28, A63) one by one, and knows no RE2.

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/route/route_match.hpp"
#include "messages/overloaded.hpp"
#include "tests/fuzz/byte_source.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace signalbox::fuzz {
namespace {

using Kind = TextMatcher::Kind;
using HeaderList = std::vector<std::pair<std::string, std::string>>;

constexpr Kind kKinds[] = {
    Kind::kExact, Kind::kPrefix, Kind::kSuffix, Kind::kContains, Kind::kRegex};
constexpr char kLetters[] = {'a', 'b', 'A', '/', ',', '1', '-', '.'};
constexpr char kRegexLetters[] = {'a', 'b', 'A', '/', ',', '1', '.', '*'};
constexpr const char* kHeaders[] = {"a", "b", "content-type", "c-bin"};
constexpr const char* kValues[] = {
    "", "1", "2", "-1", "9223372036854775807", "9223372036854775808", "a", "application/grpc"};
constexpr std::optional<std::uint32_t> kFractions[] = {std::nullopt, 0, 1'000'000};

class Headers final : public HeaderSource {
 public:
  explicit Headers(HeaderList headers) : headers_(std::move(headers)) {}

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view)> visit) const override {
    for (const auto& [key, value] : headers_) {
      if (key == name) visit(value);
    }
  }

  // All values of a header as one text, as the rules have it.
  std::optional<std::string> joined(const std::string& name) const {
    if (name == "content-type") return "application/grpc";
    if (name.ends_with("-bin")) return std::nullopt;
    std::optional<std::string> text;
    for (const auto& [key, value] : headers_) {
      if (key == name) text = text ? absl::StrCat(*text, ",", value) : value;
    }
    return text;
  }

 private:
  HeaderList headers_;
};

// --- from bytes -------------------------------------------------------------

template <typename Letters>
std::string make_text(ByteSource& bytes, const Letters& letters) {
  std::string text;
  for (std::size_t left = bytes.below(5); left > 0; --left)
    text += bytes.one_of(letters);
  return text;
}

// Letters, dots, and stars behind one of them.
std::string make_regex(ByteSource& bytes) {
  std::string regex;
  for (const char letter : make_text(bytes, kRegexLetters)) {
    if (letter != '*' || (!regex.empty() && regex.back() != '*')) regex += letter;
  }
  return regex;
}

TextMatcher make_matcher(ByteSource& bytes) {
  TextMatcher matcher;
  matcher.kind = bytes.one_of(kKinds);
  matcher.ignore_case = bytes.flip();
  matcher.text = matcher.kind == Kind::kRegex ? make_regex(bytes) : make_text(bytes, kLetters);
  return matcher;
}

HeaderMatcher make_header_matcher(ByteSource& bytes) {
  HeaderMatcher header{.name = bytes.one_of(kHeaders), .matcher = {}, .invert = bytes.flip()};
  switch (bytes.below(3)) {
    case 0:
      header.matcher = make_matcher(bytes);
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
  route.match.path = make_matcher(bytes);
  route.match.fraction_per_million = bytes.one_of(kFractions);
  for (std::size_t left = bytes.below(3); left > 0; --left)
    route.match.headers.push_back(make_header_matcher(bytes));
  return route;
}

// --- the rules, one by one --------------------------------------------------

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return text;
}

bool regex_matches(absl::string_view regex, absl::string_view text) {
  if (regex.empty()) return text.empty();
  const bool first = !text.empty() && (regex[0] == '.' || regex[0] == text[0]);
  if (regex.size() > 1 && regex[1] == '*') {
    return regex_matches(regex.substr(2), text) || (first && regex_matches(regex, text.substr(1)));
  }
  return first && regex_matches(regex.substr(1), text.substr(1));
}

bool text_matches(const TextMatcher& matcher, std::string text) {
  if (matcher.kind == Kind::kRegex) return regex_matches(matcher.text, text);
  std::string wanted = matcher.text;
  if (matcher.ignore_case) {
    wanted = lower(wanted);
    text = lower(text);
  }
  switch (matcher.kind) {
    case Kind::kExact:
      return text == wanted;
    case Kind::kPrefix:
      return text.starts_with(wanted);
    case Kind::kSuffix:
      return text.ends_with(wanted);
    default:
      return text.find(wanted) != std::string::npos;
  }
}

bool range_matches(const IntegerRange& range, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && range.start <= number &&
         number < range.end;
}

bool header_matches(const HeaderMatcher& header, const Headers& headers) {
  const auto value = headers.joined(header.name);
  if (const auto* presence = std::get_if<PresenceMatcher>(&header.matcher))
    return (value.has_value() == presence->present) != header.invert;
  if (!value) return false;
  const auto* range = std::get_if<IntegerRange>(&header.matcher);
  const bool matches = range != nullptr
                           ? range_matches(*range, *value)
                           : text_matches(std::get<TextMatcher>(header.matcher), *value);
  return matches != header.invert;
}

std::optional<std::size_t> expected_route(const VirtualHost& host,
                                          const std::string& path,
                                          const Headers& headers) {
  for (std::size_t i = 0; i < host.routes.size(); ++i) {
    const RouteMatch& match = host.routes[i].match;
    const bool headers_match =
        std::all_of(match.headers.begin(), match.headers.end(), [&](const HeaderMatcher& header) {
          return header_matches(header, headers);
        });
    if (match.fraction_per_million != 0U && headers_match && text_matches(match.path, path))
      return i;
  }
  return std::nullopt;
}

void check_routing(ByteSource bytes) {
  VirtualHost host;
  for (std::size_t left = 1 + bytes.below(4); left > 0; --left)
    host.routes.push_back(make_route(bytes));
  const lb::RouteTable table(host);

  for (std::size_t calls = 1 + bytes.below(4); calls > 0; --calls) {
    const std::string path = make_text(bytes, kLetters);
    HeaderList list;
    for (std::size_t left = bytes.below(4); left > 0; --left) {
      const std::string name = bytes.one_of(kHeaders);
      list.emplace_back(name, bytes.one_of(kValues));
    }
    const Headers headers(std::move(list));
    PickArgs call;
    call.path = path;
    call.headers = &headers;
    call.seed = bytes.below(256);
    const auto expected = expected_route(host, path, headers);
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
