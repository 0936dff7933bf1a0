#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""S16: calls at a steady rate while all kinds of faults come, one after another.

    `signalbox serve` ─ xDS ─▶ signalbox_nightly_client ─▶ aggregate: 3 backends ─▶ if they are gone, 3 others
        ▲ killed, stopped,        └ calls, descriptors,         ▲ killed, stopped, ended, drained,
        │ wrong files              threads, memory              │ one or all
        └───────────────────────── this driver ─────────────────┘

A round has each fault once, in an order by chance, and each fault is waited for: that it came, and that all is as
before. The route retries what a dead backend did not answer, so no fault excuses a lost call.

Gates: no call is lost; after the last fault the client has the descriptors and threads that it had after the first
round, or a few more; and with --judge its memory grows by less than 1 MiB an hour after the warm-up, and calls kept
their rate. A run of less than an hour may grow as much as one of an hour. Prints `N minutes: …`."""

import argparse
import random
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, NamedTuple

from world import (LOOK_EVERY, WARM_UP, Client, Process, Programs, World, after_warm_up, check, cluster, endpoints,
                   eventually, is_connected_to, listener, none_lost, open_descriptors, positive, rate_held,
                   resident_bytes, run_part, say, serve_wrong_file, slope, threads_of, write_resources)

EACH = 3  # Backends of a cluster.
CLUSTERS = ("first", "second")
AGGREGATE = {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "orders", "lb_policy": "CLUSTER_PROVIDED",
             "cluster_type": {"name": "envoy.clusters.aggregate", "typed_config": {
                 "@type": "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig",
                 "clusters": list(CLUSTERS)}}}
# A server of gRPC's C++ library that ends cancels the calls that it has received and not begun.
RETRY = {"retry_policy": {"retry_on": "unavailable,cancelled", "num_retries": 4}}
REFUSED = {"lb_policy": "RING_HASH", "ring_hash_lb_config": {"minimum_ring_size": 100, "maximum_ring_size": 10}}
# A control plane that ends its streams sooner, again and again, is asked with growing pauses (stream_pace.hpp).
LASTING = 10.5  # Seconds.
STUCK = 20  # Calls in flight that show that a backend answers nothing.
MOST_STOPPED = 1.0  # Seconds. The calls to a stopped process wait, and the deadline of a call is much later.
MOST_PAUSE = 0.3  # Seconds between two faults.
MOST_SLOPE = 1 << 20  # Bytes of memory an hour.
HOUR = 3_600.0  # Seconds.
# Seconds after the warm-up of an hour. A shorter run may grow as much, because most of its slope is noise.
LEAST_FOR_SLOPE = (1 - WARM_UP) * HOUR
LEAST_SAMPLES = 3  # A round has one.
SAME = round(1 / LOOK_EVERY)  # Looks within a second.
MOST_MORE_DESCRIPTORS = 2 * EACH  # The order of the faults decides whether the second cluster stays connected.
MOST_MORE_THREADS = 6  # gRPC starts and ends threads by itself.


@dataclass
class Backend:
    process: Process
    name: str
    cluster: str
    address: str


class Held(NamedTuple):
    """What the client has."""

    descriptors: int
    threads: int


def is_flat(before: Held, now: Held) -> bool:
    return (now.descriptors <= before.descriptors + MOST_MORE_DESCRIPTORS
            and now.threads <= before.threads + MOST_MORE_THREADS)


def judge_memory(samples: list[tuple[float, float]], growth: float, seconds: float, figures: str) -> None:
    """`growth`: bytes in these seconds, which are those after the warm-up."""
    check(len(samples) >= LEAST_SAMPLES, f"{len(samples)} samples of memory, too few to judge it: {figures}")
    check(growth < MOST_SLOPE * max(seconds, LEAST_FOR_SLOPE) / HOUR, f"memory grew by 1 MiB an hour or more: {figures}")


class Soak:
    def __init__(self, world: World, rate: int, seed: int) -> None:
        self._world, self._rate, self._random = world, rate, random.Random(seed)
        self._backends = [self._start(cluster_name, f"{cluster_name} {number}", f"127.16.{row}.{number + 1}:0")
                          for row, cluster_name in enumerate(CLUSTERS) for number in range(EACH)]
        self._path = world.new_path("resources.json")
        self._write()
        self._plane, self._plane_address = world.serve(self._path)
        self._client: Client = world.client(world.bootstrap(self._plane_address), "--rate", rate)
        self._done: Counter[str] = Counter()
        self._streams_since = time.monotonic()
        eventually(self._client.has_answers(rate, "first 0"), "calls are answered")

    def run(self, seconds: float, judge: bool) -> str:
        begun = time.monotonic()
        self._round()
        before = Held(self._settled(self._descriptors), self._settled(self._threads))
        memory: list[tuple[float, float]] = []
        while not memory or time.monotonic() - begun < seconds:
            memory.append((time.monotonic() - begun, resident_bytes(self._client.pid)))
            self._round()
            say(f"soak: {time.monotonic() - begun:.0f} of {seconds:.0f} s, {sum(self._done.values()):,} faults, 0 lost")
        eventually(lambda: is_flat(before, self._held()),
                   f"the client has some {before.descriptors} descriptors and {before.threads} threads again")
        return f"{seconds / 60:g} minutes: {self._verdict(before, memory, time.monotonic() - begun, judge)}; 0 lost"

    def _verdict(self, before: Held, memory: list[tuple[float, float]], took: float, judge: bool) -> str:
        after, called = self._held(), time.monotonic() - self._client.begun
        counts = self._client.finish()
        none_lost(counts, "faults")
        samples, seconds = after_warm_up(memory, took), (1 - WARM_UP) * took
        growth = slope(samples) * seconds if samples else 0.0
        faults = ", ".join(f"{name} {number}" for name, number in sorted(self._done.items()))
        figures = (f"{counts['ok']:,} calls, {sum(self._done.values()):,} faults ({faults}); {before.descriptors} descriptors, "
                   f"then {after.descriptors}; {before.threads} threads, then {after.threads}; "
                   f"memory {growth / (1 << 20):+.2f} MiB in {seconds / 60:.1f} minutes after the warm-up")
        if judge:
            rate_held(counts, self._rate, called)
            judge_memory(samples, growth, seconds, figures)
        return figures

    def _held(self) -> Held:
        return Held(self._descriptors(), self._threads())

    def _descriptors(self) -> int:
        return len(open_descriptors(self._client.pid))

    def _threads(self) -> int:
        return threads_of(self._client.pid)

    def _settled(self, count: Callable[[], int]) -> int:
        """The number, once it has not changed for a second."""
        counts: list[int] = []

        def is_settled() -> bool:
            counts.append(count())
            return len(counts) > SAME and len(set(counts[-SAME:])) == 1

        eventually(is_settled, "the client's descriptors and threads stay the same")
        return counts[-1]

    # --- the world ---

    def _start(self, cluster_name: str, name: str, address: str) -> Backend:
        process, listens_at = self._world.backend(name, address, cluster_name)
        return Backend(process, name, cluster_name, listens_at)

    def _restart(self, backend: Backend) -> None:
        self._world.end(backend.process)
        backend.process, _ = self._world.backend(backend.name, backend.address, backend.cluster)

    def _write(self, draining: str = "", gone: str = "", to: str = "orders", **second: object) -> None:
        """`to`: the cluster of the route. `second`: what the second cluster has besides."""
        def endpoints_of(name: str) -> dict:
            addresses = [backend.address for backend in self._of(name) if backend.address != gone]
            return endpoints(name, addresses, frozenset({draining}))

        write_resources(self._path, listener("orders", to, RETRY), AGGREGATE, cluster("first"), cluster("second", **second),
                        endpoints_of("first"), endpoints_of("second"))

    def _of(self, name: str) -> list[Backend]:
        return [backend for backend in self._backends if backend.cluster == name]

    def _any(self) -> Backend:
        return self._random.choice(self._of("first"))

    def _calls_reach(self, *backends: Backend) -> None:
        for backend in backends:
            eventually(self._client.has_answers(1, backend.name), f"calls reach {backend.name}")

    def _next_calls_reach(self, backend: Backend) -> bool:
        """Whether some of the next calls reach the backend, of so many that it should have several."""
        has_answer = self._client.has_answers(1, backend.name)
        self._calls_go_on()
        return has_answer()

    def _calls_go_on(self) -> None:
        eventually(self._client.has_answers(self._rate // 10), "calls are answered")

    def _pause(self, most: float) -> None:
        time.sleep(self._random.uniform(0, most))

    # --- the faults ---

    def _round(self) -> None:
        faults = list(self.FAULTS)
        self._random.shuffle(faults)
        for fault in faults:
            name = fault.__name__.removeprefix("_").replace("_", " ")
            fault(self)
            self._calls_reach(*self._of("first"))
            none_lost(self._client.counts(), f"after '{name}'")
            self._done[name] += 1
            self._pause(MOST_PAUSE)

    def _kill_backend(self) -> None:
        backend = self._any()
        backend.process.popen.kill()
        self._calls_go_on()
        self._restart(backend)

    def _kill_cluster(self) -> None:
        for backend in self._of("first"):
            backend.process.popen.kill()
        self._calls_reach(*self._of("second"))
        for backend in self._of("first"):
            self._restart(backend)

    def _end_backend(self) -> None:
        backend = self._any()
        check(backend.process.terminate() == 0, f"{backend.name} ends with 0 after SIGTERM")
        self._calls_go_on()
        self._restart(backend)

    def _stop_backend(self) -> None:
        with stopped(self._any().process):
            eventually(lambda: self._client.counts()["in_flight"] >= STUCK, "calls wait for the stopped backend")
            self._pause(MOST_STOPPED)

    def _drain_backend(self) -> None:
        backend = self._any()
        self._write(draining=backend.address)
        eventually(lambda: not self._next_calls_reach(backend), f"no call reaches {backend.name} while it drains")
        self._write(gone=backend.address)
        self._leaves_and_returns(backend)

    def _other_cluster(self) -> None:
        """The route leads to a plain cluster for a while."""
        self._write(to="second")
        self._calls_reach(*self._of("second"))
        self._write()

    def _kill_plane(self) -> None:
        time.sleep(max(0.0, self._streams_since + LASTING - time.monotonic()))
        self._world.end(self._plane)
        eventually(lambda: not self._has_plane(), "the client says that the control plane is away")
        self._calls_go_on()
        self._plane, _ = self._world.serve(self._path, self._plane_address)
        eventually(self._has_plane, "the client has its control plane again")
        self._streams_since = time.monotonic()

    def _stop_plane(self) -> None:
        backend = self._any()
        with stopped(self._plane):
            self._write(gone=backend.address)
            self._pause(MOST_STOPPED)
            self._calls_go_on()
        self._leaves_and_returns(backend)

    def _wrong_file(self) -> None:
        """The next good file has one backend less, so that it is seen to take effect."""
        serve_wrong_file(self._plane, self._path)
        self._calls_go_on()
        backend = self._any()
        self._write(gone=backend.address)
        self._leaves_and_returns(backend)

    def _refused_update(self) -> None:
        """The control plane sends a cluster that the client refuses."""
        before = self._refusals()
        self._write(**REFUSED)
        eventually(lambda: self._refusals() > before, "the client refuses the cluster")
        self._calls_go_on()
        self._write()
        eventually(lambda: self._client.metric("signalbox_xds_resources", cache_state="nacked_but_cached") == 0,
                   "the client has taken the cluster again")

    FAULTS = (_kill_backend, _kill_cluster, _end_backend, _stop_backend, _drain_backend, _other_cluster, _kill_plane,
              _stop_plane, _wrong_file, _refused_update)

    def _leaves_and_returns(self, backend: Backend) -> None:
        """Waits until the client has the update without the backend, and puts the backend back."""
        eventually(lambda: not is_connected_to(backend.address), f"nothing is connected to {backend.name} when it is gone")
        self._write()

    def _refusals(self) -> float:
        return self._client.metric("signalbox_xds_resource_updates_invalid_total")

    def _has_plane(self) -> bool:
        return self._client.metric("signalbox_xds_connected") == 1


@contextmanager
def stopped(process: Process) -> Iterator[None]:
    process.popen.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.popen.send_signal(signal.SIGCONT)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="soak.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=3600.0, help="at least one round")
    parser.add_argument("--rate", type=positive, default=1_000, help="calls a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--judge", action="store_true", help="memory and the rate of calls, too")
    options = parser.parse_args(arguments)

    def body() -> str:
        with World(Programs.of_build(options.build.resolve())) as world:
            return Soak(world, options.rate, options.seed).run(options.seconds, options.judge)

    return run_part(body, parser.prog)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
