#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs some benchmarks end to end, for a very short time. The output must have the promised form,
and no process may remain. Speed is not judged, so a slow machine or a slow build will do.

Usage: smoke_test.py BUILD-FOLDER"""

import json
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parent / "bench.py"
BUILD = ""


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"  # A process that has ended may wait for its new parent to reap it.


class SmokeTest(unittest.TestCase):
    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(BENCH), "--build", BUILD, "--pairs", "1", "--seconds", "0.05", *arguments]

    def test_rows_have_their_form(self) -> None:
        wanted = ["pick_2", "pick_1000_wrr", "rpc_latency_2", "metrics_latency_2", "scrape_10000_ms", "ready_10000_ms", "queued_call", "overload_goodput",
                  "wrr_tail", "least_request_tail",
                  "failover_ms", "failover_failed_no_retry", "failover_standby_ms", "failover_failed", "control_plane_kill_failed",
                  "cold_start_200_targets_ms", "cold_start_200_targets_requests", "patterns_90000_ms", "patterns_90000_memory"]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.json"
            answer = subprocess.run(self.command("--json", str(file), *wanted), capture_output=True, text=True,
                                    check=False)
            self.assertEqual(answer.returncode, 0, answer.stderr + answer.stdout)
            rows = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual([row["name"] for row in rows], wanted)
        for row in rows:
            self.assertEqual(list(row), ["name", "ours", "peer", "ratio", "unit", "pairs", "spread"])
            self.assertEqual(row["pairs"], 1)
            # On a busy machine it is possible that no call fails, or that no call ends, in so short
            # a time.
            least = 0 if row["unit"] in ("calls", "of capacity") else 1e-6
            self.assertGreaterEqual(row["ours"], least, row["name"])
            self.assertGreaterEqual(row["peer"], least, row["name"])
            self.assertIn(row["name"], answer.stdout)
        self.assertIn("pair 1 of 1", answer.stderr)

    def test_a_sweep_measures_every_cost_at_every_size(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            data, page = Path(folder) / "growth.json", Path(folder) / "growth.html"
            answer = subprocess.run(
                [sys.executable, str(BENCH), "--build", BUILD, "--quick", "--seconds", "0.05", "--json", str(data), "--html",
                 str(page), "scale", "targets"], capture_output=True, text=True, check=False)
            self.assertEqual(answer.returncode, 0, answer.stderr + answer.stdout)
            [sweep] = json.loads(data.read_text(encoding="utf-8"))["sweeps"]
            self.assertIn("<h1>How cost grows</h1>", page.read_text(encoding="utf-8"))
        self.assertEqual((sweep["name"], sweep["sizes"]), ("targets", [1, 5, 25]))
        for measure in sweep["measures"]:
            self.assertEqual(len(measure["costs"]), 3, measure["name"])
            # A cost may be lost in the noise, or in memory that was there before.
            self.assertTrue(all(cost is not None for cost in measure["costs"]), measure["name"])
        for size in (1, 5, 25):
            self.assertIn(f"scale targets {size}: ", answer.stderr)

    def test_ctrl_c_leaves_no_process_behind(self) -> None:
        with subprocess.Popen(self.command("--pairs", "1000", "rpc_latency_2"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as driver:
            self.addCleanup(driver.kill)
            while "pair 1 of" not in driver.stderr.readline():
                self.assertIsNone(driver.poll())
            children = children_of(driver.pid)
            self.assertGreaterEqual(len(children), 2)  # At least a backend and a control plane.
            driver.send_signal(signal.SIGINT)
            driver.stderr.read()
            self.assertEqual(driver.wait(30), 130)
        # The kernel ends what the driver did not end, a moment after the driver's own end.
        deadline = time.monotonic() + 30
        while any(map(is_running, children)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual([child for child in children if is_running(child)], [])


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
