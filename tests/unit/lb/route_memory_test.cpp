// SPDX-License-Identifier: Apache-2.0
//
// The memory of a snapshot's route patterns, counted by this program's operator new.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/route/request_hash.hpp"
#include "lb/route/route_actions.hpp"
#include "lb/route/route_match.hpp"
#include "tests/support/counted_memory.hpp"
#include "tests/support/route_fixture.hpp"

namespace signalbox::lb {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
constexpr auto kRegex = TextMatcher::Kind::kRegex;

// 3,000 routes with 30 patterns of headers each, of which `different` are distinct. `in_paths`:
// each route's path is a pattern, too.
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

// --- the memory of matching --------------------------------------------------

namespace {

using namespace signalbox::testing;

constexpr std::size_t kRoutes = 1000;

// The automaton of the pattern doubles its states with each of the 18 letters that it counts, so
// its states would need more memory than the pattern may use.
std::string greedy(std::size_t number) {
  return absl::StrCat("(", number, ")?(a|b)*a(a|b){18}");
}

std::string long_text() {
  std::string text;
  std::uint32_t chance = 1;
  for (int i = 0; i < 20'000; ++i) {
    chance = chance * 1'664'525U + 1'013'904'223U;
    text += (chance >> 31U) != 0 ? 'a' : 'b';
  }
  return text;
}

// The peak memory that `match` allocates: the memory of the automaton's states.
template <typename Match>
std::size_t memory_used_by(Match match) {
  const signalbox::testing::CountedMemory counted;
  match();
  return counted.most();
}

struct Row {
  const char* what;
  std::size_t different;  ///< Distinct patterns of the thousand routes.
  bool has_much;          ///< 1 MiB for each pattern, not 64 KiB. A match uses a part of it.
};

const std::vector<Row> kRows{{"all routes have one pattern", 1, true},
                             {"64 patterns have 1 MiB each", 64, true},
                             {"a thousand patterns have little", kRoutes, false}};

void check(const Row& row, std::size_t memory) {
  INFO(row.what << ": " << memory << " bytes");
  CHECK((memory > 200'000) == row.has_much);
  CHECK((memory < 120'000) != row.has_much);
}

}  // namespace

TEST_CASE("route memory: matching has memory for as many patterns as differ",
          "[lb][route][limits][memory][A28]") {
  const Row& row = GENERATE(from_range(kRows));
  VirtualHost host;
  for (std::size_t i = 0; i < kRoutes; ++i) {
    Route& route = host.routes.emplace_back();
    route.match.path = prefix(absl::StrCat("/service", i, "/"));
    route.match.headers.push_back({"x-user", regex(greedy(i % row.different))});
  }
  const RouteTable table(host);
  const TestHeaders headers{{"x-user", long_text()}};
  check(row, memory_used_by([&] { table.find({.path = "/service0/Place", .headers = &headers}); }));
}

TEST_CASE("route memory: hash policies have memory for as many patterns as differ",
          "[lb][route][limits][memory][A42]") {
  const Row& row = GENERATE(from_range(kRows));
  std::vector<Route> routes;
  for (std::size_t i = 0; i < kRoutes; ++i) {
    ForwardAction action = to("a");
    const HeaderHash::Rewrite rewrite{greedy(i % row.different), "x"};
    action.hash_policies.push_back({HeaderHash{"x-user", rewrite}, false});
    routes.push_back(route(exact(absl::StrCat("/", i)), std::move(action)));
  }
  const XdsConfig config = config_of(routes);
  const RouteActions actions(*config.virtual_host, *config.listener, refs_for(config), 7, {});
  const TestHeaders headers{{"x-user", long_text()}};
  const RequestHash& hash = std::get<Forward>(actions.of(0)).hash;
  check(row, memory_used_by([&] { CHECK(hash.of(&headers)); }));
}

}  // namespace signalbox::lb
