#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests how world.py reads metrics, orders faults of shim.cpp and reads a process, and that the files
of previous/ agree."""

import json
import tempfile
import unittest
from pathlib import Path

from upgrade import PREVIOUS
from world import Faults, Process, slope, total

PAGE = """# TYPE endpoints gauge
endpoints{cluster="a",state="ready"} 3
endpoints{cluster="a",state="idle"} 1
endpoints{cluster="b",state="ready"} 5
lines_lost 2
"""


class WorldTest(unittest.TestCase):
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
