// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/metrics/asked_names.hpp"

#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "metrics/names.hpp"

namespace signalbox::metrics {
namespace {

using test::AskedNames;
using Labels = std::set<std::string>;

/// A PromQL expression, and the labels in the text that shows its result: a legend or a summary.
struct Question {
  std::string expression;
  Labels shown;
};

std::string conf_path(const std::string& name) {
  return std::string(SIGNALBOX_CONF) + "/" + name;
}

nlohmann::json dashboard() {
  std::ifstream file(conf_path("grafana/signalbox.json"));
  return nlohmann::json::parse(file);
}

/// All X for which the text has `before` X `after`.
Labels between(absl::string_view before, absl::string_view after, absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, before);
  Labels found;
  for (std::size_t i = 1; i < parts.size(); ++i)
    found.insert(parts[i].substr(0, parts[i].find(std::string(after))));
  return found;
}

std::vector<Question> questions_of_dashboard() {
  std::vector<Question> questions;
  const nlohmann::json board = dashboard();
  for (const auto& panel : board.at("panels")) {
    for (const auto& target : panel.value("targets", nlohmann::json::array())) {
      questions.push_back({target.at("expr").get<std::string>(),
                           between("{{", "}}", target.at("legendFormat").get<std::string>())});
    }
  }
  for (const auto& mark : board.at("annotations").at("list"))
    questions.push_back({mark.at("expr").get<std::string>(), {}});
  return questions;
}

struct Rules {
  std::vector<Question> questions;
  Labels recorded;  // The names of recording rules.
};

Rules rules() {
  Rules rules;
  for (const char* name : {"prometheus/rules.yml", "prometheus/alerts.yml"}) {
    for (const auto& group : YAML::LoadFile(conf_path(name))["groups"]) {
      for (const auto& rule : group["rules"]) {
        Labels shown;
        if (rule["alert"])
          shown = between("$labels.", " ", rule["annotations"]["summary"].as<std::string>());
        rules.questions.push_back({rule["expr"].as<std::string>(), std::move(shown)});
        if (rule["record"]) rules.recorded.insert(rule["record"].as<std::string>());
      }
    }
  }
  return rules;
}

/// Prometheus adds the labels job and instance to every series that it scrapes.
Labels with_those_of_prometheus(Labels labels) {
  labels.insert({"job", "instance"});
  return labels;
}

/// The metrics of `signalbox load` and their labels, by the table of docs/load.md.
std::map<std::string, Labels> metrics_of_load() {
  std::ifstream file(conf_path("../docs/load.md"));
  std::map<std::string, Labels> found;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    absl::string_view name = cells.front();
    if (cells.size() < 3 || !absl::ConsumePrefix(&name, "| `signalbox_load_")) continue;
    absl::ConsumeSuffix(&name, "`");
    Labels labels;
    for (const auto label : absl::StrSplit(cells[1], ", "))
      labels.emplace(label.substr(1, label.size() - 2));
    const bool is_histogram = absl::StrContains(cells[2], "a histogram");
    if (is_histogram) labels.insert("le");
    found.emplace(absl::StrCat("signalbox_load_", name, is_histogram ? "_bucket" : ""),
                  with_those_of_prometheus(std::move(labels)));
  }
  return found;
}

/// The labels of a series; nullopt: no metric has such a series.
std::optional<Labels> labels_of(const std::string& series) {
  for (const MetricRow& row : kMetrics) {
    absl::string_view suffix = series;
    if (!absl::ConsumePrefix(&suffix, row.name)) continue;
    Labels labels;
    for (std::size_t i = 0; i < row.label_count(); ++i)
      labels.emplace(row.labels[i].name);
    if (row.kind == MetricKind::kHistogram) {
      if (suffix == "_bucket") labels.insert("le");
      if (suffix != "_bucket" && suffix != "_sum" && suffix != "_count") continue;
    } else if (!suffix.empty()) {
      continue;
    }
    return with_those_of_prometheus(std::move(labels));
  }
  static const std::map<std::string, Labels> of_load = metrics_of_load();
  const auto found = of_load.find(series);
  return found == of_load.end() ? std::nullopt : std::optional(found->second);
}

/// What the query of a variable selects: one series, or with {__name__=~"a|b",…} several.
std::vector<test::AskedSeries> series_of(const std::string& query) {
  const auto names = between("__name__=~\"", "\"", query);
  if (names.empty()) return test::asked_names(query).series;
  Labels labels = test::asked_names("any" + query.substr(query.find('{'))).series.front().labels;
  labels.erase("__name__");
  std::vector<test::AskedSeries> series;
  for (const auto name : absl::StrSplit(*names.begin(), '|'))
    series.push_back({std::string(name), labels});
  return series;
}

/// The name of a recorded series begins with its labels: job and target in job_target:calls:rate5m.
/// nullopt: no rule records the series.
std::optional<Labels> labels_of_recorded(const std::string& series, const Labels& recorded) {
  if (!recorded.contains(series)) return std::nullopt;
  return absl::StrSplit(series.substr(0, series.find(':')), '_');
}

TEST_CASE("asked names: an expression's series, the labels that select them, and its groupings",
          "[metrics][names]") {
  const AskedNames asked = test::asked_names(
      R"(sum by (code, target) (rate(signalbox_calls_total{target=~"a{b}\"c", code!="OK"}[5m])) )"
      R"(/ on (target) group_left (job) job_target:calls:rate5m offset 1h > 2 * up{x="y"} or time())");
  REQUIRE(asked.series.size() == 3);
  CHECK(asked.series[0].metric == "signalbox_calls_total");
  CHECK(asked.series[0].labels == Labels{"code", "target"});
  CHECK(asked.series[1].metric == "job_target:calls:rate5m");
  CHECK(asked.series[1].labels.empty());
  CHECK(asked.series[2].metric == "up");
  CHECK(asked.groupings == Labels{"code", "job", "target"});
}

TEST_CASE("names: dashboard and rules ask for series and labels that are exported",
          "[metrics][names]") {
  const Rules all = rules();
  std::vector<Question> questions = questions_of_dashboard();
  REQUIRE(questions.size() > 50);
  REQUIRE(all.questions.size() > 14);
  questions.insert(questions.end(), all.questions.begin(), all.questions.end());
  for (const Question& question : questions) {
    CAPTURE(question.expression);
    const AskedNames asked = test::asked_names(question.expression);
    CHECK_FALSE(asked.series.empty());
    Labels known;
    Labels left = asked.groupings;  // The labels of the expression's result.
    for (const auto& series : asked.series) {
      CAPTURE(series.metric);
      const auto recorded = labels_of_recorded(series.metric, all.recorded);
      const auto labels = recorded ? recorded : labels_of(series.metric);
      REQUIRE(labels.has_value());
      known.insert(labels->begin(), labels->end());
      if (recorded) left.insert(recorded->begin(), recorded->end());
      for (const std::string& label : series.labels) {
        CAPTURE(label);
        CHECK(labels->contains(label));
      }
    }
    for (const std::string& label : asked.groupings) {
      CAPTURE(label);
      CHECK(known.contains(label));
    }
    for (const std::string& label : question.shown) {
      CAPTURE(label);
      CHECK(left.contains(label));
    }
  }
}

TEST_CASE("names: the dashboard's variables are labels that are exported", "[metrics][names]") {
  Labels names;
  const nlohmann::json board = dashboard();
  for (const auto& variable : board.at("templating").at("list")) {
    names.insert(variable.at("name").get<std::string>());
    if (variable.at("type") != "query") continue;
    const auto query = variable.at("definition").get<std::string>();
    CAPTURE(query);
    REQUIRE(absl::StartsWith(query, "label_values("));
    const auto asked = series_of(query);
    CHECK_FALSE(asked.empty());
    for (const auto& series : asked) {
      CAPTURE(series.metric);
      const auto labels = labels_of(series.metric);
      REQUIRE(labels.has_value());
      for (const std::string& label : series.labels)
        CHECK(labels->contains(label));
      const auto label = query.substr(query.rfind(", ") + 2);
      CHECK(labels->contains(label.substr(0, label.size() - 1)));
    }
  }
  CHECK(names == Labels{"cluster", "datasource", "instance", "job"});
}

TEST_CASE("names: each panel of the dashboard has a place of its own", "[metrics][names]") {
  std::set<int> ids;
  std::set<std::pair<int, int>> places;
  const nlohmann::json board = dashboard();
  for (const auto& panel : board.at("panels")) {
    CHECK(ids.insert(panel.at("id").get<int>()).second);
    const auto& place = panel.at("gridPos");
    const int x = place.at("x").get<int>();
    const int y = place.at("y").get<int>();
    CHECK(x + place.at("w").get<int>() <= 24);
    for (int column = x; column < x + place.at("w").get<int>(); ++column) {
      for (int line = y; line < y + place.at("h").get<int>(); ++line)
        CHECK(places.emplace(column, line).second);
    }
    CHECK((panel.at("type") == "row") == panel.value("targets", nlohmann::json()).empty());
  }
  CHECK(ids.size() > 1);
}

}  // namespace
}  // namespace signalbox::metrics
