// SPDX-License-Identifier: Apache-2.0
#include "tools/metrics_text.hpp"

#include <cmath>

#include <catch2/catch.hpp>

namespace signalbox::tools {

TEST_CASE("metrics text: samples with and without labels", "[tools][top]") {
  const auto samples = parse_metrics_text(
      "# HELP a_total What it is.\n"
      "# TYPE a_total counter\n"
      "a_total 3\n"
      "b{cluster=\"orders\",le=\"+Inf\"} 0.25 1700000000000\n"
      "\n"
      "c{} NaN\n"
      "d{x=\"say \\\"hi\\\"\\\\ and\\nso on, {even this}\",} 1e3\n");
  REQUIRE(samples.ok());
  REQUIRE(samples->size() == 4);
  CHECK((*samples)[0] == MetricSample{"a_total", {}, 3});
  CHECK((*samples)[1] == MetricSample{"b", {{"cluster", "orders"}, {"le", "+Inf"}}, 0.25});
  CHECK(std::isnan((*samples)[2].value));
  CHECK((*samples)[3] == MetricSample{"d", {{"x", "say \"hi\"\\ and\nso on, {even this}"}}, 1000});
}

TEST_CASE("metrics text: the first bad line is named", "[tools][top]") {
  const auto bad = GENERATE(values<std::string>({
      "{x=\"1\"} 1",
      "a",
      "a{ 1",
      "a{x} 1",
      "a{x=1} 1",
      "a{x=\"1} 1",
      "a{x=\"1\\",
      "a{x=\"1\"y=\"2\"} 1",
      "a{x=\"1\"",
      "a one",
      "a 1 2 3",
      "\x1b[2J",
  }));
  const auto samples = parse_metrics_text("good 1\n" + bad + "\nworse\n");
  INFO(bad << "\n" << samples.status());
  REQUIRE_FALSE(samples.ok());
  CHECK(samples.status().message().find("line 2 is no sample of a metric: '") == 0);
  CHECK(samples.status().message().find('\x1b') == absl::string_view::npos);
}

TEST_CASE("metrics text: reads a gauge from Prometheus' text", "[tools][demo]") {
  const std::string text =
      "# TYPE signalbox_priority_active gauge\n"
      "signalbox_priority_active{cluster=\"orders-primary\"} 0\n"
      "signalbox_priority_active{cluster=\"orders\"} 2\n"
      "signalbox_priority_active{cluster=\"gone\"} -1\n";
  CHECK(metric_value(text, "signalbox_priority_active", "cluster", "orders") == 2);
  CHECK(metric_value(text, "signalbox_priority_active", "cluster", "gone") == -1);
  CHECK_FALSE(metric_value(text, "signalbox_priority_active", "cluster", "other"));
  CHECK_FALSE(metric_value(text, "signalbox_priority", "cluster", "orders"));
}

}  // namespace signalbox::tools
