#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus with the history of two demos and a load must answer the queries of the
dashboard and rules.

The first demo kills backends, its route retries, and it runs again until a call has waited for an
endpoint. The second demo kills its control plane. The load calls one backend. The environment
variables SIGNALBOX, PROMTOOL and PROMETHEUS name the programs. Without promtool and Prometheus the
test prints a line that begins with SKIPPED; with CI=true it fails."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from monitoring import Failed, History, Prometheus, make_blocks, prometheus, running, watch

CHECKOUT = Path(__file__).resolve().parents[2]
RULES = [CHECKOUT / "conf/prometheus/rules.yml", CHECKOUT / "conf/prometheus/alerts.yml"]
sys.path.insert(0, str(CHECKOUT / "conf/grafana"))
import dashboard  # noqa: E402

BACKENDS, PLANE, LOAD = "demo:1", "demo:2", "load:1"
# Values for series that no demo has. It is an error to list a series that a demo has.
NOT_IN_A_DEMO = {
    'signalbox_certificate_expiry_timestamp_seconds{role="endpoint_identity"}': (2000000000, 2000000000, 2000000000),
    'signalbox_metric_series_overflow_total{metric="signalbox_picks_total"}': (1, 1, 1),
    'signalbox_wrr_endpoint_weights_not_yet_usable_total{target="shop",cluster="orders"}': (0, 1, 2),
    'signalbox_wrr_endpoint_weights_stale_total{target="shop",cluster="orders"}': (0, 1, 2),
    'signalbox_wrr_endpoint_weights_count{target="shop",cluster="orders"}': (0, 4, 8),
    'signalbox_wrr_endpoint_weights_bucket{target="shop",cluster="orders",le="1"}': (0, 4, 8),
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


def watch_load(signalbox: Path, folder: Path, history: History) -> None:
    words = [signalbox, "backend", "--name", "a", "--cluster", "orders", "--listen", "127.0.0.1:0"]
    with running(words, stdout=subprocess.PIPE) as backend:
        port = json.loads(backend.stdout.readline())["address"].rpartition(":")[2]
        lines = (CHECKOUT / "conf/quickstart/resources.yaml").read_text(encoding="utf-8").splitlines()
        resources, script = folder / "load.yaml", folder / "script.yaml"
        resources.write_text("\n".join(line.replace("50051", port) for line in lines if "50052" not in line), encoding="utf-8")
        script.write_text("acts: [{at: 1s, mark: half}]\n", encoding="utf-8")
        # --max-lateness: late calls on a busy machine do not make this load fail.
        watch([signalbox, "load", "--target", "xds:///orders", "--call", "signalbox.demo.v1.Orders/Place", "--resources",
               resources, "--script", script, "--rate", 200, "--duration", "5s", "--max-lateness", "1h", "--metrics", 0],
              LOAD, history)


def watch_all(signalbox: Path, folder: Path) -> History:
    history, wrong = History(), []

    def guarded(watch_one, *arguments, **more) -> None:
        try:
            watch_one(*arguments, **more)
        except Exception as error:  # The test's thread raises it below.
            wrong.append(error)

    def watch_until_calls_wait() -> None:
        # A call waits if it begins in the few milliseconds of a failover, so a demo may have none.
        for _ in range(5):
            watch([signalbox, "demo", "--seconds", 5, "--rps", 1000, "--resources", resources_that_retry(folder),
                   "--metrics-detail", "endpoint"], BACKENDS, history)
            if history.has_grown(BACKENDS, "signalbox_pick_wait_seconds_count"):
                return
        raise Failed("no call waited for an endpoint in five demos")

    programs = [
        threading.Thread(target=guarded, args=(watch_until_calls_wait,)),
        threading.Thread(target=guarded, args=(watch, [
            signalbox, "demo", "--drill", "control-plane", "--kill-seconds", 1, "--stop-seconds", 0, "--rps", 50],
            PLANE, history),
            # The demo runs until its ADS stream has ended and a new stream is connected.
            kwargs={"enough": lambda: history.times_above_0(PLANE, "signalbox_xds_streams_total") > 2
                    and history.value(PLANE, "signalbox_xds_connected") == 1}),
        threading.Thread(target=guarded, args=(watch_load, signalbox, folder, history)),
    ]
    for program in programs:
        program.start()
    for program in programs:
        program.join()
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
        cls.history = watch_all(Path(os.environ["SIGNALBOX"]), folder)
        cls.begin, cls.end = cls.history.times()
        cls.in_a_demo = cls.history.metrics()
        for series, values in NOT_IN_A_DEMO.items():
            for when, value in zip((cls.begin, cls.begin + 1, cls.end), values):
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
                # This selector chooses failed calls. A demo may have none.
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
