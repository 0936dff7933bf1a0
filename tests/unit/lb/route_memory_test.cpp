// SPDX-License-Identifier: Apache-2.0
//
// What the patterns of a snapshot's routes cost, counted by this program's operator new.
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/route/request_hash.hpp"
#include "lb/route/route_match.hpp"
#include "tests/support/counted_memory.hpp"

namespace signalbox::lb {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
constexpr auto kRegex = TextMatcher::Kind::kRegex;

// 3,000 routes with 30 patterns each, of which so many differ.
VirtualHost host_with_patterns(std::size_t different, bool in_paths) {
  VirtualHost host;
  std::size_t number = 0;
  for (int i = 0; i < 3000; ++i) {
    Route& route = host.routes.emplace_back();
    route.match.path = {TextMatcher::Kind::kPrefix, absl::StrCat("/service", i, "/"), false};
    if (in_paths) route.match.path = {kRegex, absl::StrCat("/service", i, "/[a-z]+"), false};
    for (int j = 0; j < 30; ++j) {
      const std::string pattern =
          absl::StrCat("user-", number++ % different, "-[a-z0-9]{8}(\\.b)?");
      route.match.headers.push_back({"x-user", TextMatcher{kRegex, pattern, false}});
    }
  }
  return host;
}

}  // namespace

TEST_CASE("route memory: a pattern is compiled once for all routes of a host",
          "[lb][route][limits][memory]") {
  const VirtualHost host = host_with_patterns(30, false);
  const testing::CountedMemory counted;
  const RouteTable table(host);
  INFO(counted.most() << " bytes, " << counted.allocations() << " allocations");
  CHECK(counted.most() < 40 * kMegabyte);
}

TEST_CASE("route memory: as many patterns as a response may have fit into 200 MB",
          "[lb][route][limits][memory]") {
  const bool in_paths = GENERATE(false, true);
  const VirtualHost host = host_with_patterns(in_paths ? 7000 : 10'000, in_paths);
  const testing::CountedMemory counted;
  const RouteTable table(host);
  INFO(counted.most() << " bytes, " << counted.allocations() << " allocations");
  CHECK(counted.most() < 200'000'000);
}

TEST_CASE("route memory: hash policies share their patterns, too", "[lb][route][limits][memory]") {
  RegexPool pool(1000);
  const HashPolicy policy{HeaderHash{"x-user", HeaderHash::Rewrite{"(user)-[0-9]+", "\\1"}}};
  const testing::CountedMemory counted;
  std::vector<RequestHash> hashes;
  for (int i = 0; i < 1000; ++i)
    hashes.emplace_back(std::vector<HashPolicy>{policy}, 1, &pool);
  CHECK(counted.most() < kMegabyte);
}

}  // namespace signalbox::lb
