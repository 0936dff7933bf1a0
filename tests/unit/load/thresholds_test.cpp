// SPDX-License-Identifier: Apache-2.0
#include "tools/load/thresholds.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace signalbox::tools::thresholds_test {
namespace {

LoadReport a_report() {
  LoadReport report;
  report.ran_s = 10;
  report.faults = {
      {.name = "kill primary"}, {.name = "mark > here", .is_fault = false}, {.name = "stop other"}};
  LoadSide side{.name = "signalbox", .ok = 990, .failed = 10};
  for (int i = 0; i < 990; ++i)
    side.from_due.record(i < 900 ? 1'000'000 : 60'000'000);
  side.faults = {{.lost = 7, .first_success_ns = 30'000'000, .recovery_ns = 900'000'000},
                 {},
                 {.lost = 2,
                  .first_success_ns = {},
                  .recovery_ns = 1'500'000'000,
                  .sessions_moved = 4,
                  .failback_errors = 1}};
  report.sides = {side};
  return report;
}

}  // namespace

TEST_CASE("thresholds: each figure, overall and by act", "[load][thresholds]") {
  struct Row {
    const char* text;
    bool is_missed;
  };

  const Row row = GENERATE(Row{"lost>0", true},
                           Row{"lost>10", false},
                           Row{"lost>=10", true},
                           Row{"lost[kill primary]>6", true},
                           Row{"lost[kill primary]>7", false},
                           Row{"lost[mark > here]>0", false},
                           Row{"recovery>1s", true},
                           Row{"recovery>1500ms", false},  // The mark has none.
                           Row{"recovery[kill primary]>1s", false},
                           Row{"recovery[kill primary]>899ms", true},
                           Row{"first-success[kill primary]>30ms", false},
                           Row{"first-success[stop other]>1h", true},
                           Row{"first-success>1h", false},
                           Row{"first-success>=30ms", true},
                           Row{"first-success[stop other]<1h", false},
                           Row{"failback-errors>0", true},
                           Row{"failback-errors[kill primary]>0", false},
                           Row{"sessions-moved>4", false},
                           Row{"sessions-moved>3", true},
                           Row{"p50>5ms", false},
                           Row{"p95>50ms", true},
                           Row{"p99>61ms", false},
                           Row{"p99.9>1m", false},
                           Row{"max>=60ms", true},
                           Row{"error-rate>1%", false},
                           Row{"error-rate>=1%", true},
                           Row{"error-rate>0.5%", true},
                           Row{"rate<99", false},
                           Row{"rate<=99", true},
                           Row{"rate<100", true});
  CAPTURE(row.text);
  const LoadReport report = a_report();
  const auto threshold = parse_threshold(row.text);
  REQUIRE(threshold.status().ToString() == "OK");
  const LoadThreshold judged = judge_threshold(*threshold, report, report.sides[0]);
  CHECK(judged.is_missed == row.is_missed);
  CHECK(judged.text == row.text);
}

TEST_CASE("thresholds: without an answered call every latency is too long", "[load][thresholds]") {
  const LoadReport nothing;
  const LoadSide side;
  CHECK(judge_threshold(*parse_threshold("p99>1h"), nothing, side).is_missed);
  CHECK_FALSE(judge_threshold(*parse_threshold("recovery>1s"), nothing, side).is_missed);
  CHECK(judge_threshold(*parse_threshold("first-success>1h"), nothing, side).is_missed);
  CHECK(judge_threshold(*parse_threshold("rate<1"), nothing, side).is_missed);
}

TEST_CASE("thresholds: a bad text is refused", "[load][thresholds]") {
  struct Row {
    const char* text;
    const char* why;
  };

  const Row row = GENERATE(Row{"", "expected FIGURE>LIMIT"},
                           Row{"lost", "expected FIGURE>LIMIT"},
                           Row{"lost=0", "expected FIGURE>LIMIT"},
                           Row{"lots>0", "there is no figure 'lots'; there are: lost"},
                           Row{"lost>few", "expected a number of 0 or more, got 'few'"},
                           Row{"lost>-1", "expected a number of 0 or more"},
                           Row{"p99>50", "expected a duration such as 50ms"},
                           Row{"error-rate>1", "expected percent"},
                           Row{"lost[]>1", "expected the name of an act"},
                           Row{"lost[kill>1", "expected FIGURE>LIMIT"},
                           Row{"p99[kill primary]>1s", "a figure of the whole run"});
  CAPTURE(row.text);
  const auto threshold = parse_threshold(row.text);
  CHECK(threshold.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(threshold.status().message()), Catch::Contains(row.why));
}

TEST_CASE("thresholds: an act that the script lacks, or that is no fault, is refused",
          "[load][thresholds]") {
  const std::vector<Act> acts{{.verb = Verb::kKill, .name = "kill it"},
                              {.verb = Verb::kRestart, .name = "restart it"},
                              {.verb = Verb::kMark, .name = "mark b"},
                              {.verb = Verb::kStop, .name = "stop it"}};
  const auto error = [&acts](const char* text) {
    return std::string(check_act(*parse_threshold(text), acts).message());
  };
  CHECK(error("lost>0").empty());
  CHECK(error("lost[kill it]>0").empty());
  CHECK_THAT(error("lost[kill all]>0"),
             Catch::Contains("no fault 'kill all'; it has: kill it, stop it"));
  CHECK_THAT(error("first-success[restart it]>1s"), Catch::Contains("no fault 'restart it'"));
  CHECK_THAT(error("recovery[mark b]>1s"), Catch::Contains("no fault 'mark b'"));
  CHECK_THAT(std::string(check_act(*parse_threshold("lost[kill it]>0"), {}).message()),
             Catch::Contains("it has none"));
}

}  // namespace signalbox::tools::thresholds_test
