#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus with the history of two demos must answer each query of the dashboard and
rules.

The first demo kills backends, and its route retries. The second demo kills its control plane. The
environment variables SIGNALBOX, PROMTOOL and PROMETHEUS name the programs. Without promtool and
Prometheus the test prints a line that begins with SKIPPED; with CI=true it fails."""

import os
import re
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from monitoring import Failed, History, Prometheus, make_blocks, prometheus, watch_demo

CHECKOUT = Path(__file__).resolve().parents[2]
RULES = [CHECKOUT / "conf/prometheus/rules.yml", CHECKOUT / "conf/prometheus/alerts.yml"]
sys.path.insert(0, str(CHECKOUT / "conf/grafana"))
import dashboard  # noqa: E402

BACKENDS, PLANE = "demo:1", "demo:2"
# Values for series that no demo has. It is an error to list a series that a demo has.
NOT_IN_A_DEMO = {
    'signalbox_certificate_expiry_timestamp_seconds{role="endpoint_identity"}': "2000000000",
    'signalbox_metric_series_overflow_total{metric="signalbox_picks_total"}': "1",
}
VARIABLES = {"$job": "signalbox", "$instance": ".*", "$cluster": ".*", "$__rate_interval": "3s"}
ROUTE = "route: {cluster: orders}"
RETRYING = 'route: {cluster: orders, retry_policy: {retry_on: "unavailable", num_retries: 2}}'
SELECTOR = re.compile(r"(?<![:\w])signalbox_\w+(?:\{[^}]*\})?")


def replaced(expr: str) -> str:
    for name, value in VARIABLES.items():
        expr = expr.replace(name, value)
    return expr


def resources_that_retry(folder: Path) -> Path:
    text = (CHECKOUT / "conf/demo/resources.yaml").read_text(encoding="utf-8")
    assert text.count(ROUTE) == 1
    path = folder / "resources.yaml"
    path.write_text(text.replace(ROUTE, RETRYING), encoding="utf-8")
    return path


def watch_demos(signalbox: Path, folder: Path) -> History:
    history, wrong = History(), []

    def watch(*arguments, **more) -> None:
        try:
            watch_demo(signalbox, *arguments, history, **more)
        except Exception as error:  # The test's thread raises it below.
            wrong.append(error)

    def watch_until_calls_wait() -> None:
        # A call waits if it begins in the few milliseconds of a failover, so a demo may have none.
        for _ in range(5):
            watch(BACKENDS, ["--seconds", 5, "--rps", 1000, "--resources", resources_that_retry(folder)])
            if wrong or history.has_grown(BACKENDS, "signalbox_pick_wait_seconds_count"):
                return
        wrong.append(Failed("no call waited for an endpoint in five demos"))

    demos = [
        threading.Thread(target=watch_until_calls_wait),
        threading.Thread(target=watch, args=(
            PLANE, ["--drill", "control-plane", "--kill-seconds", 1, "--stop-seconds", 0, "--rps", 50]),
            # The demo runs until its ADS stream has ended and a new stream is connected.
            kwargs={"enough": lambda: history.times_above_0(PLANE, "signalbox_xds_streams_total") > 2
                    and history.value(PLANE, "signalbox_xds_connected") == 1}),
    ]
    for demo in demos:
        demo.start()
    for demo in demos:
        demo.join()
    if wrong:
        raise wrong[0]
    return history


class TheHistoryOfADemo(unittest.TestCase):
    server: Prometheus
    history: History
    begin: float
    end: float

    @classmethod
    def setUpClass(cls) -> None:
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="signalbox-operate-")))
        cls.history = watch_demos(Path(os.environ["SIGNALBOX"]), folder)
        cls.begin, cls.end = cls.history.times()
        cls.in_a_demo = cls.history.metrics()
        for series, value in NOT_IN_A_DEMO.items():
            for when in (cls.begin, cls.end):
                cls.history.add(BACKENDS, when, f"{series} {value}")
        make_blocks(Path(os.environ["PROMTOOL"]), cls.history, folder)
        cls.server = cls.enterClassContext(prometheus(Path(os.environ["PROMETHEUS"]), folder, RULES))
        cls.wrong_rules = cls.server.wait_for_rules()
        # A query's last step must come after the rules were evaluated.
        cls.end = max(cls.end, cls.server_time() + 1)

    @classmethod
    def server_time(cls) -> float:
        return float(cls.server.ask("query", query="time()")["result"][0])

    def check(self, what: str, expr: str) -> None:
        with self.subTest(what, expr=expr):
            self.assertGreater(self.server.values(expr, self.begin, self.end, 0.5), 0, "the answer is empty")

    def test_each_panel_has_an_answer(self) -> None:
        for row, panels in dashboard.ROWS.items():
            for panel in panels:
                for query in panel.queries:
                    self.check(f"{row}: {panel.title}", replaced(dashboard.selected(query.expr)))

    def test_each_mark_has_an_answer(self) -> None:
        for name, (_, expr) in dashboard.MARKS.items():
            self.check(name, replaced(dashboard.selected(expr)))

    def test_each_variable_has_values(self) -> None:
        for name, query in dashboard.VARIABLES.items():
            values = re.fullmatch(r"label_values\((.*), (\w+)\)", query)
            self.check(name, f'count by ({values[2]}) ({replaced(values[1])})')

    def test_each_rule_is_evaluated_and_each_of_its_selectors_has_series(self) -> None:
        self.assertEqual(self.wrong_rules, {})
        for path in RULES:
            lines = path.read_text(encoding="utf-8").splitlines()
            found = set(SELECTOR.findall("\n".join(line for line in lines if not line.lstrip().startswith("#"))))
            self.assertTrue(found)
            for selector in sorted(found):
                # All calls of a demo may succeed.
                if not selector.startswith("signalbox_calls_total{code=~"):
                    self.check(path.name, f"count({selector})")

    def test_what_is_written_here_is_in_no_demo(self) -> None:
        for series in NOT_IN_A_DEMO:
            self.assertNotIn(series.partition("{")[0], self.in_a_demo)


if __name__ == "__main__":
    if "PROMTOOL" not in os.environ or "PROMETHEUS" not in os.environ:
        in_ci = os.environ.get("CI") == "true"
        print(f"{'FAILED' if in_ci else 'SKIPPED'}: there is no promtool or no prometheus (Debian's package is prometheus); "
              "install it and configure again")
        sys.exit(1 if in_ci else 0)
    unittest.main()
