#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./run bench: measures signalbox ("ours") and the peer in turn. The peer of most rows is gRPC's
own xds:/// channel. In the other rows it is signalbox without the feature that the row is about, or
a promised limit, or there is none.
`./run bench scale` measures how costs grow instead: growth.py. `./run bench fleet` computes what a
fleet of clients does to a control plane: fleet.py.

    rows ─▶ for each experiment: a world; pairs of runs (ours, peer, peer, ours, …) ─▶ Comparison ─▶ table, JSON

Progress goes to stderr, and the table goes to stdout. README.md in this folder explains each
row."""

import argparse
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Optional

import fleet
import fleet_page
import growth
import growth_page
from comparison import Comparison, as_text, table
from experiments import SIDES, Experiment, Scale
from rows import NAMES, PLANS, Plan
from world import MeasurementFailed, Programs, World

ROOT = Path(__file__).resolve().parents[2]
FULL = Scale(pairs=15, seconds=2.0)
QUICK = Scale(pairs=5, seconds=1.0)
FILES = 11_000
REPEATS = 2  # The most repetitions of a disturbed pair.


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run bench", description="signalbox against gRPC's own xds:/// channel, in interleaved pairs.",
        epilog=f"Rows: {', '.join(NAMES)}. `scale` alone, or with names of sweeps, measures how costs grow with sizes: "
               f"{', '.join(growth.NAMES)}. `fleet` alone, or with names of scenarios, computes what many clients do to a "
               f"control plane: {', '.join(fleet.SCENARIOS)}. Exit status: 0 all was measured, 1 something could not be measured or, with "
               "--gate, is NOT MET, 2 wrong arguments.")
    parser.add_argument("--quick", action="store_true",
                        help=f"{QUICK.pairs} pairs for each row instead of {FULL.pairs}; with scale: smaller sizes, once; "
                             f"with fleet: {fleet.QUICK_CLIENTS:,} clients")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to this file as data")
    parser.add_argument("--html", type=Path, metavar="FILE", help="with scale or fleet: write the result to this file as a page")
    parser.add_argument("--clients", type=int, metavar="N", help=f"with fleet: so many; by default {fleet.CLIENTS:,}")
    parser.add_argument("--capacity", type=float, metavar="N",
                        help="with fleet: messages a second of the control plane; by default a fifth of the clients, at least 1")
    parser.add_argument("--pairs", type=int, metavar="N", help="so many pairs")
    parser.add_argument("--seconds", type=float, metavar="S", help="how long each side of a pair measures")
    parser.add_argument("--gate", action="store_true", help="exit status 1 if a row is NOT MET; noise is no failure")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help=argparse.SUPPRESS)
    parser.add_argument("--only-arguments", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="by default all of them")
    options = parser.parse_intermixed_args(arguments)
    options.is_scale = options.rows[:1] == ["scale"]
    options.is_fleet = options.rows[:1] == ["fleet"]
    if options.is_scale:
        check_scale(parser, options)
    elif options.is_fleet:
        check_fleet(parser, options)
    else:
        for row in options.rows:
            if row not in NAMES:
                parser.error(f"there is no row '{row}'. There are: {' '.join(NAMES)}; and before all others: scale, fleet")
        if options.html is not None:
            parser.error("--html: only `scale` and `fleet` write pages, as in `./run bench scale --html FILE`")
    for option in ("clients", "capacity"):
        if not options.is_fleet and getattr(options, option) is not None:
            parser.error(f"--{option}: only for fleet")
    if options.pairs is not None and options.pairs < 1:
        parser.error(f"--pairs: expected 1 or more, got {options.pairs}")
    if options.seconds is not None and not 0 < options.seconds <= 600:
        parser.error(f"--seconds: expected more than 0 and at most 600, got {options.seconds:g}")
    check_writable(parser, "--json", options.json)
    check_writable(parser, "--html", options.html)
    return options


def check_scale(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuses what is not for `scale`."""
    for name in options.rows[1:]:
        if name not in growth.NAMES:
            parser.error(f"scale: there is no sweep '{name}'. There are: {' '.join(growth.NAMES)}")
    if options.gate:
        parser.error("--gate: scale has no bounds")
    if options.pairs is not None:
        parser.error("--pairs: scale measures no pairs")


def check_fleet(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuses what is not for `fleet`, and sets its defaults."""
    for name in options.rows[1:]:
        if name not in fleet.SCENARIOS:
            parser.error(f"fleet: there is no scenario '{name}'. There are: {' '.join(fleet.SCENARIOS)}")
    for option in ("gate", "pairs", "seconds"):
        if getattr(options, option):
            parser.error(f"--{option}: fleet measures nothing")
    if options.clients is None:
        options.clients = fleet.QUICK_CLIENTS if options.quick else fleet.CLIENTS
    if not 1 <= options.clients <= fleet.MOST_CLIENTS:
        parser.error(f"--clients: expected 1 to {fleet.MOST_CLIENTS:,}, got {options.clients}")
    if options.capacity is None:
        options.capacity = fleet.capacity_of(options.clients, fleet.CAPACITY_OF_CLIENT)
    if not options.capacity >= 1:
        parser.error(f"--capacity: expected 1 or more, got {options.capacity:g}")


def check_writable(parser: argparse.ArgumentParser, option: str, file: Optional[Path]) -> None:
    """Refuses an unusable file now, not after minutes of measurements."""
    if file is None:
        return
    existed = file.exists()
    try:
        with file.open("a", encoding="utf-8"):
            pass
        if not existed:
            file.unlink()
    except OSError as error:
        parser.error(f"{option} {file}: {error.strerror}")


def sides_of(pair: int) -> tuple[str, ...]:
    """The order of the sides in a pair. It alternates (ours, peer, peer, ours, …), because a fixed
    order could favour one side."""
    return SIDES if pair % 2 == 0 else SIDES[::-1]


def medians(plan: Plan, runs: list[dict]) -> list[str]:
    """Output lines with the medians of the rows' notes."""
    lines = []
    for row in plan.rows:
        for note in row.notes:
            note_of = Comparison(note, "", pairs=[
                (run["ours"][note], run["peer"][note] if run["peer"] else None) for run in runs])
            lines.append(f"{row.name}: {note}: ours {as_text(note_of.ours())}, peer {as_text(note_of.peer())}")
    return lines


def run_pair(experiment: Experiment, pair: int, names: str) -> tuple[dict[str, Optional[dict]], list[str]]:
    """Measures both sides. Returns their numbers, and a line for each failed measurement. If one
    side of a repeatable experiment fails, both sides are measured again, because the sides of a
    pair must run right after each other. After REPEATS repetitions, the next failure is raised."""
    disturbed: list[str] = []
    while True:
        try:
            return {side: experiment.run(side, pair) for side in sides_of(pair)}, disturbed
        except MeasurementFailed as failure:
            if not experiment.is_repeatable or len(disturbed) == REPEATS:
                raise
            disturbed.append(f"{names}: pair {pair + 1} was measured again: {failure}")
            say(disturbed[-1])


def run_plan(plan: Plan, wanted: list[str], programs: Programs, scale: Scale) -> tuple[list[Comparison], list[str]]:
    rows = [row for row in plan.rows if row.name in wanted]
    comparisons = [Comparison(row.name, row.unit, row.target) for row in rows]
    names = ", ".join(row.name for row in rows)
    say(f"{names}: preparing")
    runs, disturbed = [], []
    pairs = min(scale.pairs, plan.most_pairs or scale.pairs)
    with World(programs) as world:
        experiment = plan.make()
        load = experiment.prepare(world, scale)
        for pair in range(pairs):
            results, failures = run_pair(experiment, pair, names)
            disturbed += failures
            runs.append(results)
            for row, comparison in zip(rows, comparisons):
                peer = results["peer"]
                comparison.pairs.append((results["ours"][row.number], peer[row.number] if peer else None))
            ratios = ", ".join(as_text(comparison.ratio(), 3) for comparison in comparisons)
            say(f"{names}: pair {pair + 1} of {pairs}: ratio so far {ratios}")
    kept = Plan(plan.make, tuple(rows))
    fewer = f"; {pairs} pairs" if pairs < scale.pairs else ""
    return comparisons, [f"{names}: {load}{fewer}", *medians(kept, runs), *disturbed]


def run_all(options: argparse.Namespace) -> int:
    scale = QUICK if options.quick else FULL
    scale = Scale(options.pairs or scale.pairs, options.seconds or scale.seconds)
    wanted = options.rows or list(NAMES)
    programs = Programs.of_build(options.build)
    start, load_before = time.monotonic(), os.getloadavg()[0]
    comparisons: list[Comparison] = []
    notes: list[str] = []
    failed = []
    for plan in PLANS:
        if not any(row.name in wanted for row in plan.rows):
            continue
        try:
            measured, lines = run_plan(plan, wanted, programs, scale)
        except MeasurementFailed as failure:
            failed.append(", ".join(row.name for row in plan.rows if row.name in wanted))
            say(f"{failed[-1]}: not measured: {failure}")
            continue
        comparisons += measured
        notes += lines
    if comparisons:
        print(table(comparisons), *notes, sep="\n")
    print(f"{os.cpu_count()} cores, load average {load_before:.2f} before; {time.monotonic() - start:.0f} s; ratio: "
          "median of the pairs' ours / peer; spread: their p75 - p25; noise: too much spread for a verdict")
    if options.json is not None:
        options.json.write_text(json.dumps([c.as_data() for c in comparisons], indent=2) + "\n", encoding="utf-8")
    for names in failed:
        print(f"not measured: {names}")
    is_missed = options.gate and any(comparison.verdict() == "NOT MET" for comparison in comparisons)
    return 1 if failed or is_missed else 0


def run_scale(options: argparse.Namespace) -> int:
    result, is_whole = growth.run(options.build, options.rows[1:], options.quick, options.seconds, say)
    print(growth_page.text(result))
    if options.json is not None:
        growth.write_json(options.json, result)
    if options.html is not None:
        options.html.write_text(growth_page.page(result), encoding="utf-8")
    return 0 if is_whole else 1


def run_fleet(options: argparse.Namespace) -> int:
    try:
        result = fleet.run(options.build, options.rows[1:], options.clients, options.capacity, say)
    except MeasurementFailed as failure:
        say(f"fleet: {failure}")
        return 1
    print(fleet_page.text(result))
    if options.json is not None:
        fleet.write_json(options.json, result)
    if options.html is not None:
        options.html.write_text(fleet_page.page(result), encoding="utf-8")
    return 0


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_by_signal(number: int, _frame) -> None:
    # A second signal must not interrupt the clean-up of the processes.
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> int:
    options = parse(sys.argv[1:])
    if options.only_arguments:
        return 0
    for number in SIGNALS:
        signal.signal(number, end_by_signal)
    # The client and the backend each have up to 10,000 connections, and inherit this limit of
    # files.
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    if limit != resource.RLIM_INFINITY and limit < FILES:
        say(f"a process may have only {limit} open files: rows with 10,000 connections need {FILES} (ulimit -Hn)")
    if options.is_fleet:
        return run_fleet(options)
    return run_scale(options) if options.is_scale else run_all(options)


if __name__ == "__main__":
    sys.exit(main())
