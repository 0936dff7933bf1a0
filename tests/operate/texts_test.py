#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that conf/prometheus, conf/grafana, the metrics and the documents agree with each other."""

import re
import sys
import unittest
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
RULES, ALERTS = CHECKOUT / "conf/prometheus/rules.yml", CHECKOUT / "conf/prometheus/alerts.yml"
CASES = CHECKOUT / "conf/prometheus/alerts_test.yml"
sys.path.insert(0, str(CHECKOUT / "conf/grafana"))
import dashboard  # noqa: E402


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


class Alerts(unittest.TestCase):
    names = re.findall(r"^ *- alert: (\w+)$", read(ALERTS), re.MULTILINE)

    def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not(self) -> None:
        cases = [case.splitlines()[0] + "\n" + case for case in read(CASES).split("  - name: ")[1:]]
        self.assertEqual(len(self.names), 14)
        for name in self.names:
            with self.subTest(name):
                own = [case for case in cases if f"alertname: {name}" in case]
                self.assertTrue(any("exp_labels" in case for case in own), "no case in which it fires")
                self.assertTrue(any("exp_labels" not in case for case in own), "no case in which it never fires")

    def test_each_alert_names_its_runbook(self) -> None:
        headings = re.findall(r"^### (Signalbox\w+)$", read(CHECKOUT / "docs/operate.md"), re.MULTILINE)
        self.assertEqual(sorted(headings), sorted(self.names))
        runbooks = re.findall(r'^ *runbook: "docs/operate\.md#(\w+)"$', read(ALERTS), re.MULTILINE)
        self.assertEqual(runbooks, [name.lower() for name in self.names])

    def test_each_alert_has_a_severity(self) -> None:
        self.assertEqual(len(re.findall(r"labels: \{severity: (?:warning|critical)\}", read(ALERTS))), len(self.names))


class Metrics(unittest.TestCase):
    table = re.findall(r'^ *"((?:signalbox|process)_\w+)",$', read(CHECKOUT / "metrics/names.hpp"), re.MULTILINE)
    of_load = [f"signalbox_load_{name}" for name in re.findall(
        r'"(\w+_(?:total|seconds))",', read(CHECKOUT / "tools/load/live_metrics.cpp"))]

    def test_each_metric_has_its_question(self) -> None:
        section = read(CHECKOUT / "docs/operate.md").split("\n## Metrics\n")[1].split("\n## ")[0]
        rows = [row.split("|")[1:3] for row in section.split("| question | metric |")[1].split("\n\n")[0].splitlines()[2:]]
        asked = [name for _, metrics in rows for name in re.findall(r"`(\w+)", metrics) if "_" in name]
        self.assertGreater(len(self.table), 50)
        self.assertEqual(set(self.table) - set(asked), set(), "docs/operate.md asks no question for these")
        self.assertEqual(set(asked) - set(self.table) - {"applied_configs"}, set(), "metrics/names.hpp has no such metrics")
        self.assertTrue(all(question.strip() for question, _ in rows))

    def test_each_value_of_a_label_is_in_the_document(self) -> None:
        document = read(CHECKOUT / "docs/operate.md")
        section = document.split("\n## Metrics\n")[1].split("\n## ")[0]
        section += document.split("\n### Limits of the admin servers\n")[1].split("\n## ")[0]
        arrays = re.findall(r"constexpr std::array<absl::string_view, \w+> k(?!Codes)\w+\{([^}]*)\}",
                            read(CHECKOUT / "metrics/instruments.cpp"))
        states = read(CHECKOUT / "messages/resource_dump.cpp").split("string_view cache_state(")[1].split('"unknown"')[0]
        values = re.findall(r'"(\w+)"', " ".join([*arrays, states]))
        self.assertGreater(len(values), 50)
        self.assertEqual([value for value in values if f"`{value}`" not in section], [])

    def test_the_rules_for_grpcs_names_ask_for_metrics_and_labels_that_exist(self) -> None:
        lines = [line for line in read(CHECKOUT / "conf/prometheus/rules-grpc.yml").splitlines() if " expr: " in line]
        rows = read(CHECKOUT / "metrics/names.hpp").split("MetricRow{")[1:]
        shared = {"kTarget": "target", "kCluster": "cluster", "kLocality": "locality", "kServer": "xds_server"}
        self.assertEqual(len(lines), 23)
        for line in lines:
            name, = re.findall(r"\bsignalbox_\w+", line)
            with self.subTest(name):
                row, = (row for row in rows if f'"{re.sub("_(?:bucket|sum|count)$", "", name)}"' in row)
                labels = {label for short, label in shared.items() if short in row} | set(re.findall(r'Label\{"(\w+)"', row))
                selected = re.findall(r"(\w+)=", line.split(name)[1].split(",")[0])
                self.assertLessEqual({*selected, *re.findall(r'"\$1", "(\w+)"', line)}, labels)

    def test_documents_name_metrics_that_exist(self) -> None:
        suffix = r"_(?:bucket|sum|count)$"
        for path in sorted(CHECKOUT.glob("docs/*.md")):
            with self.subTest(path.name):
                named = set(re.findall(r"\b(?:signalbox|process)_\w+_(?:total|seconds|bytes|active|open)\b", read(path)))
                self.assertLessEqual({re.sub(suffix, "", name) for name in named}, {*self.table, *self.of_load})

    def test_each_metric_of_load_is_in_its_document(self) -> None:
        rows = re.findall(r"^\| `(signalbox_load_\w+)` \|", read(CHECKOUT / "docs/load.md"), re.MULTILINE)
        self.assertEqual({row for row in rows if row.endswith(("_total", "_seconds"))}, set(self.of_load))


class Dashboard(unittest.TestCase):
    def test_the_file_is_what_the_table_makes(self) -> None:
        self.assertEqual(read(CHECKOUT / "conf/grafana/signalbox.json"), dashboard.text(),
                         "run conf/grafana/dashboard.py --write")

    def test_rules_and_dashboard_count_the_same_calls_as_failed(self) -> None:
        selectors = set(re.findall(r'code=~"[^"]*"', read(RULES)))
        self.assertEqual(selectors, {dashboard.FAILED})
        self.assertTrue(set(re.findall(r'code=~"[^"]*"', " ".join(
            query.expr for row in dashboard.ROWS.values() for panel in row for query in panel.queries))) <= selectors)

    def test_the_alerts_that_it_names_exist(self) -> None:
        named = set(re.findall(r"Signalbox[A-Z]\w+", dashboard.text()))
        self.assertTrue(named)
        self.assertLessEqual(named, set(Alerts.names))

    def test_the_row_of_load_tests_has_each_metric_of_load(self) -> None:
        row = " ".join(query.expr for panel in dashboard.ROWS["Load test"] for query in panel.queries)
        named = set(re.findall(r"\bsignalbox_load_\w+", row + dashboard.MARKS["Acts of a load test"][1]))
        self.assertEqual({name.removesuffix("_bucket") for name in named}, set(Metrics.of_load))

    def test_the_row_of_picks_has_the_spread_over_endpoints(self) -> None:
        queries = [query.expr for panel in dashboard.ROWS["Picks"] for query in panel.queries]
        self.assertTrue(any(re.match(r"max by .*signalbox_endpoint_rpcs_total.* / avg by ", query) for query in queries))

    def test_it_has_the_eight_rows(self) -> None:
        self.assertEqual(list(dashboard.ROWS), ["Overview", "Failover", "Clusters", "Picks", "Sessions", "Control plane",
                                                "Runtime", "Load test"])


if __name__ == "__main__":
    unittest.main()
