#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""S14: a tenth of the endpoints is replaced each second; then 1,000 EDS updates a second.

    signalbox_nightly_plane ─ EDS ─▶ signalbox_nightly_client ─▶ one `signalbox backend` on 0.0.0.0
        ▲ replace, burst                 ├─ calls, picks, memory
        └── this driver ◀────────────────┴─ /proc/net/tcp: its connections

Gates: no call is lost; each pick finds an endpoint; the connections are the set of endpoints as it was within the
last five seconds (--settle). With --judge, which wants a quiet machine: endpoints and updates come at nine tenths of
these rates at least; the p99 of picks is at most twice that of the same run before the changes; and, in a run of at
least half an hour, memory grows by at most 1 MiB a minute after the warm-up. Trims of the heap let it rise and fall by
a tenth within minutes, which would look like growth in a shorter run.

Prints `N minutes: …` when all gates are met."""

import argparse
import sys
import time
from collections import deque
from pathlib import Path

from world import (PATIENCE, Client, Process, Programs, World, after_warm_up, allow_files, check, connected_to,
                   eventually, none_lost, resident_bytes, run_part, slope)

CHURN_BASE = 0x7F400000  # plane.cpp has the same addresses.
BURST_BASE = 0x7F200000
ROW = 1 << 21
BURST_ENDPOINTS = 100
BURST_UPDATES = 1_000  # A second.
TENTH = 10
LEAST_OF_RATE = 0.9
MOST_PICK_RATIO = 2.0
MOST_SLOPE = 1 << 20  # Bytes a minute.
LEAST_FOR_MEMORY = 1800.0  # Seconds.
RATE = 400  # Calls a second.
IDLE_SECONDS = 10.0
# Seconds. The kernel's list of connections is long, because it has those that have ended in the last minute: to read it
# each second would take half a processor from the client.
LOOK_EVERY = 5.0
LEAST_LOOKS = 5  # A short run looks more often.
FILES_FOR_ALL_ELSE = 1_000


class Live:
    """The endpoints of a cluster over time: a window that only moves up."""

    def __init__(self, base: int, size: int, settle: float) -> None:
        """`settle`: the time within which connections follow the endpoints, in seconds."""
        self._base, self._size, self._settle = base, size, settle
        self._firsts: deque[tuple[float, int]] = deque([(0.0, 0)])

    def moved(self, first: int) -> None:
        """The window was moved, at some time since the last look."""
        self._firsts.append((time.monotonic(), first))

    def wrong(self, connected: set[int], looked: float) -> str:
        """What is wrong with the connections that were there at the time `looked`. An endpoint may be
        connected if it was in the window at some time in the last `settle` seconds. It must be if
        it was all the time."""
        while len(self._firsts) > 1 and self._firsts[1][0] <= looked - self._settle:
            self._firsts.popleft()
        oldest, newest = self._firsts[0][1], self._firsts[-1][1]
        # Endpoints of an update that the plane is sending now may be connected, too.
        low, high = oldest, newest + 2 * self._size
        mine = {address - self._base for address in connected if 0 <= address - self._base < ROW}
        must = {number % ROW for number in range(newest, oldest + self._size)}
        may = {number % ROW for number in range(low, high)}
        missing, extra = must - mine, mine - may
        if not missing and not extra:
            return ""
        return (f"{len(missing)} endpoints that were there for {self._settle:.0f} s are not connected, "
                f"and {len(extra)} that went longer ago are")

    def is_exact(self, connected: set[int]) -> bool:
        first = self._firsts[-1][1]
        return {address for address in connected if 0 <= address - self._base < ROW} == {
            self._base + number % ROW for number in range(first, first + self._size)}


class Site:
    """A control plane, and a client with calls to one of its clusters. A control plane of its own for
    each cluster, because a response has all endpoints that the client wants."""

    def __init__(self, world: World, target: str, port: int, live: Live, **sizes: int) -> None:
        words = [word for name, size in sizes.items() for word in (f"--{name}", size)]
        self.plane: Process = world.start([world.programs.plane, "--port", port, *words])
        self.client: Client = world.client(world.bootstrap(self.plane.read()["address"]), targets=(f"xds:///{target}",))
        self.live, self._port = live, port
        eventually(self.is_exact, "all endpoints are connected", 10 * PATIENCE)
        self.client.ask(f"rate {RATE}")
        eventually(self.client.has_answers(RATE), "calls are answered")

    def is_exact(self) -> bool:
        return self.live.is_exact(connected_to(self._port))

    def finish(self, what: str) -> int:
        counts = self.client.finish()
        none_lost(counts, what)
        return counts["ok"]


def all_served(picks: dict) -> dict:
    check(picks["unserved"] == 0, f"{picks['unserved']:,} picks of {picks['picks']:,} found no endpoint")
    return picks


def growth_of(memory: list[tuple[float, float]], seconds: float) -> float:
    """Bytes a minute after the warm-up. `memory`: seconds and bytes."""
    return 60 * slope(after_warm_up(memory, seconds))


def judge_churn(options: argparse.Namespace, replaced: int, ratio: float, growth: float, figures: str) -> None:
    """`ratio`: the p99 of picks, in parts of that before the churn. `growth`: bytes a minute."""
    check(replaced >= LEAST_OF_RATE * options.seconds * options.endpoints / TENTH,
          f"fewer than a tenth of the endpoints were replaced each second: {figures}")
    check(ratio <= MOST_PICK_RATIO, f"p99 of picks is {ratio:.1f} times that before the churn: {figures}")
    check(growth <= MOST_SLOPE or options.seconds < LEAST_FOR_MEMORY, f"memory grows by more than 1 MiB a minute: {figures}")


def judge_rate(burst: dict) -> None:
    check(burst["updates"] >= LEAST_OF_RATE * BURST_UPDATES * burst["seconds"],
          f"{burst['updates']:,} updates took {burst['seconds']:.1f} s")


def all_taken(burst: dict, record: dict, applied: float) -> None:
    """The client took the updates on one stream. `applied`: the configurations that came of them."""
    check(record["nacks"] == 0, f"{record['nacks']} updates were refused")
    check(record["streams"] == 1, f"the client needed {record['streams']} streams")
    check(applied <= burst["updates"], f"{applied:.0f} configurations came of {burst['updates']} updates")


class Churn:
    def __init__(self, world: World, options: argparse.Namespace) -> None:
        self._world, self._options = world, options
        _, address = world.backend("all", "0.0.0.0:0")
        self._port = int(address.rpartition(":")[2])
        self._churn = Live(CHURN_BASE, options.endpoints, options.settle)
        self._site = Site(world, "churn", self._port, self._churn, churn=options.endpoints, burst=1)
        self._client, self._plane = self._site.client, self._site.plane
        self._memory: list[tuple[float, float]] = []

    def run(self) -> str:
        seconds = min(IDLE_SECONDS, self._options.seconds / 4)
        idle = all_served(self._client.ask(f"picks {seconds}", seconds + PATIENCE))
        churned = self._replace(self._options.seconds)
        eventually(self._site.is_exact, "the connections are those of the endpoints after the churn",
                   self._options.settle)
        calls = self._site.finish("churn")
        self._world.end(self._client)
        burst = self._flood(self._options.burst_seconds)
        growth = growth_of(self._memory, self._options.seconds)
        ratio = churned["p99_ns"] / idle["p99_ns"]
        figures = (f"{calls:,} calls, {churned['replaced']:,} endpoints replaced; {burst}; "
                   f"p99 of picks {idle['p99_ns']:,} ns, then {churned['p99_ns']:,} ns; memory {growth / (1 << 20):+.2f} MiB a minute")
        if self._options.judge:
            judge_churn(self._options, churned["replaced"], ratio, growth, figures)
        return f"{self._options.seconds / 60:g} minutes: {figures}; 0 lost"

    def _replace(self, seconds: float) -> dict:
        """Replaces a tenth of the endpoints each second while the client times its picks."""
        begun = time.monotonic()
        self._client.write(f"picks {seconds}")
        replaced, looked = 0, 0.0
        look_every = min(LOOK_EVERY, seconds / LEAST_LOOKS)
        while (second := time.monotonic() - begun) < seconds:
            first = self._plane.ask(f"replace {self._options.endpoints // TENTH}")["first"]
            self._churn.moved(first)
            replaced += self._options.endpoints // TENTH
            if second >= looked + look_every:
                looked = second
                self._look(second)
            self._memory.append((second, resident_bytes(self._client.pid)))
            time.sleep(max(0.0, begun + int(second) + 1 - time.monotonic()))
        return {**all_served(self._client.read(PATIENCE)), "replaced": replaced}

    def _look(self, second: float) -> None:
        looked = time.monotonic()
        connected = connected_to(self._port)
        wrong = self._churn.wrong(connected, looked)
        check(not wrong, f"after {second:.0f} s: {wrong}")

    def _flood(self, seconds: float) -> str:
        """1,000 updates a second, each of which replaces an endpoint. The client may apply several at
        once."""
        live = Live(BURST_BASE, BURST_ENDPOINTS, self._options.settle)
        site = Site(self._world, "burst", self._port, live, churn=1, burst=BURST_ENDPOINTS)
        applied = site.client.metric("signalbox_config_generation")
        burst = site.plane.ask(f"burst {seconds} {BURST_UPDATES}", seconds + PATIENCE)
        live.moved(burst["first"])
        eventually(site.is_exact, "the connections are those of the endpoints after the burst", self._options.settle)
        applied = site.client.metric("signalbox_config_generation") - applied
        if self._options.judge:
            judge_rate(burst)
        all_taken(burst, site.plane.ask("record"), applied)
        calls = site.finish("burst")
        return f"{calls:,} calls, {burst['updates']:,} updates in {burst['seconds']:.1f} s, {applied:,.0f} configurations of them"


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="churn.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--burst-seconds", type=float, default=60.0)
    parser.add_argument("--endpoints", type=int, default=10_000)
    parser.add_argument("--settle", type=float, default=5.0, help="seconds until connections follow the endpoints")
    parser.add_argument("--judge", action="store_true", help="rates, picks and memory, too")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = options_of(arguments)

    def body() -> str:
        # Connections to endpoints that have gone may stay for the time of --settle.
        allow_files(options.endpoints * 3 // 2 + FILES_FOR_ALL_ELSE)
        with World(Programs.of_build(options.build.resolve())) as world:
            return Churn(world, options).run()

    return run_part(body, "churn.py")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
