# SPDX-License-Identifier: Apache-2.0
"""./run bench scale: how costs grow with the size of a configuration. Each sweep makes one size
larger and larger, and measures signalbox alone at each point.

    SWEEPS ─▶ for each size: a World (two versions of its resources) ─▶ a client, `--measure growth`
           ─▶ Curve for each measure ─▶ fitted exponent ─▶ table, JSON, page (growth_page.py)

A cost of size^e has the exponent e: 0 does not grow, 1 grows with the size, more than 1 faster."""

import json
import math
import os
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

import resources
from world import CLIENT_SECONDS, START_SECONDS, MeasurementFailed, Programs, World

LIMIT = 1.1  # An exponent above it must have an explanation.

Worlds = tuple[list[dict], list[dict]]  # The resources, before and after an update.
Point = tuple[int, Optional[float]]  # A size and its cost; None: it was not measured.
Say = Callable[[str], None]


@dataclass(frozen=True)
class Measure:
    name: str  # The key in the client's result.
    title: str
    unit: str


MEASURES = (
    Measure("pick_ns", "pick", "ns"),
    Measure("memory_mb", "memory", "MB"),
    Measure("update_cpu_ms", "update", "ms of CPU"),
    Measure("start_cpu_ms", "cold start", "ms of CPU"),
    Measure("start_ms", "first picks", "ms"),
    Measure("dump_cpu_ms", "dump", "ms of CPU"),
)


@dataclass(frozen=True)
class Sweep:
    name: str
    title: str
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    worlds: Callable[[int, int], Worlds]  # Of the size, and of the endpoints' port.
    # The options of the client for this size.
    options: Callable[[int], dict] = lambda size: {}
    # True: the endpoints are addresses of a real backend. False: connections are assumed.
    is_connected: bool = False


def one_cluster(size: int, port: int) -> Worlds:
    """One endpoint of the cluster is replaced by another."""
    *many, spare = resources.loopback(size + 1, port)
    changed = [*many]
    changed[size // 2] = spare
    route = resources.route_to("many", "bench0")
    return route + resources.eds_cluster("many", many), route + resources.eds_cluster("many", changed)


def many_clusters(size: int, port: int) -> Worlds:
    """A cluster for each route, each with one endpoint. One cluster gets other endpoints (CDS and
    EDS)."""
    *many, spare = resources.loopback(size + 1, port)
    route = resources.target_with_routes("bench0", [
        ({"prefix": f"/bench.v1.Service{number}/"}, {"cluster": f"cluster{number}"}) for number in range(size)])
    clusters = [resources.eds_cluster(f"cluster{number}", [address]) for number, address in enumerate(many)]
    changed = [*clusters]
    changed[size // 2] = resources.with_service_name(
        "other", resources.eds_cluster(f"cluster{size // 2}", [spare]))
    return route + sum(clusters, []), route + sum(changed, [])


def many_routes(size: int, port: int) -> Worlds:
    """Prefixes and whole paths by turns, all but one to one cluster. Another route leads to the
    other cluster."""

    def routes(other: tuple[int, ...]) -> list[dict]:
        return resources.target_with_routes("bench0", [
            (match, {"cluster": "other" if number in other else "most"})
            for number, match in enumerate(resources.mixed_matches(size, with_patterns=False))])

    one, two = resources.loopback(2, port)
    clusters = resources.eds_cluster("most", [one]) + resources.eds_cluster("other", [two])
    return routes((size - 1,)) + clusters, routes((size - 1, size // 2)) + clusters


def many_targets(size: int, port: int, endpoints: int = 1, changed: int = 1) -> Worlds:
    """Targets with a cluster each. In the clusters of the first `changed` targets, one endpoint is
    replaced by another."""
    *many, spare = resources.loopback(endpoints + 1, port)
    others = [*many]
    others[endpoints // 2] = spare

    def targets(changed_targets: int) -> list[dict]:
        return sum((resources.route_to(f"cluster{number}", f"bench{number}")
                    + resources.eds_cluster(f"cluster{number}", others if number < changed_targets else many)
                    for number in range(size)), [])

    return targets(0), targets(changed)


PUBLISHED_TARGETS = 16
PUBLISHED_ENDPOINTS = 200

SWEEPS = (
    Sweep("endpoints", "endpoints of one cluster, as if connected",
          (10, 100, 1000, 5000, 10_000, 20_000, 50_000), (10, 100, 1000), one_cluster),
    Sweep("connections", "endpoints of one cluster, really connected",
          (10, 100, 1000, 2000, 5000, 10_000), (10, 50, 250), one_cluster, is_connected=True),
    Sweep("clusters", "clusters of one target, each with a route and an endpoint",
          (10, 50, 200, 1000, 2000, 5000), (10, 50, 250), many_clusters, lambda size: {"routes": size}),
    Sweep("routes", "routes of one target",
          (10, 100, 1000, 10_000, 30_000, 100_000), (10, 100, 1000), many_routes,
          lambda size: {"routes": size, "max_routes": size}),
    Sweep("targets", "targets, each with a cluster and an endpoint",
          (1, 5, 20, 50, 100, 200, 500), (1, 5, 25), many_targets, lambda size: {"targets": size}),
    Sweep("threads", f"threads that publish; {PUBLISHED_TARGETS} targets of {PUBLISHED_ENDPOINTS} endpoints each, and "
          "an update changes all",
          (1, 2, 4, 8, 16), (1, 4, 16),
          lambda size, port: many_targets(PUBLISHED_TARGETS, port, PUBLISHED_ENDPOINTS, PUBLISHED_TARGETS),
          lambda size: {"targets": PUBLISHED_TARGETS, "changed_targets": PUBLISHED_TARGETS,
                        "scheduler_threads": size}),
)
NAMES = tuple(sweep.name for sweep in SWEEPS)

DUMP = ("the instructions grow less than the size (callgrind: 50,500 for each of 1,000 endpoints, 48,100 for each of "
        "10,000). The tree of the whole JSON outgrows the caches, and the kernel makes its pages anew for each dump")
# Why an exponent is above LIMIT, by sweep and measure: what a profile has shown.
EXPLANATIONS: dict[tuple[str, str], str] = {
    ("endpoints", "dump_cpu_ms"): DUMP,
    ("routes", "dump_cpu_ms"): "as for endpoints: " + DUMP,
    ("clusters", "update_cpu_ms"): "the instructions are nearly linear (callgrind: 117,000 for each of 1,000 clusters, "
                                   "123,000 for each of 3,000, as all clusters are sent again); the configuration outgrows "
                                   "the caches",
    ("targets", "start_cpu_ms"): "each new name makes the client build the whole set of names of its type once more "
                                 "(ResourceCache::names_at, AdsSession): 9 % of the start's instructions with 50 targets, "
                                 "32 % with 500 (callgrind)",
}


# --- the fit --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """cost ~ size^exponent. error: the standard error of the exponent; None: two points have none."""

    exponent: float
    error: Optional[float]


def fit(points: list[Point]) -> Optional[Fit]:
    """The line through the logarithms of the points with the least squares. Points without a
    positive cost have no logarithm, and do not count. None: fewer than two different sizes are
    left."""
    logs = [(math.log(size), math.log(cost)) for size, cost in points if cost is not None and cost > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x, mean_y = (statistics.fmean(values) for values in zip(*logs))
    square = sum((x - mean_x) ** 2 for x, _ in logs)
    exponent = sum((x - mean_x) * (y - mean_y) for x, y in logs) / square
    if len(logs) == 2:
        return Fit(exponent, None)
    rest = sum((y - mean_y - exponent * (x - mean_x)) ** 2 for x, y in logs)
    return Fit(exponent, math.sqrt(rest / (len(logs) - 2) / square))


@dataclass
class Curve:
    """The costs of one measure in one sweep."""

    sweep: Sweep
    measure: Measure
    points: list[Point] = field(default_factory=list)

    def whole(self) -> Optional[Fit]:
        return fit(self.points)

    def end(self) -> Optional[Fit]:
        """The fit of the larger sizes: the upper half of the points, and at least three. Small sizes
        cost the same, whatever they are, and would hide a steep end."""
        return fit(self.points[-max(3, math.ceil(len(self.points) / 2)):])

    def is_above(self) -> bool:
        return any(found is not None and found.exponent > LIMIT for found in (self.whole(), self.end()))

    def explanation(self) -> str:
        """Empty: the exponent is not above the limit, or nothing is known about it."""
        return EXPLANATIONS.get((self.sweep.name, self.measure.name), "") if self.is_above() else ""

    def as_data(self) -> dict:
        def data(found: Optional[Fit]) -> Optional[dict]:
            return None if found is None else {"exponent": rounded(found.exponent), "error": rounded(found.error)}

        return {"name": self.measure.name, "unit": self.measure.unit, "costs": [rounded(cost) for _, cost in self.points],
                "fit": data(self.whole()), "end_fit": data(self.end()), "is_above": self.is_above()}


def rounded(value: Optional[float]) -> Optional[float]:
    return None if value is None else float(f"{value:.6g}")


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Effort:
    """How often each point is measured, in processes of their own, how many updates each of these
    sees, and how long it picks. The numbers of a point are medians."""

    repeats: int
    updates: int
    seconds: float


FULL = Effort(repeats=3, updates=5, seconds=2.0)
QUICK = Effort(repeats=1, updates=1, seconds=0.5)


class GrowingWorld:
    """A point of a sweep: the servers, and a client for each measurement."""

    FIXED = "127.0.3.1"  # The endpoint of the small target that is served before.

    def __init__(self, world: World, sweep: Sweep, size: int) -> None:
        self._world, self._sweep, self._size = world, sweep, size
        self._port = world.start_backend("0.0.0.0:0", "bench")[1] if sweep.is_connected else 80
        fixed = resources.route_to("fixed", "fixed") + resources.eds_cluster("fixed", [(self.FIXED, self._port)])
        self._plane = world.serve_in_turn([fixed + part for part in sweep.worlds(size, self._port)])
        self._is_changed = False

    def measure(self, effort: Effort) -> dict:
        if self._is_changed:
            self._change()  # Every client starts with the first version.
        options = dict(self._sweep.options(self._size))
        if self._sweep.is_connected:
            options |= {"port": self._port, "endpoints": self._size + 1}  # The fixed endpoint is one more.
        else:
            options |= {"assumed": "true"}
        client = self._world.start_client("ours", "growth", target="xds:///fixed", seconds=effort.seconds,
                                          updates=effort.updates, **options)
        try:
            for _ in range(effort.updates):
                client.read(CLIENT_SECONDS)
                self._change()
            seen = client.read(CLIENT_SECONDS)
            client.finish(START_SECONDS)
        finally:
            self._world.end(client)
        return seen

    def _change(self) -> None:
        self._plane.write_line()
        self._plane.read(START_SECONDS)
        self._is_changed = not self._is_changed


def measure_point(programs: Programs, sweep: Sweep, size: int, effort: Effort) -> dict[str, float]:
    with World(programs) as world:
        growing = GrowingWorld(world, sweep, size)
        seen = [growing.measure(effort) for _ in range(effort.repeats)]
    return {measure.name: statistics.median(one[measure.name] for one in seen) for measure in MEASURES}


def run_sweep(programs: Programs, sweep: Sweep, is_quick: bool, effort: Effort, say: Say) -> tuple[list[Curve], bool]:
    """Measures the sweep's points. A point that fails has no costs. Returns the curves, and whether
    every point was measured."""
    curves = [Curve(sweep, measure) for measure in MEASURES]
    is_whole = True
    for size in sweep.quick_sizes if is_quick else sweep.sizes:
        costs: dict[str, float] = {}
        try:
            costs = measure_point(programs, sweep, size, effort)
        except MeasurementFailed as failure:
            is_whole = False
            say(f"scale {sweep.name} {size:,}: not measured: {failure}")
        else:
            say(f"scale {sweep.name} {size:,}: " + ", ".join(
                f"{measure.title} {costs[measure.name]:,.4g} {measure.unit}" for measure in MEASURES))
        for curve in curves:
            curve.points.append((size, costs.get(curve.measure.name)))
    return curves, is_whole


@dataclass(frozen=True)
class Run:
    """What a reader of the result must know about its making."""

    curves: list[Curve]
    cores: int
    load_before: float
    seconds: float
    effort: Effort

    def facts(self) -> str:
        many = "once" if self.effort.repeats == 1 else f"{self.effort.repeats} times, medians"
        return (f"{self.cores} cores, load average {self.load_before:.2f} before; {self.seconds:.0f} s; each point "
                f"measured {many}")

    def as_data(self) -> dict:
        sweeps: dict[str, dict] = {}
        for curve in self.curves:
            sweep = sweeps.setdefault(curve.sweep.name, {
                "name": curve.sweep.name, "title": curve.sweep.title, "sizes": [size for size, _ in curve.points],
                "measures": []})
            sweep["measures"].append(curve.as_data())
        return {"cores": self.cores, "load_average_before": self.load_before, "seconds": rounded(self.seconds),
                "repeats": self.effort.repeats, "sweeps": list(sweeps.values())}


def run(build: Path, names: list[str], is_quick: bool, seconds: Optional[float], say: Say) -> tuple[Run, bool]:
    """Measures the sweeps with these names; without names all. Returns the result, and whether
    every point was measured."""
    programs = Programs.of_build(build)
    effort = QUICK if is_quick else FULL
    effort = Effort(effort.repeats, effort.updates, seconds or effort.seconds)
    begun, load_before = time.monotonic(), os.getloadavg()[0]
    curves: list[Curve] = []
    is_whole = True
    for sweep in SWEEPS:
        if names and sweep.name not in names:
            continue
        measured, is_sweep_whole = run_sweep(programs, sweep, is_quick, effort, say)
        curves += measured
        is_whole = is_whole and is_sweep_whole
    return Run(curves, os.cpu_count() or 1, load_before, time.monotonic() - begun, effort), is_whole


def write_json(file: Path, result: Run) -> None:
    file.write_text(json.dumps(result.as_data(), indent=2) + "\n", encoding="utf-8")
