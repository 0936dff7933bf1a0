#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of `./run bench fleet` (fleet.py, fleet_page.py): refused arguments, the page, and small
fleets of the real program.

Usage: fleet_test.py BUILD-FOLDER"""

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import fleet
from bench import parse, run_fleet
from fleet import MANNERS, SCENARIOS, Run
from fleet_page import Axes, as_text, page, stairs, steps_to, text
from growth_test import Reader
from world import MeasurementFailed

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path()


def outcome(manner: str = "signalbox", scenario: str = "restart", **changed) -> dict:
    return {"scenario": scenario, "title": "away <for> 5 seconds", "manner": manner, "clients": 4, "capacity": 2.0, "seed": 1,
            "published_s": 5.0, "p50_s": 1.0, "p99_s": 2.5, "p100_s": 2.5, "peak": 7, "peak_connections": 3,
            "peak_connections_tenth": 2, "messages": 36, "connections": 4, "refused": 2, "wasted": 0, "nacks": 0, "most_nacks": 0,
            "longest_wait_s": 0.5, "arrived": [0, 7, 3], "refused_each": [2, 0, 0], "reached": [2, 3, 4], **changed}


RUN = Run([outcome(manner, scenario) for scenario in ("push", "restart") for manner in MANNERS], [outcome(capacity=200.0)])


class PageTest(unittest.TestCase):
    def test_it_has_two_charts_for_each_scenario_and_two_tables(self) -> None:
        reader = Reader()
        reader.feed(page(RUN))
        self.assertEqual(reader.open, [])
        self.assertEqual(reader.counts["figure"], 2 * 2)
        self.assertEqual(reader.counts["table"], 2)
        # A curve of messages, one of refused attempts and one of clients for each outcome.
        self.assertEqual(reader.counts["polyline"], 3 * len(RUN.outcomes))

    def test_it_loads_nothing_and_runs_nothing(self) -> None:
        written = page(RUN)
        self.assertIn("default-src 'none'", written)
        for word in ("<script", "http://", "https://", "url(", "@import", "javascript:", "<for>"):
            self.assertNotIn(word, written)
        self.assertIn("prefers-color-scheme: dark", written)

    def test_without_capacities_there_is_one_table(self) -> None:
        reader = Reader()
        reader.feed(page(Run(RUN.outcomes, [])))
        self.assertEqual(reader.counts["table"], 1)

    def test_clients_that_are_never_served_are_told(self) -> None:
        never = Run([outcome(p99_s=None, p100_s=None, reached=[])], [])
        self.assertIn("never", text(never))
        self.assertIn("never all", page(never))

    def test_every_point_is_inside_its_chart(self) -> None:
        written = page(Run([outcome(refused_each=[1_000_000, 0, 0])], []))
        for points in re.findall(r'points="([^"]*)"', written):
            for point in points.split():
                x, y = map(float, point.split(","))
                self.assertTrue(0 <= x <= 560 and 0 <= y <= 340, point)

    def test_axes_have_round_steps(self) -> None:
        for largest, steps in [(7, [0, 1, 2, 3, 4, 5, 6, 7]), (0, [i / 10 for i in range(11)]), (1000, range(0, 1001, 100))]:
            for found, wanted in zip(steps_to(largest), steps, strict=True):
                self.assertAlmostEqual(found, wanted)
        for largest in (3, 29, 45, 810, 17_788):
            self.assertTrue(4 <= len(steps_to(largest)) <= 12, largest)
            self.assertGreaterEqual(steps_to(largest)[-1], largest)

    def test_stairs_have_two_corners_for_each_second(self) -> None:
        self.assertEqual(stairs([3, 5]), [(0.0, 3.0), (1.0, 3.0), (1.0, 5.0), (2.0, 5.0)])

    def test_axes_begin_with_zero(self) -> None:
        axes = Axes([0.0, 10.0], [0.0, 5.0])
        self.assertLess(axes.x(0), axes.x(10))
        self.assertGreater(axes.y(0), axes.y(5))

    def test_numbers_are_short(self) -> None:
        self.assertEqual([as_text(value) for value in (None, 10_000, 2.25)], ["never", "10,000", "2.2"])


class ArgumentsTest(unittest.TestCase):
    def refusal(self, *arguments: str) -> str:
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            parse(list(arguments))
        self.assertEqual(end.exception.code, 2)
        return said.getvalue().splitlines()[-1]

    def test_wrong_arguments_are_named(self) -> None:
        for arguments, named in [
            (("fleet", "storm"), "no scenario 'storm'. There are: push"), (("restart", "fleet"), "no row 'restart'"),
            (("fleet", "--pairs", "3"), "--pairs: fleet"), (("fleet", "--gate"), "--gate: fleet"),
            (("fleet", "--seconds", "3"), "--seconds: fleet"), (("fleet", "--clients", "0"), "--clients"),
            (("fleet", "--capacity", "0.5"), "--capacity"), (("scale", "--clients", "5"), "--clients: only for fleet"),
            (("--capacity", "5"), "--capacity: only for fleet"),
        ]:
            with self.subTest(arguments):
                self.assertIn(named, self.refusal(*arguments))

    def test_the_capacity_follows_the_clients(self) -> None:
        for arguments, clients, capacity in [((), 10_000, 2000), (("--quick",), 1000, 200), (("--clients", "50"), 50, 10),
                                             (("--clients", "4"), 4, 1), (("--clients", "50", "--capacity", "7"), 50, 7)]:
            options = parse(["fleet", *arguments])
            self.assertEqual((options.clients, options.capacity), (clients, capacity), arguments)

    def test_help_names_the_scenarios(self) -> None:
        said = subprocess.run([ROOT / "run", "help", "bench"], check=True, capture_output=True, text=True).stdout
        words = re.split(r"[\s,;.]+", said)
        self.assertEqual([name for name in (*SCENARIOS, "fleet", "--clients", "--capacity") if name not in words], [])


class ProgramTest(unittest.TestCase):
    def test_small_fleets_are_run_written_and_judged(self) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            html, data = Path(folder) / "page.html", Path(folder) / "data.json"
            options = parse(["fleet", "--build", str(BUILD), "--clients", "50", "--html", str(html), "--json", str(data)])
            self.assertEqual(run_fleet(options), 0)
            self.assertIn("<h1>A fleet and its control plane</h1>", html.read_text(encoding="utf-8"))
            written = json.loads(data.read_text(encoding="utf-8"))
        self.assertEqual([(one["scenario"], one["manner"]) for one in written["outcomes"]],
                         [(scenario, manner) for scenario in SCENARIOS for manner in MANNERS])
        for one in written["outcomes"]:
            self.assertEqual(set(one), set(outcome()))
            self.assertEqual((one["reached"][-1], sum(one["arrived"])), (50, one["messages"]), one["scenario"])
            # The seconds of a title are when the newest version is published.
            self.assertIn(re.findall(r"(\d+) seconds", one["title"]), ([], [f"{one['published_s']:.0f}"]), one["title"])
        self.assertEqual([one["capacity"] for one in written["sizes"]], [part * 50 for part in fleet.SIZED_PARTS])
        self.assertIn("bad-again  no-jitter", said.getvalue())

    def test_few_clients_have_a_sizing_table_of_the_capacities_that_the_program_takes(self) -> None:
        for clients, capacities in [(1, [1.0]), (5, [1.0, 2.5, 5.0])]:
            with self.subTest(clients):
                options = parse(["fleet", "--build", str(BUILD), "--clients", str(clients)])
                found = fleet.run(BUILD, [], clients, options.capacity, lambda said: None)
                self.assertEqual([one["capacity"] for one in found.sizes], capacities)
                self.assertIn("Capacities", page(found))

    def test_named_scenarios_alone_are_run(self) -> None:
        found = fleet.run(BUILD, ["bad"], 20, 10, lambda said: None)
        self.assertEqual([one["manner"] for one in found.outcomes], list(MANNERS))
        self.assertEqual((found.outcomes[0]["nacks"], found.sizes), (20, []))

    def test_a_program_that_fails_is_told(self) -> None:
        with mock.patch("fleet.subprocess.run", return_value=mock.Mock(returncode=2)), self.assertRaises(MeasurementFailed):
            fleet.run(BUILD, ["bad"], 20, 10, lambda said: None)


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1))
    unittest.main()
