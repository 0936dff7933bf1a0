# SPDX-License-Identifier: Apache-2.0
"""How a pair is measured. An Experiment has its own World, and runs one side at a time in it. One
experiment yields the numbers of one or more rows.

    World ─▶ prepare(world) ─▶ run("ours"), run("peer"), run("peer"), run("ours") … ─▶ dicts of numbers"""

import math
import random
import socket
import statistics
import time
from dataclasses import dataclass
from typing import Callable, Optional

import resources
from world import CLIENT_SECONDS, START_SECONDS, MeasurementFailed, Process, World, wait_readable

SIDES = ("ours", "peer")


ENDPOINTS = 10_000

# The policies that the peer is measured with: gRPC 1.51 has no least_request, and Debian's build of
# it crashes in ring_hash.
PEERS_POLICIES = ("ROUND_ROBIN",)

IDLE = 0.2  # The share of the machine's time that CallsAtRate is to leave idle.
NEAR = 0.03
MOST_PROBES = 10
GROWTH = 4


@dataclass(frozen=True)
class Scale:
    """The most pairs of an experiment, and the seconds for which each side of a pair measures.
    Some experiments derive another length from these seconds, or do not use them."""

    pairs: int
    seconds: float


class Experiment:
    """The base class of all experiments."""

    # True: run() may be called again after it failed, so a failed run() must not change the world.
    is_repeatable = False

    def prepare(self, world: World, scale: Scale) -> str:
        """Starts the processes that all pairs share. Returns a description of the load."""
        raise NotImplementedError

    def run(self, side: str, pair: int) -> Optional[dict]:
        """Measures one side. None: this side cannot be measured."""
        raise NotImplementedError


class Calls(Experiment):
    """A client calls one cluster. The cluster's endpoints are addresses of one backend."""

    is_repeatable = True

    def __init__(self, measure: str, endpoints: int, threads: int = 1, lb_policy: str = "ROUND_ROBIN",
                 failing_attempts: int = 0) -> None:
        self._measure, self._endpoints, self._threads, self._lb_policy = measure, endpoints, threads, lb_policy
        # The number of attempts of each call that fail before an attempt succeeds.
        self._failing_attempts = failing_attempts

    def prepare(self, world: World, scale: Scale) -> str:
        # Only a wildcard address accepts connections to all addresses of 127.0.0.0/8.
        self._world, self._seconds = world, scale.seconds
        _, self._port = world.start_backend("0.0.0.0:0", "bench", "--failing-attempts", self._failing_attempts)
        self.serve(resources.route_to("bench", retry_policy=resources.QUICK_RETRIES if self._failing_attempts else None)
                   + self.cluster(resources.loopback(self._endpoints, self._port)))
        return f"{self._threads} thread{'s' if self._threads > 1 else ''}, closed loop"

    def serve(self, world: list[dict]) -> None:
        self._world.serve(world)

    def cluster(self, addresses: list[resources.Address]) -> list[dict]:
        return resources.eds_cluster("bench", addresses, self._lb_policy)

    def run(self, side: str, pair: int) -> Optional[dict]:
        if side == "peer" and self._lb_policy not in PEERS_POLICIES:
            return None
        return self.measure(side, threads=self._threads)

    def measure(self, side: str, **options) -> dict:
        # ring_hash connects only to endpoints that calls choose. Its ring has at most 4,096 points,
        # so some endpoints are never chosen.
        connected = self._endpoints // 10 if self._lb_policy == "RING_HASH" else self._endpoints
        options = {"seconds": self._seconds, "endpoints": connected, "port": self._port, **options}
        return self._world.measure(side, self._measure, **options)


class ManyRoutes(Calls):
    """Picks among 10,000 routes; each pick's path matches one of them, chosen at random. The peer
    is signalbox with a single route, so the ratio is the cost of the routes."""

    ROUTES = 10_000  # Including the route of the calls.

    def __init__(self) -> None:
        super().__init__("pick", 2)

    def prepare(self, world: World, scale: Scale) -> str:
        self._world, self._seconds = world, scale.seconds
        _, self._port = world.start_backend("0.0.0.0:0", "bench")
        world.serve(resources.route_to("bench")
                    + resources.route_to("bench", "many", resources.mixed_matches(self.ROUTES - 1))
                    + resources.eds_cluster("bench", resources.loopback(self._endpoints, self._port)))
        return "1 thread, closed loop; the peer is signalbox with one route"

    def run(self, side: str, pair: int) -> dict:
        options = {"target": "xds:///many", "routes": self.ROUTES - 1} if side == "ours" else {}
        return self.measure("ours", **options)


class Sessions(Calls):
    """Picks for a session, which its cookie keeps on its host. The peer is signalbox with the same
    endpoints and no session, so the ratio is the cost of the session."""

    def __init__(self, endpoints: int) -> None:
        super().__init__("pick", endpoints)

    def prepare(self, world: World, scale: Scale) -> str:
        self._world, self._seconds = world, scale.seconds
        _, self._port = world.start_backend("0.0.0.0:0", "bench")
        world.serve(resources.route_to("bench")
                    + resources.route_to("bench", "sessions", filters=[resources.session_filter("session")])
                    + resources.eds_cluster("bench", resources.loopback(self._endpoints, self._port)))
        return "1 thread, closed loop; the peer is signalbox without sessions"

    def run(self, side: str, pair: int) -> dict:
        if side == "ours":
            return self.measure("ours", target="xds:///sessions", sessions="true")
        return self.measure("ours")


class Tiered(Calls):
    """Picks in tiered mode, which first draws a cluster and a priority. The peer is signalbox with
    a plain cluster of all the healthy endpoints, so the ratio is the cost of the draw and of the
    aggregate. Enough endpoints of the first cluster are UNHEALTHY that about an eighth of the calls
    goes to the second cluster."""

    UNHEALTHY_SHARE = 0.3

    def __init__(self, endpoints: int) -> None:
        super().__init__("pick", endpoints)

    def prepare(self, world: World, scale: Scale) -> str:
        self._world, self._seconds = world, scale.seconds
        _, self._port = world.start_backend("0.0.0.0:0", "bench")
        addresses = resources.loopback(self._endpoints, self._port)
        half = len(addresses) // 2
        unhealthy = resources.loopback(int(self._endpoints * self.UNHEALTHY_SHARE), self._port, "127.2")
        world.serve(resources.route_to("bench") + resources.eds_cluster("bench", addresses)
                    + resources.route_to("tiered", "tiered")
                    + [resources.aggregate_cluster("tiered", ["near", "far"], mode="tiered")]
                    + resources.partly_healthy_cluster("near", addresses[:half], unhealthy)
                    + resources.eds_cluster("far", addresses[half:]))
        return "1 thread, closed loop; the peer is signalbox with a plain cluster"

    def run(self, side: str, pair: int) -> dict:
        if side == "ours":
            return self.measure("ours", target="xds:///tiered")
        return self.measure("ours")


def rate_that_leaves_idle(idle_at: Callable[[float], float]) -> float:
    """Estimates the calls a second at which about IDLE of the machine's time is idle.
    `idle_at(rate)` is one probe: it measures the idle share at that rate. The cost of a call
    depends on the rate, so each probe runs at the rate of the last estimate, which is at most
    GROWTH times the rate before: calls fail at a rate far above what the machine can do. After
    MOST_PROBES probes the last estimate is returned, however good it is."""
    rate = 1000.0
    for _ in range(MOST_PROBES):
        idle = idle_at(rate)
        if abs(idle - IDLE) <= NEAR:
            break
        rate = max(100.0, round(rate * min((1 - IDLE) / max(1 - idle, 0.01), GROWTH), -2))
    return rate


class CallsAtRate(Calls):
    """Calls at a fixed rate, at which the busier side is to leave a fifth of the machine idle."""

    # Calls accumulate while the machine stalls. The default limit of 1,024 calls in flight (A32)
    # could then fail calls, but no row of this class measures the limit.
    MAX_REQUESTS = 1_000_000

    def __init__(self, endpoints: int, failing_attempts: int = 0) -> None:
        super().__init__("cpu", endpoints, failing_attempts=failing_attempts)

    def prepare(self, world: World, scale: Scale) -> str:
        super().prepare(world, scale)
        self._rate = rate_that_leaves_idle(
            lambda rate: min(self.measure(side, rate=rate)["idle"] for side in SIDES))
        return f"{self._rate:,.0f} calls/s, open loop"

    def cluster(self, addresses: list[resources.Address]) -> list[dict]:
        return resources.limited_cluster("bench", addresses, self.MAX_REQUESTS)

    def run(self, side: str, pair: int) -> dict:
        return self.measure(side, rate=self._rate)


def without_call_metrics(experiment: type[Calls]) -> type[Calls]:
    """The same calls by signalbox on both sides. The peer is signalbox without call metrics, so the
    ratio is the cost of these metrics."""

    class OursWithout(experiment):
        def prepare(self, world: World, scale: Scale) -> str:
            return f"{super().prepare(world, scale)}; the peer is signalbox without call metrics"

        def measure(self, side: str, **options) -> dict:
            return super().measure("ours", **options, call_metrics="true" if side == "ours" else "false")

    return OursWithout


class Recorded(CallsAtRate):
    """The same calls by signalbox on both sides. The peer does not record, so the ratio is the cost
    of recording while nothing but calls goes on."""

    def prepare(self, world: World, scale: Scale) -> str:
        # Each run makes it anew, so that no run reads or moves the file of an earlier one.
        self._recording = world.folder / "recording"
        return f"{super().prepare(world, scale)}; the peer is signalbox without a recording"

    def measure(self, side: str, **options) -> dict:
        self._recording.unlink(missing_ok=True)
        recording = {"record": self._recording} if side == "ours" else {}
        seen = super().measure("ours", **options, **recording)
        if self._recording.exists() != (side == "ours"):
            raise MeasurementFailed(f"the side '{side}' left {'a' if side == 'peer' else 'no'} recording")
        return seen


class LoadReports(CallsAtRate):
    """Calls to a cluster with load reports (LRS), one a second. The peer is signalbox with the same
    endpoints and no reports, so the ratio is the cost of counting and reporting."""

    def __init__(self) -> None:
        super().__init__(2)

    def serve(self, world: list[dict]) -> None:
        self._plane, self._reports = self._world.serve_in_turn([world]), 0

    def cluster(self, addresses: list[resources.Address]) -> list[dict]:
        reported, endpoints = resources.limited_cluster("reported", addresses, self.MAX_REQUESTS)
        return (super().cluster(addresses) + resources.route_to("reported", "reported")
                + [{**reported, "lrs_server": {"self": {}}}, endpoints])

    def measure(self, side: str, **options) -> dict:
        seen = super().measure("ours", target="xds:///reported" if side == "ours" else "xds:///bench", **options)
        # The plane sets the same resources again, and prints the number of reports that have come.
        self._plane.write_line()
        before, self._reports = self._reports, self._plane.read(START_SECONDS)["load_reports"]
        # A run of at most a second may end before its first report.
        if self._seconds > 1 and (self._reports > before) != (side == "ours"):
            raise MeasurementFailed(f"{self._reports - before} load reports came from the side '{side}'")
        return seen


class Weighted(Calls):
    """Picks of weighted_round_robin, by the load that endpoints report; they have ten different
    weights. The peer is signalbox with round_robin among the same endpoints, so the ratio is the
    cost of the weights."""

    WEIGHTS = 10

    def __init__(self, endpoints: int) -> None:
        super().__init__("pick", endpoints)

    def prepare(self, world: World, scale: Scale) -> str:
        self._world, self._seconds = world, scale.seconds
        self._port = world.start_loaded_backend("0.0.0.0:0", "--weights", self.WEIGHTS)
        addresses = resources.loopback(self._endpoints, self._port)
        world.serve(resources.route_to("bench") + resources.eds_cluster("bench", addresses)
                    + resources.route_to("weighted", "weighted")
                    + resources.policy_cluster("weighted", addresses, CallsAtRate.MAX_REQUESTS,
                                               resources.WEIGHTED_ROUND_ROBIN))
        return "1 thread, closed loop; the peer is signalbox with round_robin"

    def run(self, side: str, pair: int) -> dict:
        if side == "ours":
            return self.measure("ours", target="xds:///weighted", weights="true")
        return self.measure("ours")


class Tail(Experiment):
    """Calls to backends of which two work at half speed, at 70 % of what all can serve. The peer is
    signalbox with round_robin, which sends each backend the same number of calls: too many for the
    slow ones. A slow backend's place works twice as long for a call."""

    is_repeatable = True

    BACKENDS = 16
    SLOW = 2
    AT_ONCE = 2
    WORK_MS = 20.0
    SHARE = 0.7

    def __init__(self, policy: dict, reports: bool) -> None:
        self._policy, self._reports = policy, reports
        # Two slow backends serve as many calls as a fast one.
        self._capacity = (self.BACKENDS - self.SLOW / 2) * self.AT_ONCE / self.WORK_MS * 1e3
        self._rate = self.SHARE * self._capacity

    def prepare(self, world: World, scale: Scale) -> str:
        self._world, self._seconds = world, scale.seconds
        addresses = []
        for number in range(self.BACKENDS):
            host = f"127.0.4.{number + 1}"
            work = self.WORK_MS * (2 if number < self.SLOW else 1)
            port = world.start_loaded_backend(f"{host}:0", "--at-once", self.AT_ONCE, "--work-ms", work,
                                              "--report-ms", 500)
            addresses.append((host, port))
        most = CallsAtRate.MAX_REQUESTS
        world.serve(resources.route_to("bench") + resources.policy_cluster("bench", addresses, most, self._policy)
                    + resources.route_to("turns", "turns") + resources.limited_cluster("turns", addresses, most))
        return (f"{self._rate:,.0f} calls/s, open loop, {self.SHARE:.0%} of what {self.BACKENDS} backends can serve, "
                f"{self.SLOW} of them at half speed; the peer is signalbox with round_robin")

    def run(self, side: str, pair: int) -> dict:
        options = {"weights": "true"} if side == "ours" and self._reports else {}
        target = "xds:///bench" if side == "ours" else "xds:///turns"
        return tail_numbers(self._world.measure("ours", "tail", seconds=self._seconds, rate=self._rate, target=target,
                                                **options), self.BACKENDS)


def tail_numbers(seen: dict, backends: int) -> dict:
    if seen["backends"] != backends:
        raise MeasurementFailed(f"{seen['backends']} of {backends} backends have answered")
    return seen


class ControlPlaneKill(Calls):
    """The control plane is killed under load, and comes back. No call may fail."""

    RATE = 1000
    is_repeatable = False  # A failed run may leave the world without a control plane.
    # The control plane is away for AWAY times the seconds of a side's measurement (Scale.seconds):
    # 10 s in a full run.
    AWAY = 5
    # Calls are measured until about so many seconds after the control plane's return. After 10 s
    # without a control plane a client is in its fourth or fifth back-off, of at most 7.9 s (A57).
    AFTERWARDS = 10

    def __init__(self) -> None:
        super().__init__("outage", 2)

    def prepare(self, world: World, scale: Scale) -> str:
        super().prepare(world, scale)
        self._away = self.AWAY * scale.seconds
        return f"{self.RATE:,} calls/s, open loop; the control plane is away for {self._away:g} s"

    def run(self, side: str, pair: int) -> dict:
        client = self._world.start_client(side, "outage", rate=self.RATE, endpoints=self._endpoints, port=self._port,
                                          seconds=self._away + self.AFTERWARDS)
        client.read(CLIENT_SECONDS)
        self._world.kill_control_plane()
        killed = time.monotonic()
        time.sleep(self._away)
        self._world.start_control_plane()
        away = time.monotonic() - killed
        seen = client.read(CLIENT_SECONDS)
        client.finish(START_SECONDS)
        self._world.end(client)
        return {**seen, "away_s": away}


class Overload(Calls):
    """Four times as many calls as the backend can serve. The circuit breaker lets through as many
    calls as the backend works on at once, and IN_LINE more."""

    AT_ONCE = 16
    WORK_MS = 20.0
    TIMES = 4
    IN_LINE = 4  # The calls that wait at the backend, so that it is not idle between two calls.

    def __init__(self) -> None:
        super().__init__("overload", 2)
        self._capacity = self.AT_ONCE / self.WORK_MS * 1e3

    def prepare(self, world: World, scale: Scale) -> str:
        self._world, self._seconds = world, scale.seconds
        _, self._port = world.start_backend("0.0.0.0:0", "bench", "--at-once", self.AT_ONCE)
        most = self.AT_ONCE + self.IN_LINE
        world.serve(resources.route_to("bench")
                    + resources.limited_cluster("bench", resources.loopback(self._endpoints, self._port), most))
        return (f"{self.TIMES * self._capacity:,.0f} calls/s, open loop, of which the backends can serve "
                f"{self._capacity:,.0f}: {self.AT_ONCE} at a time, {self.WORK_MS:g} ms each; max_requests {most}")

    def run(self, side: str, pair: int) -> dict:
        return overload_numbers(self.measure(side, rate=self.TIMES * self._capacity, work_ms=self.WORK_MS),
                                self._capacity)


def overload_numbers(seen: dict, capacity: float) -> dict:
    if seen["refused_per_second"] == 0:
        raise MeasurementFailed("no call was refused: that is no overload")
    return {**seen, "goodput": seen["served_per_second"] / capacity}


class QueuedCalls(Experiment):
    """Calls that begin before the cluster has an endpoint, and wait for the first connection."""

    CALLS = 1000

    def prepare(self, world: World, scale: Scale) -> str:
        self._world = world
        _, port = world.start_backend("127.0.3.1:0", "bench")
        cluster, endpoints = resources.eds_cluster("bench", [("127.0.3.1", port)])
        self._plane = world.serve_in_turn([[*resources.route_to("bench"), cluster],
                                           [*resources.route_to("bench"), cluster, endpoints]])
        return f"{self.CALLS:,} calls at once, which wait for their endpoint; CPU until all are answered"

    def run(self, side: str, pair: int) -> dict:
        client = self._world.start_client(side, "queued", calls=self.CALLS)
        client.read(CLIENT_SECONDS)
        set_ns = self._change()
        seen = client.read(CLIENT_SECONDS)
        client.finish(START_SECONDS)
        self._world.end(client)
        self._change()  # Every client starts without endpoints.
        return {**seen, "all_answered_ms": (seen["answered_ns"] - set_ns) / 1e6}

    def _change(self) -> int:
        self._plane.write_line()
        return self._plane.read(START_SECONDS)["set_ns"]


class EdsUpdate(Experiment):
    """Two of 10,000 connected endpoints change. One of them is in a locality that takes nearly all
    calls. So nearly always it gets the first call that is due after the client can send calls to
    it."""

    RATE = 200
    UPDATES = 3
    WEIGHT = 10_000  # The weight of the measured endpoint's locality. The other locality has 1.

    def prepare(self, world: World, scale: Scale) -> str:
        self._world = world
        _, self._port = world.start_backend("0.0.0.0:0", "many")
        seen = [("127.0.3.1", world.start_backend("127.0.3.1:0", "even")[1]),
                ("127.0.3.2", world.start_backend("127.0.3.2:0", "odd")[1])]
        *many, spare = resources.loopback(ENDPOINTS, self._port)
        changed = [*many]
        changed[len(many) // 2] = spare
        self._addresses = [f"{host}:{port}" for host, port in seen]
        self._plane = world.serve_in_turn([
            resources.route_to("bench") + resources.weighted_cluster("bench", [(1, those), (self.WEIGHT, [one])])
            for those, one in [(many, seen[0]), (changed, seen[1])]])
        self._is_changed = False
        return f"{self.RATE:,} calls/s, open loop; medians of {self.UPDATES} updates for each side of a pair"

    def run(self, side: str, pair: int) -> dict:
        if self._is_changed:
            self._change()  # Every client starts with the first set of endpoints.
        client = self._world.start_client(side, "eds_update", rate=self.RATE, endpoints=ENDPOINTS - 1, port=self._port,
                                          updates=self.UPDATES, addresses=",".join(self._addresses))
        set_ns = []
        for _ in range(self.UPDATES):
            client.read(CLIENT_SECONDS)
            set_ns.append(self._change())
        seen = client.read(CLIENT_SECONDS)
        client.finish(START_SECONDS)
        self._world.end(client)
        return eds_update_numbers(seen, set_ns)

    def _change(self) -> int:
        self._plane.write_line()
        self._is_changed = not self._is_changed
        return self._plane.read(START_SECONDS)["set_ns"]


def eds_update_numbers(seen: dict, set_ns: list[int]) -> dict:
    """The rows' numbers. The instants in `seen` (of the client) and `set_ns` (when the control
    plane set the endpoints) are of the same clock."""
    served = [(served - change) / 1e6 for served, change in zip(seen["served_ns"], set_ns)]
    if min(served) < 0:
        raise MeasurementFailed("the new endpoint served before it was set")
    return {"new_endpoint_ms": statistics.median(served), "cpu_ms": max(0.1, statistics.median(seen["cpu_ms"])),
            "connected_mb": seen["connected_mb"]}


class ColdStart(Calls):
    """A client process starts, and its cluster has 10,000 endpoints."""

    def __init__(self) -> None:
        super().__init__("cold_start", ENDPOINTS)

    def prepare(self, world: World, scale: Scale) -> str:
        super().prepare(world, scale)
        return "one call, which waits until it is ready"


class ManyTargets(Experiment):
    """A process opens 200 targets at once. Each target has its own cluster."""

    TARGETS = 200

    def prepare(self, world: World, scale: Scale) -> str:
        self._world = world
        _, self._port = world.start_backend("127.0.0.1:0", "bench")
        self._plane = world.serve_in_turn([[
            resource for number in range(self.TARGETS)
            for resource in (resources.route_to(f"cluster{number}", f"bench{number}")
                             + resources.eds_cluster(f"cluster{number}", [("127.0.0.1", self._port)]))]])
        return f"{self.TARGETS} targets at once, and a call of each"

    def run(self, side: str, pair: int) -> dict:
        seen = self._world.measure(side, "many_targets", targets=self.TARGETS, target="xds:///bench0")
        # The line makes the control plane set the same resources again, and print the number of
        # requests that the newest stream, which is the client's, has sent.
        self._plane.write_line()
        return {**seen, "requests": self._plane.read(START_SECONDS)["requests"]}


class HostileResponse(Experiment):
    """Decodes a response that was built to be expensive, up to its NACK. This cannot be measured
    with the peer. The peer's numbers are the promised limits, so the ratio is the used part of a
    limit."""

    is_repeatable = True

    def __init__(self, response: str, limits: dict[str, float]) -> None:
        self._response, self._limits = response, limits

    def prepare(self, world: World, scale: Scale) -> str:
        self._world = world
        world.serve(resources.route_to("bench"))
        return "one response; the peer is the promised limit"

    def run(self, side: str, pair: int) -> dict:
        if side == "peer":
            return dict(self._limits)
        return self._world.measure("ours", "response", response=self._response)


class AdminPage(Experiment):
    """A page of our own process, asked for by one request after another. `page` names the measure of
    the client; `request` is the word for one request, in the output. The peer's number is the
    promised limit in milliseconds; the peer has no values for `others`."""

    is_repeatable = True

    def __init__(self, page: str, request: str, limit_ms: float, others: tuple[str, ...]) -> None:
        self._page, self._request = page, request
        self._limits = {f"{page}_ms": limit_ms} | dict.fromkeys(others, math.nan)

    def prepare(self, world: World, scale: Scale) -> str:
        self._world, self._seconds = world, scale.seconds
        world.serve(resources.route_to("bench"))
        return f"one {self._request} after another, over loopback; the peer is the promised limit"

    def run(self, side: str, pair: int) -> dict:
        if side == "peer":
            return dict(self._limits)
        return self._world.measure("ours", self._page, seconds=self._seconds)


class Refused(Experiment):
    """10,000 endpoints at which no server listens."""

    def prepare(self, world: World, scale: Scale) -> str:
        self._world, self._seconds = world, max(scale.seconds, 2.0)
        # The socket is bound and does not listen, so the port refuses every connection.
        self._nobody = socket.socket()
        self._nobody.bind(("127.0.0.1", 0))
        world.serve(resources.route_to("bench")
                    + resources.eds_cluster("bench", resources.loopback(ENDPOINTS, self._nobody.getsockname()[1])))
        return f"{self._seconds:g} s after every endpoint has refused"

    def run(self, side: str, pair: int) -> dict:
        return self._world.measure(side, "refused", seconds=self._seconds)


class Failover(Experiment):
    """Every backend of an aggregate's first cluster is killed under load, and comes back. Our side
    keeps `standby_priorities` of the next clusters connected."""

    RATE = 2000
    PRIMARY = ("127.0.1.1", "127.0.1.2")
    SECONDARY = ("127.0.2.1", "127.0.2.2")

    def __init__(self, retry_policy: Optional[dict] = None, standby_priorities: int = 0) -> None:
        self._retry_policy, self._standby_priorities = retry_policy, standby_priorities

    def prepare(self, world: World, scale: Scale) -> str:
        self._world = world
        self._primary: dict[str, Process] = {}
        primary = [(host, self._start_primary(f"{host}:0")) for host in self.PRIMARY]
        secondary = [(host, world.start_backend(f"{host}:0", "secondary")[1]) for host in self.SECONDARY]
        self._primary_addresses = [f"{host}:{port}" for host, port in primary]
        world.serve(resources.route_to("both", retry_policy=self._retry_policy)
                    + [resources.aggregate_cluster("both", ["primary", "secondary"])]
                    + resources.eds_cluster("primary", primary)
                    + resources.eds_cluster("secondary", secondary))
        return f"{self.RATE:,} calls/s, open loop, every other call takes its backend 5 ms"

    def _start_primary(self, listen: str) -> int:
        process, port = self._world.start_backend(listen, "primary")
        self._primary[f"{listen.rpartition(':')[0]}:{port}"] = process
        return port

    def run(self, side: str, pair: int) -> dict:
        client = self._world.start_client(side, "failover", rate=self.RATE,
                                          standby_priorities=self._standby_priorities,
                                          addresses=",".join(self._primary_addresses))
        client.read(CLIENT_SECONDS)
        # How long the primary is away decides at which point of the client's back-off the primary
        # returns. This time is random, and equal for both sides of a pair.
        away = random.Random(pair).uniform(1.0, 2.5)
        killed = self._kill_primary()
        time.sleep(max(0.0, away - (time.monotonic_ns() - killed) / 1e9))
        listening = self._bring_primary_back()
        seen = client.read(CLIENT_SECONDS)
        client.finish(START_SECONDS)
        self._world.end(client)
        return failover_numbers(seen, killed, listening)

    def _kill_primary(self) -> int:
        killed = time.monotonic_ns()
        for process in self._primary.values():
            process.kill()
        for process in self._primary.values():
            self._world.end(process)
        return killed

    def _bring_primary_back(self) -> int:
        self._primary = {address: self._world.launch_backend(address, "primary") for address in self._primary_addresses}
        processes = list(self._primary.values())
        first = wait_readable(processes, time.monotonic() + START_SECONDS)
        listening = time.monotonic_ns()
        if first is None:
            raise MeasurementFailed("no backend comes back")
        for process in processes:
            process.read(START_SECONDS)
        return listening


def failover_numbers(seen: dict, killed: int, listening: int) -> dict:
    """The rows' numbers. The instants in `seen` (of the client), `killed` and `listening` (of the
    driver) are of the same clock."""
    failures = seen["failures_ns"]
    if any(instant < killed for instant in failures):
        raise MeasurementFailed("calls failed before any backend was killed")
    if not killed < seen["first_secondary_ns"] < listening:
        raise MeasurementFailed("the next cluster did not serve while the first was away")
    # `listening` is the instant at which the driver saw that a backend had written its first line.
    # The backend listens a little earlier, so it may answer a call before `listening`.
    least = 0.1
    return {"failover_ms": (seen["first_secondary_ns"] - killed) / 1e6,
            "failback_ms": max(least, (seen["first_primary_again_ns"] - listening) / 1e6),
            "failed": sum(instant < listening for instant in failures),
            "failed_at_failback": sum(instant >= listening for instant in failures)}
