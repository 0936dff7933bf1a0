// SPDX-License-Identifier: Apache-2.0
#include "channel/http_filters.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/filter_fixture.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::channel {
namespace {

using signalbox::testing::ScriptedFilter;

CustomHttpFilter filter(
    std::string type, std::function<void(FilterCall&)> script = [](FilterCall&) {}) {
  return {.type = std::move(type), .parse = [script](const RawFilterConfig&) {
            return std::make_shared<const ScriptedFilter>(script);
          }};
}

std::string error_of(const std::vector<CustomHttpFilter>& filters) {
  metrics::Instruments instruments;
  const auto registered = register_http_filters(filters, instruments);
  CHECK((registered.ok() || absl::IsInvalidArgument(registered.status())));
  return std::string(registered.status().message());
}

// Registers a filter with this parser, and returns the parser's status for an empty configuration.
absl::Status parsed(CustomHttpFilter::Parse parse) {
  metrics::Instruments instruments;
  CustomHttpFilter own = filter("com.example.One");
  own.parse = std::move(parse);
  const auto registered = register_http_filters({own}, instruments);
  return (*registered)->at("com.example.One").parse({}).status();
}

}  // namespace

TEST_CASE("http_filters: those that are registered are parsed, and so are their overrides",
          "[channel][custom][A39]") {
  metrics::Instruments instruments;
  CustomHttpFilter plain = filter("com.example.Plain");
  CustomHttpFilter same = filter("com.example.Same");
  same.parse_override = same.parse;
  CustomHttpFilter own = filter("com.example.Own");
  own.parse_override = own.parse;
  own.override_type = "com.example.OwnPerRoute";
  const auto registered = register_http_filters({plain, same, own}, instruments);
  REQUIRE(registered.ok());
  const xds::CustomFilters& filters = **registered;
  CHECK(filters.size() == 3);
  CHECK(filters.at("com.example.Plain").parse({}).ok());
  CHECK(filters.at("com.example.Plain").override_type.empty());
  CHECK(filters.at("com.example.Same").override_type == "com.example.Same");
  CHECK(filters.at("com.example.Own").override_type == "com.example.OwnPerRoute");
  CHECK(filters.at("com.example.Own").parse_override({}).ok());
}

TEST_CASE("http_filters: what cannot be registered is named", "[channel][custom][A39]") {
  CHECK(error_of({}).empty());
  CHECK(error_of({filter("a"), filter("")}) == "http_filters[1].type: must be set, found none");
  CHECK(error_of({filter("a"), filter("b"), filter("a")}) ==
        "http_filters[2].type: must be unique, found \"a\"");
  for (const char* type : {"envoy.extensions.filters.http.router.v3.Router",
                           "envoy.extensions.filters.http.fault.v3.HTTPFault",
                           "xds.type.v3.TypedStruct",
                           "udpa.type.v1.TypedStruct",
                           "google.protobuf.Struct"}) {
    CHECK(error_of({filter(type)}) ==
          std::string("http_filters[0].type: must be none of the API's own, found \"") + type +
              "\"");
  }
  for (const std::string type : {"a/b", "a b", "a\"b", "a\\b", "a\nb", "\xc3\xa4"})
    CHECK(error_of({filter(type)}).rfind("http_filters[0].type: must be printable", 0) == 0);
  CHECK(error_of({filter("a\n\xc3\xa4")}) ==
        "http_filters[0].type: must be printable, without spaces, slashes and quotes, found "
        "\"a\\n\\303\\244\"");
  CustomHttpFilter no_parse = filter("a");
  no_parse.parse = nullptr;
  CHECK(error_of({no_parse}) == "http_filters[0].parse: must be set, found none (a)");
  CustomHttpFilter no_override = filter("a");
  no_override.override_type = "b";
  CHECK(error_of({no_override}) ==
        "http_filters[0].parse_override: must be set with an override_type, found none (a)");
  no_override.parse_override = no_override.parse;
  CHECK(error_of({no_override}).empty());
  CHECK(error_of({filter("b"), no_override}) ==
        "http_filters[1].override_type: must be unique, found \"b\"");
  CHECK(error_of({no_override, filter("b")}) ==
        "http_filters[1].type: must be unique, found \"b\"");
  no_override.override_type = "envoy.Any";
  CHECK(error_of({no_override}) ==
        "http_filters[0].override_type: must be none of the API's own, found \"envoy.Any\"");
}

TEST_CASE("http_filters: a parser that throws, or makes nothing, refuses", "[channel][custom]") {
  CHECK(parsed([](const RawFilterConfig&) { return absl::InvalidArgumentError("no"); }).message() ==
        "no");
  CHECK(parsed([](const RawFilterConfig&) -> CallFilterPtr {
          throw std::runtime_error("oops");
        }).message() == "its parser threw: oops");
  CHECK(parsed([](const RawFilterConfig&) -> CallFilterPtr { throw 7; }).message() ==
        "its parser threw");
  CHECK(parsed([](const RawFilterConfig&) { return CallFilterPtr(); }).message() ==
        "its parser returned no configuration");
}

TEST_CASE("http_filters: a filter that throws ends its call, and is counted", "[channel][custom]") {
  using namespace signalbox::testing;
  metrics::Instruments instruments;
  const auto registered = register_http_filters({filter("one",
                                                        [](FilterCall& call) {
                                                          if (call.path() == "/s/Oops")
                                                            throw std::runtime_error("oops");
                                                          if (call.path() == "/s/7") throw 7;
                                                        })},
                                                instruments);
  REQUIRE(registered.ok());
  RouterFixture channel;
  const CustomFilter config{"one", {}, *(*registered)->at("one").parse({})};
  channel.publish(
      with_filters(all_to(to("a")), {testing::filter("it", config)}),
      answering([&](const PickArgs&) { return result(Complete{channel.backend.get()}); }));
  CHECK(channel.router.pick({.path = "/s/Oops"}).status() ==
        absl::InternalError("cluster a: the custom HTTP filter one threw: oops"));
  CHECK(channel.router.pick({.path = "/s/7"}).status() ==
        absl::InternalError("cluster a: the custom HTTP filter one threw"));
  CHECK(channel.router.pick({.path = "/s/M"}).outcome() == PickOutcome::kComplete);
  CHECK(instruments.filter_failures("one")->sum(0) == 2);
}

}  // namespace signalbox::channel
