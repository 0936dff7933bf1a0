#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the numbers that docs/operate.md has of fleets.

    signalbox_fleet ─▶ --write ─▶ outcomes.json: "document", 10,000 clients ◀─ equal ─▶ docs/operate.md
                                                 "small", 500 clients       ◀─ equal ─▶ signalbox_fleet

The runs of 10,000 clients take minutes, so the test computes those of 500 anew, and two of 10,000.
When these differ, the model has changed: write the file again, and change the document where it
differs.

Usage: document_test.py BUILD-FOLDER           the test
       document_test.py BUILD-FOLDER --write   write outcomes.json"""

import json
import re
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))
import fleet  # noqa: E402
from fleet_page import as_text  # noqa: E402

BUILD = Path()
FILE = HERE / "outcomes.json"
SMALL_CLIENTS = 500
MANNERS = ["signalbox", "grpc-core", "grpc-go"]  # The columns of the document.
FAST_PART = 2.0  # As fleet.SIZED_PARTS. In `bad-again`: the capacity for 120 NACKs of each client.
SERIES = ("title", "arrived", "refused_each", "reached")  # Not in the file.
WORDS = {2: "two", 9: "nine"}


def compute(clients: int) -> list[dict]:
    """All outcomes that the document has numbers of."""
    runs = [(fleet.CAPACITY_OF_CLIENT, list(fleet.SCENARIOS), MANNERS), (fleet.CAPACITY_OF_CLIENT, ["away"], ["no-jitter"]),
            (FAST_PART, ["bad-again"], ["signalbox", "grpc-core"])]
    runs += [(part, [fleet.SIZED_SCENARIO], [fleet.SIZED_MANNER]) for part in fleet.SIZED_PARTS
             if part != fleet.CAPACITY_OF_CLIENT]
    return [outcome for run in runs for outcome in outcomes_of(clients, *run)]


def outcomes_of(clients: int, part: float, scenarios: list[str], manners: list[str]) -> list[dict]:
    program = BUILD / "tests/fleet/signalbox_fleet"
    outcomes = fleet.outcomes_of(program, clients, fleet.capacity_of(clients, part), scenarios, manners)
    return [{key: value for key, value in outcome.items() if key not in SERIES} for outcome in outcomes]


def write() -> None:
    """One outcome a line."""
    parts = {"document": compute(fleet.CLIENTS), "small": compute(SMALL_CLIENTS)}
    lists = [f'"{name}": [\n' + ",\n".join(map(json.dumps, outcomes)) + "\n]" for name, outcomes in parts.items()]
    FILE.write_text("{" + ",\n".join(lists) + "}\n", encoding="utf-8")


def times(outcome: dict, decimals: int) -> str:
    return " / ".join(f"{outcome[key]:.{decimals}f}" for key in ("p50_s", "p99_s", "p100_s"))


def in_vain(outcome: dict) -> str:
    percent = 100 * outcome["wasted"] / outcome["messages"]
    return "0" if percent == 0 else f"{percent:.1g} %" if percent < 1 else f"{percent:.0f} %"


class OutcomesTest(unittest.TestCase):
    changed = "the model has changed: write outcomes.json again"

    @classmethod
    def setUpClass(cls) -> None:
        cls.written = json.loads(FILE.read_text(encoding="utf-8"))

    def test_the_program_computes_the_outcomes_of_the_small_fleets(self) -> None:
        for new, old in zip(compute(SMALL_CLIENTS), self.written["small"], strict=True):
            self.assertEqual(new, old, self.changed)

    def test_the_program_computes_two_outcomes_of_the_document(self) -> None:
        new = outcomes_of(fleet.CLIENTS, fleet.CAPACITY_OF_CLIENT, ["handover", "bad"], ["signalbox"])
        self.assertEqual(len(new), 2)
        for outcome in new:
            self.assertIn(outcome, self.written["document"], self.changed)


class DocumentTest(unittest.TestCase):
    section = (HERE.parents[1] / "docs/operate.md").read_text(encoding="utf-8").split("\n## How large must the")[1]

    @classmethod
    def setUpClass(cls) -> None:
        cls.outcomes = json.loads(FILE.read_text(encoding="utf-8"))["document"]

    def outcome(self, scenario: str, manner: str = "signalbox", part: float = fleet.CAPACITY_OF_CLIENT) -> dict:
        [found] = [one for one in self.outcomes
                   if (one["scenario"], one["manner"], one["capacity"]) == (scenario, manner, part * fleet.CLIENTS)]
        return found

    def test_rows_of_scenarios(self) -> None:
        rows = re.findall(r"^\| `([\w-]+)`: ([^|]*)\|(.*)\|$", self.section, re.MULTILINE)
        self.assertEqual([name for name, _, _ in rows], list(fleet.SCENARIOS))
        for name, title, row in rows:
            self.assertIn(re.findall(r"(\d+) s\b", title), ([], [f"{self.outcome(name)['published_s']:.0f}"]), title)
            cells = [cell.strip() for cell in row.split("|")]
            of_times, of_peaks = cells[:3], cells[3:]
            decimals = len(of_times[0].partition(" ")[0].partition(".")[2])
            for column, manner in enumerate(MANNERS):
                with self.subTest(name, manner=manner):
                    outcome = self.outcome(name, manner)
                    for shown, value in (of_times, times(outcome, decimals)), (of_peaks, as_text(outcome["peak"])):
                        same = {"the same": shown[0], "as C++": shown[1]}
                        self.assertEqual(same.get(shown[column], shown[column]), value)

    def test_rows_of_capacities(self) -> None:
        rows = re.findall(r"^\| [\d,]+ \|.*", self.section, re.MULTILINE)
        computed = [(part, self.outcome(fleet.SIZED_SCENARIO, part=part)) for part in reversed(fleet.SIZED_PARTS)]
        self.assertEqual(rows, [f"| {one['capacity']:,.0f} | {part:g} | {times(one, 1)} | {in_vain(one)} |"
                                for part, one in computed])

    def test_numbers_of_the_text(self) -> None:
        text = " ".join(self.section.split())
        for phrase in [*self.of_capacity(), *self.of_waits(), *self.of_nacks()]:
            with self.subTest(phrase):
                self.assertIn(phrase, text)

    def of_capacity(self) -> list[str]:
        """What follows for the capacity of a control plane."""
        back, one_resource = self.outcome("handover"), self.outcome("bad")
        clients, capacity = back["clients"], back["capacity"]
        enough = min(part for part in fleet.SIZED_PARTS if self.outcome("restart", part=part)["wasted"] == 0)
        costs = {self.outcome(scenario, manner)["messages"] for scenario in ("handover", "restart", "away") for manner in MANNERS}
        self.assertEqual(costs, {back["messages"]})
        self.assertEqual(round(one_resource["p100_s"] * capacity / clients, 2), 1)
        cost = back["messages"] // clients
        return [f"runs {clients:,} clients and one control plane",
                f"{clients:,} clients, and a control plane of {capacity:,.0f} messages a second.",
                f"A client that comes back costs {WORDS[cost]} messages",
                f"need {back['p99_s'] * capacity / clients:.0f} N / capacity seconds at least",
                f"busy for {cost} N / capacity.", "A change of one resource takes N / capacity seconds to push.",
                f"Have at least {enough:g} messages a second for each client"]

    def of_waits(self) -> list[str]:
        """How clients come back."""
        away, restart = self.outcome("away"), {manner: self.outcome("restart", manner) for manner in MANNERS}
        # All clients are refused three times. The server is back before the fourth attempt, or not.
        fourth = {manner: one["refused"] / one["clients"] - 3 for manner, one in restart.items()}
        self.assertEqual(round(fourth["grpc-core"], 3), 0, "the next attempt of all its clients is still to come")
        slow = {manner: self.outcome("slow", manner) for manner in MANNERS}
        for outcomes, fastest in (restart, "grpc-core"), (slow, "grpc-go"):
            self.assertEqual(min(outcomes.values(), key=lambda one: one["p99_s"])["manner"], fastest)
        vain = [in_vain(one) for one in slow.values()]
        return [f"In `handover` all {self.outcome('handover')['peak_connections_tenth']:,} connections arrive within",
                f"{away['peak_connections']:,} connections in the busiest second, where clients without jitter make "
                f"{self.outcome('away', 'no-jitter')['peak_connections']:,}.",
                f"The price is {WORDS[round(away['p100_s'] / 60)]} minutes until the last client has the newest version.",
                "In `restart` gRPC C++ is the fastest to reach 99 %.",
                f"When the server is back after {restart['grpc-core']['published_s']:.0f} s, the next attempt of all",
                "In `slow` these waves decide the order, and gRPC Go is the fastest:",
                f"Of signalbox's clients, {100 * fourth['signalbox']:.0f} % have just been refused",
                f"with signalbox {vain[0]} of the work is in vain, with gRPC C++ {vain[1]} and with gRPC Go {vain[2]}."]

    def of_nacks(self) -> list[str]:
        """What a bad resource costs, in the 60 s until it is mended."""
        again, grpc = self.outcome("bad-again"), self.outcome("bad-again", "grpc-core")
        fast, fast_grpc = (self.outcome("bad-again", manner, FAST_PART) for manner in MANNERS[:2])
        self.assertEqual({self.outcome("bad", manner)["nacks"] for manner in MANNERS}, {again["clients"]})
        return [f"{again['clients']:,} clients send {round(again['nacks'] / 60, -2):,.0f} messages a second on average",
                f"at {fast['capacity']:,.0f} messages a second {round(fast_grpc['nacks'], -3):,} NACKs in a minute, where "
                f"signalbox sends {round(fast['nacks'], -3):,}.",
                f"a repaired version arrives about {round(again['p99_s'] - grpc['p99_s'], -1):.0f} s later."]


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1))
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        unittest.main()
