// SPDX-License-Identifier: Apache-2.0
#include "tools/load/schedule.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

std::vector<double> moments(const char* rate,
                            Arrivals arrivals,
                            std::uint64_t seed,
                            double until,
                            ScheduleShare share = {}) {
  const auto profile = parse_rate(rate);
  REQUIRE(profile.status().ToString() == "OK");
  Schedule schedule(*profile, arrivals, seed, share);
  std::vector<double> seconds;
  for (;;) {
    const double next = std::chrono::duration<double>(schedule.next()).count();
    if (next >= until) return seconds;
    seconds.push_back(next);
  }
}

}  // namespace

TEST_CASE("rate: the expected number of calls is the integral", "[load][schedule]") {
  struct Row {
    const char* rate;
    double seconds;
    double calls;
  };

  const Row row = GENERATE(Row{"200", 10, 2000},
                           Row{"100..2000/30s", 30, 31'500},
                           Row{"100..2000/30s", 40, 51'500},
                           Row{"100/10s,500/20s,1000", 40, 21'000},
                           Row{"0..100/10s", 10, 500},
                           Row{"50/500ms", 2, 100},
                           Row{"1000..0/1s,10", 3, 520});
  CAPTURE(row.rate);
  const auto profile = parse_rate(row.rate);
  REQUIRE(profile.status().ToString() == "OK");
  CHECK(expected_calls(*profile, row.seconds) == Approx(row.calls));
  const auto even = moments(row.rate, Arrivals::kEven, 1, row.seconds);
  CHECK(static_cast<double>(even.size()) == Approx(row.calls).margin(1));
}

TEST_CASE("rate: a bad text is refused with its part", "[load][schedule]") {
  struct Row {
    const char* rate;
    const char* why;
  };

  const Row row = GENERATE(Row{"", "'' has no rate"},
                           Row{"fast", "'fast' has no rate"},
                           Row{"-1", "'-1' has no rate"},
                           Row{"1e9", "has no rate of 0 to 1e+07"},
                           Row{"1..2", "is a ramp without a duration"},
                           Row{"1,2", "'1' has no duration, and another part follows"},
                           Row{"1/soon", "'1/soon' has no duration, such as"},
                           Row{"1/0s", "has no duration"},
                           Row{"1/", "has no duration"},
                           Row{"10/1s,", "'' has no rate"},
                           Row{"10..0/1s", "ends at 0 calls a second"},
                           Row{"0", "ends at 0 calls a second"});
  CAPTURE(row.rate);
  const auto profile = parse_rate(row.rate);
  CHECK(profile.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(profile.status().message()), Catch::Contains(row.why));
}

TEST_CASE("schedule: even arrivals are evenly apart", "[load][schedule]") {
  const auto even = moments("10", Arrivals::kEven, 1, 0.45);
  REQUIRE(even.size() == 4);
  CHECK(even[0] == Approx(0.1));
  CHECK(even[3] == Approx(0.4));
}

TEST_CASE("schedule: at a rate of nearly 0 no further call is due", "[load][schedule]") {
  Schedule schedule(*parse_rate("100/1s,0.000000000001"), Arrivals::kEven, 1, {});
  for (int call = 0; call < 100; ++call)
    CHECK(schedule.next() <= std::chrono::seconds(1));
  CHECK(schedule.next() == std::chrono::nanoseconds::max());
  CHECK(schedule.next() == std::chrono::nanoseconds::max());
}

TEST_CASE("schedule: a ramp's calls come closer and closer", "[load][schedule]") {
  const auto ramp = moments("0..200/1s", Arrivals::kEven, 1, 1);
  REQUIRE(ramp.size() == 99);
  CHECK(ramp[24] == Approx(0.5));  // A quarter of the calls is in the first half of the time.
}

TEST_CASE("schedule: a call that is due where a ramp begins at 0 is due then", "[load][schedule]") {
  const auto even = moments("100/1s,0..100/1s,100", Arrivals::kEven, 1, 3);
  REQUIRE(even.size() > 100);
  CHECK(even[99] == 1);
  CHECK(std::ranges::is_sorted(even));
}

TEST_CASE("schedule: Poisson arrivals have the rate, and a spread of one", "[load][schedule]") {
  const auto poisson = moments("1000", Arrivals::kPoisson, 7, 50);
  CHECK(static_cast<double>(poisson.size()) == Approx(50'000).margin(5 * 224));
  double squares = 0;
  for (std::size_t i = 1; i < poisson.size(); ++i)
    squares += (poisson[i] - poisson[i - 1]) * (poisson[i] - poisson[i - 1]);
  // The mean square of an exponential distance is twice the squared mean.
  CHECK(squares / static_cast<double>(poisson.size()) == Approx(2e-6).epsilon(0.1));
}

TEST_CASE("schedule: a seed gives the same moments again", "[load][schedule]") {
  CHECK(moments("500", Arrivals::kPoisson, 3, 1) == moments("500", Arrivals::kPoisson, 3, 1));
  CHECK(moments("500", Arrivals::kPoisson, 3, 1) != moments("500", Arrivals::kPoisson, 4, 1));
}

TEST_CASE("schedule: the shares of all processes are the schedule of one", "[load][schedule]") {
  const auto arrivals = GENERATE(Arrivals::kPoisson, Arrivals::kEven);
  const std::uint64_t seed = GENERATE(1, 2, 77);
  const std::uint64_t count = GENERATE(1, 2, 3, 64);
  CAPTURE(arrivals == Arrivals::kEven, seed, count);
  const char* const rate = "100/500ms,50..1000/1s,200";
  const auto whole = moments(rate, arrivals, seed, 3);
  std::size_t calls = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto part = moments(rate, arrivals, seed, 3, {.index = i, .count = count});
    calls += part.size();
    for (std::size_t j = 0; j < part.size(); ++j)
      CHECK(part[j] == whole.at(i + j * count));  // Every count-th call, to the nanosecond.
  }
  CHECK(calls == whole.size());
}

TEST_CASE("start: a moment of the next day, in RFC 3339", "[load][schedule]") {
  struct Row {
    const char* text;
    const char* error;  // "" if the text is understood as noon.
  };

  const Row row = GENERATE(Row{"2026-11-26T12:00:00Z", ""},
                           Row{"2026-11-26T13:00:00+01:00", ""},
                           Row{"12:00", "is no time such as 2026-11-26T13:00:00Z"},
                           Row{"", "is no time such as"},
                           Row{"2026-11-26T11:59:50Z", "'2026-11-26T11:59:50Z' passed 9s ago"},
                           Row{"2026-11-26T11:59:59Z", "passed 0 ago"},
                           Row{"2027-11-26T12:00:00Z", "more than a day away"},
                           Row{"infinite-future", "more than a day away"});
  CAPTURE(row.text);
  const absl::Time noon = absl::FromUnixSeconds(1'795'694'400);
  const auto start = parse_start(row.text, noon - absl::Seconds(1));
  CHECK(start.ok() == (*row.error == '\0'));
  if (start.ok()) CHECK(*start == noon);
  CHECK_THAT(std::string(start.status().message()), Catch::Contains(row.error));
}

TEST_CASE("rate: a warm-up keeps the first rate", "[load][schedule]") {
  const auto profile = parse_rate("100..200/10s");
  REQUIRE(profile.ok());
  CHECK(expected_calls(with_warmup(*profile, 5), 15) == Approx(500 + 1500));
  CHECK(with_warmup(*profile, 0).size() == profile->size());
}

}  // namespace signalbox::tools
