#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""S18: a client runs out of descriptors, memory, disk, time or names, again and again.

    driver ─▶ prlimit, shim.cpp, /dev/full, RLIMIT_FSIZE ─▶ signalbox_nightly_client ─▶ backends
       └◀─ /ready, /metrics, the log, counts of calls ◀──────────────┘

    files    the process can open no descriptor: new endpoints cannot be connected
    memory   the process has 256 MiB for malloc, and the control plane sends more than it may
    disk     the log and the reports have no room
    clock    the wall clock goes an hour forward and back, while calls wait and run
    names    no name can be looked up

Gates of each round: the process lives; no call is lost that an endpoint could take; /ready and
/metrics say what is wrong, and that it is right again; memory and clock show that shim.cpp is at
work. Prints `N rounds of …` when they are met."""

import argparse
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

from world import (ANSWER_SECONDS, Programs, World, check, cluster, connected_to, endpoints, eventually, few_files,
                   listener, none_lost, run_part, total, write_resources)

RATE = 200  # Calls a second.
MOST_BYTES = 256 << 20
LEAST_BYTES_OF_ENDPOINT = 1_024  # Of malloc. Measured: nearly four times as much.
HOUR_NS = 3_600 * 10**9
MOST_BESIDE_HOUR = 600.0  # Seconds. An update is seen much sooner.
WAITING_CALLS = 50  # Calls that wait while the clock is stepped.
FEW_BYTES = 1_024  # The room for a report.
STIR_SECONDS = 0.2  # The time between two changes of the configuration.


class Site:
    """A control plane, two backends and a client with calls to the first one."""

    def __init__(self, world: World, *more: str, with_shim: bool = False, others: tuple[dict, ...] = ()) -> None:
        self.world, self._others = world, others
        self.first, self.first_address = world.backend("first")
        self.second, self.second_address = world.backend("second")
        self.resources = world.new_path("resources.json")
        self.serve([self.first_address])
        self.plane, self._plane_address = world.serve(self.resources)
        self.faults = world.faults() if with_shim else None
        self.client = world.client(world.bootstrap(self._plane_address), *more, faults=self.faults)
        self.client.ask(f"rate {RATE}")
        self.go_on()

    def serve(self, addresses: list[str], *more: dict, **settings) -> None:
        """Serves these endpoints; `settings`: fields of the cluster."""
        write_resources(self.resources, listener("orders", "orders"), cluster("orders", **settings),
                        endpoints("orders", addresses), *self._others, *more)

    def go_on(self, of: str = "") -> None:
        """Returns when a quarter of a second's calls more have been answered, by the backend `of`."""
        eventually(self.client.has_answers(RATE // 4, of), f"calls are answered by {of or 'a backend'}")

    def is_unready(self) -> bool:
        return self.client.page("/ready")[0] == 503

    def calls(self, what: str) -> int:
        counts = self.client.finish()
        none_lost(counts, what)
        return counts["ok"]


def malloc_counted(live_bytes: int, count: int) -> None:
    """`count`: the endpoints in use. A process without the shim has no bytes."""
    check(live_bytes >= LEAST_BYTES_OF_ENDPOINT * count,
          f"shim.cpp counts {live_bytes:,} bytes of malloc for {count:,} endpoints: it does not see all of them")


def malloc_held(refused: int) -> None:
    check(refused == 0, f"malloc failed {refused} times: the limits do not keep to 256 MiB")


def is_ahead(applied: float, now: float, hours: int) -> bool:
    """Whether the client's clock was so far ahead when it applied the last configuration. `now`: the
    real time."""
    return abs(applied - now - 3_600 * hours) <= MOST_BESIDE_HOUR


def are_all_open(metrics: str) -> bool:
    return total(metrics, "process_open_fds") == total(metrics, "process_max_fds") > 0


def files(world: World, rounds: int, _: argparse.Namespace) -> int:
    """The client begins to use a target while it can open no descriptor. The target's endpoint would
    refuse connections, so it does not keep the descriptor that the admin server has in reserve."""
    _, late = world.backend("late")
    site = Site(world)
    client = site.client

    def resources_of(name: str, address: str) -> list[dict]:
        return [listener(name, name), cluster(name), endpoints(name, [address])]

    earlier: list[dict] = []
    for number in range(rounds):
        name = f"late-{number}"
        check(client.is_ready(), "/ready says that all targets can be called")
        site.serve([site.first_address], *earlier,
                   *resources_of(name, f"127.65.{number >> 8}.{(number & 255) + 1}:1"))
        with few_files(client.pid):
            client.ask(f"watch xds:///{name}")
            eventually(lambda: client.metric("signalbox_endpoints", cluster=name, state="transient_failure") == 1,
                       "/metrics says that the endpoint cannot be reached")
            eventually(site.is_unready, "/ready says that a target has no endpoint")
            eventually(lambda: are_all_open(client.page("/metrics")[1]), "/metrics says that all descriptors are open")
            site.go_on("first")
        earlier += resources_of(name, late)
        site.serve([site.first_address], *earlier)
        eventually(client.is_ready, f"{name} can be called")
        none_lost(client.counts(), f"files, round {number}")
    return site.calls("files")


def memory(world: World, rounds: int, options: argparse.Namespace) -> int:
    """The control plane sends as many endpoints as the client's limits allow, then three times as
    many. None of these endpoints can be reached."""
    def many(count: int) -> list[dict]:
        addresses = [f"127.{66 + (number >> 16)}.{number >> 8 & 255}.{number & 255}:1" for number in range(count)]
        return [listener("many", "many"), cluster("many"), endpoints("many", addresses)]

    site = Site(world, "--max-endpoints", str(options.endpoints), with_shim=True)
    client, faults = site.client, site.faults
    site.serve([site.first_address], *many(3))
    client.ask("watch xds:///many")
    faults.set("most_bytes", MOST_BYTES)

    def rejected() -> float:
        return client.metric("signalbox_config_rejected_total", reason="limit")

    def failing() -> float:
        return client.metric("signalbox_endpoints", cluster="many", state="transient_failure")

    for number in range(rounds):
        before = rejected()
        site.serve([site.first_address], *many(options.endpoints))
        eventually(lambda: failing() >= options.endpoints, f"{options.endpoints} endpoints are in use")
        malloc_counted(faults.get("live_bytes"), options.endpoints)
        check(site.is_unready(), "/ready says that a target has no endpoint")
        site.serve([site.first_address], *many(3 * options.endpoints))
        eventually(lambda: rejected() > before, "/metrics says that endpoints beyond the limit were refused")
        site.go_on("first")
        site.serve([site.first_address], *many(3))
        eventually(lambda: failing() == 3, "the endpoints are gone")
        none_lost(client.counts(), f"memory, round {number}")
    malloc_held(faults.get("refused"))
    return site.calls("memory")


def disk(world: World, rounds: int, _: argparse.Namespace) -> int:
    """The log's file may not grow for a while. Reports of a load have no room."""
    site = Site(world)
    client = site.client
    versions = iter(range(1, 1_000_000))

    def stir() -> None:
        """Serves a cluster that the client refuses, and logs."""
        site.serve([site.first_address], type="STRICT_DNS", connect_timeout=f"{next(versions)}s")
        time.sleep(STIR_SECONDS)

    def stirred(holds: Callable[[], bool]) -> Callable[[], bool]:
        return lambda: holds() or stir() or False

    def lost() -> float:
        return client.metric("signalbox_log_lines_lost_total")

    for number in range(rounds):
        before, limits = lost(), resource.prlimit(client.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(client.pid, resource.RLIMIT_FSIZE, (len(client.all_errors()), limits[1]))
        eventually(stirred(lambda: lost() > before), "/metrics says that lines are lost")
        resource.prlimit(client.pid, resource.RLIMIT_FSIZE, limits)
        written = len(client.all_errors())
        eventually(stirred(lambda: len(client.all_errors()) > written), "the log has lines again")
        check(client.is_ready(), "/ready holds, because calls are served")
        site.go_on("first")
        none_lost(client.counts(), f"disk, round {number}")
        report_without_room(world, site.resources)
    return site.calls("disk")


def report_without_room(world: World, resources: Path) -> None:
    """`signalbox load` says what it could not write, and fails."""
    site_file = world.new_path("load.json")
    write_resources(site_file, listener("orders", "orders"), cluster("orders"),
                    endpoints("orders", [world.backend("reported")[1]]))

    def set_limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (FEW_BYTES, FEW_BYTES))

    for path, limit in ((Path("/dev/full"), None), (world.new_path("report.json"), set_limit)):
        done = subprocess.run(
            [world.programs.signalbox, "load", "--target", "xds:///orders", "--call", "signalbox.demo.v1.Orders/Place",
             "--resources", site_file, "--duration", "300ms", "--quiet", "--max-lateness", "10s", "--json", path],
            capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False, preexec_fn=limit)
        # The limit is that of the load's own processes, too.
        check(done.returncode in (1, 2) and "cannot write" in done.stderr,
              f"load --json {path} without room: status {done.returncode}, {done.stderr}")


def clock(world: World, rounds: int, _: argparse.Namespace) -> int:
    """The wall clock is stepped while calls run, and while calls wait for a connection."""
    site = Site(world, with_shim=True)
    client, faults = site.client, site.faults

    def applied() -> float:
        return client.metric("signalbox_config_last_applied_timestamp_seconds")

    for number in range(rounds):
        for hours, step in ((1, HOUR_NS), (0, -HOUR_NS)):
            faults.set("clock_offset_ns", faults.get("clock_offset_ns") + step)
            site.go_on("first")
            none_lost(client.counts(), f"clock, round {number}, calls under way")
            wait_over_step(site, -step)
            wait_over_step(site, step)
            # The last update has come since the last step.
            eventually(lambda: is_ahead(applied(), time.time(), hours),
                       f"/metrics says that the configuration was applied at a clock that is ahead by {hours} h")
            check(client.is_ready(), "/ready holds, because calls are served")
            none_lost(client.counts(), f"clock, round {number}, calls that waited")
    return site.calls("clock")


def wait_over_step(site: Site, step: int) -> None:
    """Calls wait for the second backend, which is stopped until the clock has been stepped."""
    client, faults = site.client, site.faults
    client.ask("rate 0")
    eventually(lambda: client.counts()["in_flight"] == 0, "all calls have ended")
    os.kill(site.second.pid, signal.SIGSTOP)
    try:
        site.serve([site.second_address])
        eventually(lambda: not connected_to(int(site.first_address.rpartition(":")[2])), "the first backend is left")
        client.ask(f"crowd {WAITING_CALLS}")
        eventually(lambda: client.counts()["in_flight"] >= WAITING_CALLS, "calls wait")
        faults.set("clock_offset_ns", faults.get("clock_offset_ns") + step)
        time.sleep(STIR_SECONDS)
    finally:
        os.kill(site.second.pid, signal.SIGCONT)
    eventually(lambda: client.counts()["in_flight"] == 0, "the calls that waited have ended")
    client.ask(f"rate {RATE}")
    site.serve([site.first_address])
    site.go_on("first")


def names(world: World, rounds: int, _: argparse.Namespace) -> int:
    """A name cannot be looked up when a client starts, and again later."""
    _, address = world.backend("named")
    path = world.new_path("resources.json")
    named = {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "orders", "type": "LOGICAL_DNS",
             "load_assignment": {"endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {
                 "address": "orders.test", "port_value": int(address.rpartition(":")[2])}}}}]}]}}
    write_resources(path, listener("orders", "orders"), named)
    _, plane = world.serve(path)
    calls = 0
    for number in range(rounds):
        faults = world.faults()
        client = world.client(world.bootstrap(plane), faults=faults)
        eventually(lambda: faults.get("lookups") > 0 and client.page("/ready")[0] == 503, "/ready says so")
        eventually(lambda: client.metric("signalbox_priority_active", cluster="orders") == -1,
                   "/metrics says that nothing can take calls")
        eventually(lambda: "cannot resolve" in client.page("/status")[1], "/status says which name cannot be looked up")
        faults.set_address("127.0.0.1")
        eventually(client.is_ready, "the name is looked up again")
        client.ask(f"rate {RATE}")
        eventually(client.has_answers(RATE // 4), "calls are answered")
        faults.set_address("")
        eventually(client.has_answers(RATE // 4), "the last addresses stay in use")
        counts = client.finish()
        none_lost(counts, f"names, round {number}")
        calls += counts["ok"]
        world.end(client)
    return calls


KINDS: dict[str, Callable[[World, int, argparse.Namespace], int]] = {
    "files": files, "memory": memory, "disk": disk, "clock": clock, "names": names}


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="exhaustion.py", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--endpoints", type=int, default=20_000, help="of the part memory")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; by default all")
    options = parser.parse_args(arguments)
    for kind in options.kinds:
        if kind not in KINDS:
            parser.error(f"there is no kind '{kind}'. There are: {', '.join(KINDS)}")
    options.kinds = options.kinds or list(KINDS)
    return options


def main(arguments: list[str]) -> int:
    options = options_of(arguments)

    def body() -> str:
        lines = []
        for kind in options.kinds:
            with World(Programs.of_build(options.build.resolve())) as world:
                calls = KINDS[kind](world, options.rounds, options)
            lines.append(f"{options.rounds} rounds of {kind}: {calls:,} calls, 0 lost")
        return "\n".join(lines)

    return run_part(body, "exhaustion.py")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
