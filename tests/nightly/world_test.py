#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the gates of S14 and S17, and the orders to shim.cpp, without a process."""

import json
import tempfile
import time
import unittest
from pathlib import Path

from churn import CHURN_BASE, ROW, Live, all_served
from upgrade import PREVIOUS
from world import Failed, Faults, Process, rate_held, slope, total

PAGE = """# TYPE endpoints gauge
endpoints{cluster="a",state="ready"} 3
endpoints{cluster="a",state="idle"} 1
endpoints{cluster="b",state="ready"} 5
lines_lost 2
"""


def window(first: int, size: int) -> set[int]:
    return {CHURN_BASE + number % ROW for number in range(first, first + size)}


class LiveTest(unittest.TestCase):
    def setUp(self) -> None:
        self.live = Live(CHURN_BASE, 100, settle=60)

    def test_the_endpoints_that_stay_must_be_connected(self) -> None:
        self.live.moved(10)
        now = time.monotonic()
        for first in (0, 10):
            self.assertEqual(self.live.wrong(window(first, 100), now), "")
        self.assertEqual(self.live.wrong(window(10, 90), now), "")
        self.assertIn("1 endpoints that were there", self.live.wrong(window(11, 99), now))

    def test_an_endpoint_that_went_long_ago_must_not_be_connected(self) -> None:
        self.live.moved(10)
        later = time.monotonic() + 61
        self.assertEqual(self.live.wrong(window(10, 100), later), "")
        self.assertIn("and 10 that went longer ago are", self.live.wrong(window(0, 110), later))
        self.assertIn("10 endpoints that were there", self.live.wrong(window(0, 100), later))

    def test_other_connections_do_not_count(self) -> None:
        self.live.moved(ROW - 50)  # The row begins again behind its end.
        connected = window(ROW - 50, 100)
        self.assertTrue(self.live.is_exact(connected | {0x7F000001, CHURN_BASE - 1, CHURN_BASE + ROW}))
        self.assertFalse(self.live.is_exact(connected - {CHURN_BASE}))


    def test_a_pick_without_an_endpoint_fails(self) -> None:
        self.assertEqual(all_served({"picks": 9, "unserved": 0})["picks"], 9)
        with self.assertRaisesRegex(Failed, "1 picks of 9 found no endpoint"):
            all_served({"picks": 9, "unserved": 1})


class WorldTest(unittest.TestCase):
    def test_a_rate_of_calls_is_held_by_95_percent(self) -> None:
        rate_held({"sent": 9_500}, 1_000, 10)
        with self.assertRaisesRegex(Failed, "9,499 calls in 10.0 s are too few for 1,000 a second"):
            rate_held({"sent": 9_499}, 1_000, 10)

    def test_samples_of_a_metric_are_added_up_by_their_labels(self) -> None:
        self.assertEqual([total(PAGE, "endpoints"), total(PAGE, "endpoints", state="ready"),
                          total(PAGE, "endpoints", state="ready", cluster="a"), total(PAGE, "lines_lost"), total(PAGE, "lines")],
                         [9, 8, 3, 2, 0])

    def test_the_slope_is_that_of_the_line(self) -> None:
        self.assertAlmostEqual(slope([(second, 7 + 3 * second) for second in range(10)]), 3)
        self.assertEqual(slope([(1, 5)]), 0)

    def test_faults_are_kept_in_their_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            faults = Faults(Path(folder) / "faults")
            faults.set("most_bytes", 1 << 40)
            faults.set("clock_offset_ns", -5)
            faults.set_address("127.0.0.1")
            self.assertEqual([faults.get("most_bytes"), faults.get("clock_offset_ns"), faults.get("refused")], [1 << 40, -5, 0])
            self.assertEqual((Path(folder) / "faults").read_bytes()[40:50], b"127.0.0.1\0")
            faults.close()

    def test_a_process_that_ends_is_named_with_the_end_of_its_stderr(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            process = Process(["sh", "-c", "echo '{\"a\": 1}'; echo why >&2; kill -ABRT $$"], Path(folder) / "stderr")
            self.assertEqual(process.read(), {"a": 1})
            with self.assertRaisesRegex(Exception, "(?s)sh -c has ended by signal SIGABRT. why"):
                process.read()
            process.end()


class PreviousTest(unittest.TestCase):
    def test_each_cookie_names_an_endpoint_of_the_resources(self) -> None:
        resources = (PREVIOUS / "resources.yaml").read_text(encoding="utf-8")
        cookies = json.loads((PREVIOUS / "cookies.json").read_text(encoding="utf-8"))
        self.assertTrue(any(cookie["is_sealed"] for cookie in cookies))
        for cookie in cookies:
            host, _, port = cookie["address"].rpartition(":")
            self.assertIn(f"{{address: {host}, port_value: {port}}}", resources)

    def test_the_readme_says_each_file(self) -> None:
        readme = (PREVIOUS / "README.md").read_text(encoding="utf-8")
        for path in PREVIOUS.iterdir():
            self.assertTrue(path.name == "README.md" or f"`{path.name}`" in readme, path.name)


if __name__ == "__main__":
    unittest.main()
