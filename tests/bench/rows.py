# SPDX-License-Identifier: Apache-2.0
"""The rows, and the experiments that yield their numbers. To add a row, add a Row here, and name
the row in the text of `./run help bench` and in driver_test.py, which compares both with this
file. If no experiment yields the row's number yet, add an Experiment, too."""

from dataclasses import dataclass
from typing import Callable, Optional

import resources
from comparison import AtLeast, Bound, Exactly, Target
from experiments import (AdminPage, Calls, CallsAtRate, ColdStart, ControlPlaneKill, EdsUpdate, Experiment, Failover,
                         HostileResponse, LoadReports, ManyRoutes, ManyTargets, Overload, QueuedCalls, Recorded,
                         Refused, Sessions, Tail, Tiered, Weighted, without_call_metrics)


@dataclass(frozen=True)
class Row:
    name: str
    number: str  # The key of the row's number in the result of a run.
    unit: str
    target: Optional[Bound]
    notes: tuple[str, ...] = ()  # Keys of other numbers in the result that are printed.


@dataclass(frozen=True)
class Plan:
    """An experiment, and the rows that get their numbers from it."""

    make: Callable[[], Experiment]
    rows: tuple[Row, ...]
    most_pairs: Optional[int] = None  # A limit for experiments with long pairs.


def pick(name: str, endpoints: int, threads: int, bound: float, lb_policy: str = "ROUND_ROBIN",
         most_pairs: Optional[int] = None) -> Plan:
    return Plan(lambda: Calls("pick", endpoints, threads, lb_policy),
                (Row(name, "p50_ns", "ns", Target(bound), ("p99_ns",)),), most_pairs)


PLANS = (
    pick("pick_2", 2, 1, 0.15),
    pick("pick_1000", 1000, 1, 0.08),
    pick("pick_1000_2threads", 1000, 2, 0.1),
    pick("pick_10000_round_robin", 10_000, 1, 0.1, most_pairs=5),
    pick("pick_10000_ring_hash", 10_000, 1, 0.1, "RING_HASH", most_pairs=5),
    pick("pick_10000_least_request", 10_000, 1, 0.1, "LEAST_REQUEST", most_pairs=5),
    Plan(lambda: Sessions(1000), (Row("pick_affinity_1000", "p50_ns", "ns", Target(1.4), ("p99_ns",)),)),
    Plan(lambda: Tiered(1000), (Row("pick_tiered_1000", "p50_ns", "ns", Target(1.15), ("p99_ns",)),)),
    Plan(lambda: Weighted(1000), (Row("pick_1000_wrr", "p50_ns", "ns", Target(1.2), ("p99_ns",)),)),
    Plan(ManyRoutes, (Row("route_10000", "p50_ns", "ns", Target(1.7), ("p99_ns",)),)),
    Plan(lambda: Calls("closed_loop", 2),
         (Row("rpc_latency_2", "p50_us", "us", Target(0.97), ("p99_us",)),)),
    Plan(lambda: Calls("closed_loop", 1000),
         (Row("rpc_latency_1000", "p50_us", "us", Target(1.03), ("p99_us",)),)),
    Plan(lambda: CallsAtRate(2),
         (Row("rpc_cpu_2", "cpu_us_per_call", "us", Target(0.9), ("idle", "engine_us", "p50_us", "p99_us")),)),
    Plan(lambda: CallsAtRate(1000),
         (Row("rpc_cpu_1000", "cpu_us_per_call", "us", Target(0.7), ("idle", "engine_us", "p50_us", "p99_us")),)),
    Plan(lambda: without_call_metrics(Calls)("closed_loop", 2),
         (Row("metrics_latency_2", "p50_us", "us", Target(1.01), ("p99_us",)),)),
    Plan(lambda: without_call_metrics(CallsAtRate)(1000),
         (Row("metrics_cpu_1000", "cpu_us_per_call", "us", Target(1.01), ("idle", "engine_us", "p50_us", "p99_us")),)),
    Plan(lambda: Recorded(1000),
         (Row("record_cpu_1000", "cpu_us_per_call", "us", Target(1.01), ("idle", "engine_us", "p50_us", "p99_us")),)),
    # GET /metrics of 100 clusters of 100 endpoints.
    Plan(lambda: AdminPage("scrape", "scrape", 50.0, ("p99_ms", "megabytes")),
         (Row("scrape_10000_ms", "scrape_ms", "ms", Target(1.0), ("p99_ms", "megabytes")),), most_pairs=5),
    # GET /ready while dumps of 10,000 endpoints are made.
    Plan(lambda: AdminPage("ready", "request", 5.0, ("p99_ms", "dumps")),
         (Row("ready_10000_ms", "ready_ms", "ms", Target(1.0), ("p99_ms", "dumps")),), most_pairs=5),
    Plan(LoadReports, (Row("lrs_cpu_2", "cpu_us_per_call", "us", Target(1.02), ("idle", "p50_us", "p99_us")),)),
    Plan(lambda: CallsAtRate(2, failing_attempts=1),
         (Row("retry_call", "cpu_us_per_call", "us", Target(1.0), ("idle", "engine_us", "p50_us", "p99_us")),)),
    Plan(lambda: Calls("closed_loop", 2, threads=16),
         (Row("rpc_qps_16threads", "calls_per_second", "calls/s", Target(1.05, at_least=True), ("p99_us",)),)),
    Plan(QueuedCalls,
         (Row("queued_call", "queued_us", "us", None, ("ready_us", "all_answered_ms")),)),
    Plan(Overload,
         (Row("overload_goodput", "goodput", "of capacity", AtLeast(0.9),
              ("refused_p99_ms", "served_per_second", "refused_per_second")),)),
    Plan(lambda: Tail(resources.WEIGHTED_ROUND_ROBIN, reports=True),
         (Row("wrr_tail", "p99_ms", "ms", Target(0.5), ("p50_ms", "calls")),)),
    Plan(lambda: Tail(resources.LEAST_REQUEST, reports=False),
         (Row("least_request_tail", "p99_ms", "ms", Target(0.5), ("p50_ms", "calls")),)),
    Plan(Failover,
         (Row("failover_ms", "failover_ms", "ms", Target(1.0)),
          Row("failover_failed_no_retry", "failed", "calls", Target(0.9)),
          Row("failback_ms", "failback_ms", "ms", Target(0.5), ("failed_at_failback",)))),
    Plan(lambda: Failover(standby_priorities=1),
         (Row("failover_standby_ms", "failover_ms", "ms", Target(0.3), ("failed",)),)),
    Plan(lambda: Failover(resources.RETRIES),
         (Row("failover_failed", "failed", "calls", Exactly(0), ("failover_ms", "failed_at_failback")),), most_pairs=5),
    Plan(ControlPlaneKill,
         (Row("control_plane_kill_failed", "failed", "calls", Exactly(0), ("calls", "away_s")),), most_pairs=5),
    Plan(EdsUpdate,
         (Row("eds_update_10000_cpu", "cpu_ms", "ms", Target(0.01)),
          Row("eds_new_endpoint_10000_ms", "new_endpoint_ms", "ms", Target(0.1)),
          Row("memory_10000_connected", "connected_mb", "MB", Target(0.9))), most_pairs=5),
    Plan(Refused,
         (Row("memory_10000_refused", "rss_mb", "MB", Target(0.35), ("peak_mb", "refused_ms", "cpu_s")),),
         most_pairs=5),
    Plan(ColdStart,
         (Row("cold_start_10000_ms", "first_answer_ms", "ms", None, ("connected_ms",)),
          Row("all_ready_10000_cpu", "cpu_s", "s", Target(0.9))), most_pairs=5),
    Plan(ManyTargets,
         (Row("cold_start_200_targets_ms", "answered_ms", "ms", Target(1.0)),
          Row("cold_start_200_targets_requests", "requests", "requests", Target(1.0)))),
    Plan(lambda: HostileResponse("empty_resources", {"answered_ms": 2000.0, "bytes_per_byte": 6.0}),
         (Row("empty_resources_64mib_ms", "answered_ms", "ms", Target(1.0)),
          Row("empty_resources_64mib_memory", "bytes_per_byte", "bytes/byte", Target(1.0))), most_pairs=5),
    Plan(lambda: HostileResponse("patterns", {"answered_ms": 2000.0, "memory_mb": 200.0}),
         (Row("patterns_90000_ms", "answered_ms", "ms", Target(1.0)),
          Row("patterns_90000_memory", "memory_mb", "MB", Target(1.0))), most_pairs=5),
)

NAMES = tuple(row.name for plan in PLANS for row in plan.rows)
