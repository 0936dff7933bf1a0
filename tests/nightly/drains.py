#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""S13: backends are drained and replaced in turn, while sessions and other calls go to them.

    EDS: DRAINING ─▶ its sessions stay, new ones go elsewhere ─▶ EDS: gone ─▶ its sessions move ─▶ SIGTERM
     ▲                                                                                              │
     └──────────────────────────── the next backend ◀─ EDS: a new backend takes its place ◀─────────┘

Gates: no call is lost; no session begins on a backend that drains, and none leaves one before it is gone;
each backend ends with 0; with --judge, calls kept their rate. Prints `N drains …` when all are met."""

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

from world import (Process, Programs, World, check, cluster, endpoints, eventually, is_connected_to, listener, none_lost,
                   positive, rate_held, run_part, say, write_resources)

BACKENDS = 3
SESSIONS = 30
SAY_EVERY = 50  # Drains.
LOOK_CALLS = 20  # New sessions that show where calls go: far more than there are backends.
EXTENSIONS = "type.googleapis.com/envoy.extensions"
SESSION_FILTER = {"name": "sessions", "typed_config": {
    "@type": f"{EXTENSIONS}.filters.http.stateful_session.v3.StatefulSession", "session_state": {
        "name": "cookie", "typed_config": {
            "@type": f"{EXTENSIONS}.http.stateful_session.cookie.v3.CookieBasedSessionState",
            "cookie": {"name": "orders-session", "path": "/signalbox.demo.v1.Orders/"}}}}}
SESSIONS_STAY = {"common_lb_config": {"override_host_status": {"statuses": ["UNKNOWN", "HEALTHY", "DRAINING"]}}}


class Backend(NamedTuple):
    process: Process
    name: str
    address: str


def none_moved(counts: dict) -> None:
    check(counts["moved"] == 0, f"{counts['moved']} calls of sessions went to other backends than their cookies say")


def none_begun(counts: dict, name: str) -> None:
    check(name not in counts["begun"], f"a session began on {name}, which drains: {counts['begun']}")


class Drains:
    def __init__(self, world: World, rate: int) -> None:
        self._world, self._rate = world, rate
        self._backends = [self._start(number) for number in range(BACKENDS)]
        self._path = world.new_path("resources.json")
        self._write()
        _, address = world.serve(self._path)
        self.bootstrap = world.bootstrap(address)
        self._client = world.client(self.bootstrap, "--rate", rate, "--sessions", SESSIONS)
        self._calls_of_sessions = 0
        eventually(lambda: sum(self._sessions().values()) == SESSIONS, "every session has its cookie")
        self._client.ask("mark")

    def drain(self, number: int) -> None:
        place = number % BACKENDS
        backend = self._backends[place]
        self._write(draining=backend.address)
        eventually(lambda: backend.name not in self._next_begun(), f"no session begins on {backend.name} while it drains")
        staying = self._sessions().get(backend.name, 0)
        self._mark()
        eventually(lambda: self._has_calls(backend.name, staying), f"the sessions of {backend.name} and new ones call")
        none_begun(self._mark(), backend.name)
        self._write(gone=backend.address)
        eventually(lambda: backend.name not in self._sessions(), f"the sessions of {backend.name} move when it is gone")
        eventually(lambda: not is_connected_to(backend.address), f"nothing is connected to {backend.name} when it is gone")
        self._client.ask("mark")  # Without a check: sessions had to move.
        check(backend.process.terminate() == 0, f"{backend.name} ends with 0 after SIGTERM")
        self._world.end(backend.process)
        self._backends[place] = self._start(number + BACKENDS)
        self._write()
        eventually(self._client.has_answers(1, self._backends[place].name), f"{self._backends[place].name} gets calls")
        self._mark()

    def finish(self, judge: bool = False) -> str:
        seconds = time.monotonic() - self._client.begun
        counts = self._client.finish()
        none_lost(counts, "drains")
        if judge:
            rate_held(counts, self._rate, seconds)
        return f"{counts['ok']:,} calls, {self._calls_of_sessions:,} of {SESSIONS} sessions"

    def _start(self, number: int) -> Backend:
        name = f"backend {number}"
        process, address = self._world.backend(name)
        return Backend(process, name, address)

    def _write(self, draining: str = "", gone: str = "") -> None:
        addresses = [backend.address for backend in self._backends if backend.address != gone]
        write_resources(self._path, listener("orders", "orders", filters=(SESSION_FILTER,)),
                        cluster("orders", **SESSIONS_STAY), endpoints("orders", addresses, frozenset({draining})))

    def _sessions(self) -> dict[str, int]:
        """The number of sessions of each backend."""
        return self._client.counts()["sessions"]

    def _mark(self) -> dict:
        """What became of the calls since the last mark, in which no session had a reason to move."""
        counts = self._client.ask("mark")
        none_lost(counts, "drains")
        none_moved(counts)
        self._calls_of_sessions += sum(counts["kept"].values())
        return counts

    def _next_begun(self) -> dict[str, int]:
        """Where sessions begin, of calls that begin after this question."""
        self._mark()
        eventually(lambda: sum(self._client.counts()["begun"].values()) >= LOOK_CALLS, "sessions begin")
        return self._client.counts()["begun"]

    def _has_calls(self, name: str, sessions: int) -> bool:
        """Whether all sessions of this backend, and new ones, have called since the last mark."""
        counts = self._client.counts()
        return counts["kept"].get(name, 0) >= sessions and sum(counts["begun"].values()) >= LOOK_CALLS


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="drains.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--drains", type=positive, default=1_000)
    parser.add_argument("--rate", type=positive, default=1_000, help="calls a second")
    parser.add_argument("--judge", action="store_true", help="the rate of calls, too")
    options = parser.parse_args(arguments)

    def body() -> str:
        with World(Programs.of_build(options.build.resolve())) as world:
            drains = Drains(world, options.rate)
            for number in range(options.drains):
                drains.drain(number)
                if (number + 1) % SAY_EVERY == 0:
                    say(f"drains: {number + 1:,} of {options.drains:,}, 0 lost")
            return f"{options.drains:,} drains ({drains.finish(options.judge)}): 0 lost, 0 sessions moved before their backend was gone"

    return run_part(body, parser.prog)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
