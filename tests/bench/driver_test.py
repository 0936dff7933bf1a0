#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver: its arithmetic, rows, repeated pairs, output, and refused arguments. No
benchmark is run."""

import contextlib
import io
import json
import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from bench import parse, run_all, run_pair, sides_of
from comparison import AtLeast, Comparison, Exactly, Target, as_text, ratio_of, table
from experiments import (CallsAtRate, Experiment, Tail, eds_update_numbers, failover_numbers, overload_numbers,
                         rate_that_leaves_idle, tail_numbers)
from resources import LEAST_REQUEST
from rows import NAMES, PLANS
from world import MeasurementFailed, Programs, World

BENCH = Path(__file__).resolve().parent / "bench.py"


def comparison(*pairs, target=None) -> Comparison:
    return Comparison("row", "us", target, list(pairs))


class Help(unittest.TestCase):
    def test_names_every_row(self):
        run = BENCH.parents[2] / "run"
        text = subprocess.run([run, "help", "bench"], check=True, capture_output=True, text=True).stdout
        words = text.replace(",", " ").replace(";", " ").split()
        self.assertEqual([name for name in NAMES if name not in words], [])


class ComparisonTest(unittest.TestCase):
    def test_where_one_is_one_too_many_no_pair_hides_another(self) -> None:
        one_of_many = comparison((0, 0), (0, 2), (1, 0), (0, 0), (0, 0), target=Exactly(0))
        self.assertEqual((one_of_many.ours(), one_of_many.peer(), one_of_many.ratio()), (1, 2, 0.5))
        self.assertEqual(one_of_many.verdict(), "NOT MET")
        self.assertEqual(comparison((0, 3), (0, 0), target=Exactly(0)).verdict(), "met")
        self.assertEqual(comparison((0, None), target=Exactly(0)).verdict(), "met")

    def test_what_ours_has_to_reach_is_no_matter_of_the_peer(self) -> None:
        for ours, peer, verdict in [(0.9, 1.0, "met"), (0.89, 0.1, "NOT MET"), (0.9, None, "met")]:
            self.assertEqual(comparison((ours, peer), target=AtLeast(0.9)).verdict(), verdict)
        self.assertEqual(str(AtLeast(0.9)), "ours >= 0.9")

    def test_the_ratio_is_the_median_of_the_pairs_ratios(self) -> None:
        # The pairs' ratios are 0.5, 2 and 2. The ratio of the medians would be 20 / 20 = 1.
        self.assertEqual(comparison((10, 20), (20, 10), (60, 30)).ratio(), 2.0)

    def test_ours_and_peer_are_medians(self) -> None:
        measured = comparison((1, 5), (9, 7), (2, 6))
        self.assertEqual((measured.ours(), measured.peer()), (2, 6))

    def test_the_spread_is_the_interquartile_range_of_the_ratios(self) -> None:
        self.assertEqual(comparison((5, 1), (1, 1), (3, 1), (2, 1), (4, 1)).spread(), 2.0)
        self.assertEqual(comparison((7, 1)).spread(), 0.0)

    def test_one_outlier_moves_neither(self) -> None:
        calm, disturbed = [comparison(*[(1, 1)] * 14, (last, 1)) for last in (1, 1000)]
        self.assertEqual((calm.ratio(), calm.spread()), (disturbed.ratio(), disturbed.spread()))

    def test_nothing_out_of_nothing_is_even_and_something_is_infinitely_worse(self) -> None:
        self.assertEqual(ratio_of(0, 0), 1.0)
        self.assertEqual(ratio_of(0, 6), 0.0)
        self.assertEqual(ratio_of(3, 0), math.inf)
        worse = comparison((3, 0), (2, 0), (0, 0), target=Target(1.0))
        self.assertEqual(worse.verdict(), "NOT MET")
        self.assertIsNone(worse.as_data()["ratio"])

    def test_a_peer_that_cannot_do_it_is_null(self) -> None:
        measured = comparison((3, None), (4, None), target=Target(1.0))
        data = measured.as_data()
        self.assertEqual((data["ours"], data["peer"], data["ratio"], data["spread"]), (3.5, None, None, None))
        self.assertEqual(measured.verdict(), "-")

    def test_a_target_is_at_most_or_at_least(self) -> None:
        for target, ratio, is_met in [(Target(1.0), 1.0, True), (Target(1.0), 1.01, False),
                                      (Target(1.0, at_least=True), 1.0, True),
                                      (Target(1.0, at_least=True), 0.99, False)]:
            self.assertEqual(target.is_met(ratio), is_met, (target, ratio))

    def test_a_spread_beyond_the_distance_to_one_is_noise(self) -> None:
        met, missed, noise = (comparison(*[(ours, 10) for ours in values], target=Target(0.9))
                              for values in [(7, 8, 9), (13, 14, 15), (5, 9.5, 14)])
        self.assertEqual([row.verdict() for row in (met, missed, noise)], ["met", "NOT MET", "noise"])
        self.assertEqual([row.is_noise() for row in (met, missed, noise)], [False, False, True])
        # AtLeast and Exactly bound our number, not the ratio, so a noisy ratio does not matter.
        for target in (AtLeast(0.5), Exactly(0)):
            self.assertNotEqual(comparison((5, 10), (9.5, 10), (14, 10), target=target).verdict(), "noise")

    def test_many_pairs_judge_a_bound_near_one(self) -> None:
        # The spread is 0.02, so the error is 0.0117 with 10 pairs, 0.0059 with 40, and 0.0037 with 100.
        def verdict(off: float, pairs: int) -> str:
            return comparison(*[(0.99 + off, 1), (1.01 + off, 1)] * (pairs // 2), target=Target(1.01)).verdict()

        for off, pairs, wanted in [(0, 8, "noise"), (0, 40, "met"), (0.005, 40, "noise"), (0.005, 100, "met"),
                                   (0.015, 100, "NOT MET"), (0.012, 100, "noise")]:
            with self.subTest(off, pairs=pairs):
                self.assertEqual(verdict(off, pairs), wanted)
        # Fewer than ten pairs have no error, even if their bound is far away.
        self.assertEqual(comparison(*[(9, 10), (11, 10)] * 4, target=Target(0.5)).verdict(), "noise")

    def test_data_has_exactly_the_promised_keys(self) -> None:
        data = json.loads(json.dumps(comparison((1, 3), (2, 3)).as_data()))
        self.assertEqual(list(data), ["name", "ours", "peer", "ratio", "unit", "pairs", "spread"])
        self.assertEqual((data["name"], data["unit"], data["pairs"], data["ratio"]), ("row", "us", 2, 0.5))

    def test_the_table_has_a_line_for_each_row_in_columns(self) -> None:
        lines = table([comparison((1500, 3000), target=Target(0.2)), comparison((1, None))]).splitlines()
        self.assertEqual(lines[0].split(), ["row", "ours", "peer", "unit", "ratio", "spread", "target"])
        self.assertEqual(lines[1].split(), ["row", "1,500", "3,000", "us", "0.5", "0", "<=", "0.2", "NOT", "MET"])
        self.assertEqual(lines[2].split(), ["row", "1", "-", "us", "-", "-", "-", "-"])
        self.assertEqual(len({line.index("us") for line in lines[1:]}), 1)

    def test_numbers_are_short(self) -> None:
        for value, text in [(None, "-"), (math.inf, "inf"), (math.nan, "-"), (0.1234, "0.1234"), (12345.6, "12,346")]:
            self.assertEqual(as_text(value), text)


class FailoverTest(unittest.TestCase):
    SEEN = {"first_secondary_ns": 1_007_000_000, "first_primary_again_ns": 3_500_000_000,
            "failures_ns": [1_001_000_000, 1_002_000_000, 3_200_000_000]}

    def test_instants_become_durations_and_failures_are_told_apart(self) -> None:
        numbers = failover_numbers(self.SEEN, killed=1_000_000_000, listening=3_000_000_000)
        self.assertEqual(numbers, {"failover_ms": 7.0, "failback_ms": 500.0, "failed": 2, "failed_at_failback": 1})

    def test_what_cannot_be_is_refused(self) -> None:
        for seen, killed in [({**self.SEEN, "failures_ns": [999]}, 1_000_000_000),
                             (self.SEEN, 1_008_000_000),
                             ({**self.SEEN, "first_secondary_ns": 3_100_000_000}, 1_000_000_000)]:
            with self.assertRaises(MeasurementFailed):
                failover_numbers(seen, killed, listening=3_000_000_000)


class OverloadTest(unittest.TestCase):
    def test_goodput_is_a_share_of_the_capacity(self) -> None:
        seen = {"served_per_second": 760.0, "refused_per_second": 2400.0, "refused_p99_ms": 1.0}
        self.assertEqual(overload_numbers(seen, capacity=800), {**seen, "goodput": 0.95})

    def test_where_nothing_is_refused_there_is_no_overload(self) -> None:
        with self.assertRaises(MeasurementFailed):
            overload_numbers({"served_per_second": 760.0, "refused_per_second": 0.0, "refused_p99_ms": 0.0}, 800)


class TailTest(unittest.TestCase):
    def test_the_load_is_too_much_for_slow_backends_only_where_all_get_the_same(self) -> None:
        tail = Tail(LEAST_REQUEST, reports=False)
        fast = Tail.AT_ONCE / Tail.WORK_MS * 1e3
        rate = tail._rate  # pylint: disable=protected-access
        self.assertAlmostEqual(rate, 0.7 * (14 * fast + 2 * fast / 2))
        self.assertGreater(rate / Tail.BACKENDS, 1.2 * fast / 2)
        self.assertLess(rate / Tail.BACKENDS, 0.7 * fast)

    def test_a_backend_that_does_not_answer_is_refused(self) -> None:
        self.assertEqual(tail_numbers({"backends": 16, "p99_ms": 40.0}, 16)["p99_ms"], 40.0)
        with self.assertRaises(MeasurementFailed):
            tail_numbers({"backends": 15, "p99_ms": 40.0}, 16)


class EdsUpdateTest(unittest.TestCase):
    SEEN = {"served_ns": [2_030_000_000, 4_010_000_000, 6_500_000_000], "cpu_ms": [12.0, 10.0, 90.0],
            "connected_mb": 300.0}

    def test_a_run_is_the_median_of_its_updates(self) -> None:
        self.assertEqual(eds_update_numbers(self.SEEN, [2_000_000_000, 4_000_000_000, 6_000_000_000]),
                         {"new_endpoint_ms": 30.0, "cpu_ms": 12.0, "connected_mb": 300.0})

    def test_cpu_that_is_lost_in_the_noise_is_not_nothing(self) -> None:
        numbers = eds_update_numbers({**self.SEEN, "cpu_ms": [-1.0, 0.0, 0.0]}, [1, 2, 3])
        self.assertEqual(numbers["cpu_ms"], 0.1)

    def test_an_endpoint_that_serves_before_it_is_set_is_refused(self) -> None:
        with self.assertRaises(MeasurementFailed):
            eds_update_numbers(self.SEEN, [2_000_000_000, 4_020_000_000, 6_000_000_000])


class Disturbed(Experiment):
    """Fails the first `failures` times that the peer is measured."""

    def __init__(self, failures: int, is_repeatable: bool = True) -> None:
        self.failures, self.is_repeatable, self.sides = failures, is_repeatable, []

    def run(self, side: str, pair: int) -> dict:
        self.sides.append(side)
        if side == "peer" and self.failures > 0:
            self.failures -= 1
            raise MeasurementFailed("calls failed: 3 with code 14 (no connection)")
        return {"number": len(self.sides)}


class RepeatedPairTest(unittest.TestCase):
    def test_a_disturbed_pair_is_measured_again_with_both_sides(self) -> None:
        experiment = Disturbed(failures=2)
        results, disturbed = run_pair(experiment, 0, "rpc_cpu_2")
        self.assertEqual(results, {"ours": {"number": 5}, "peer": {"number": 6}})
        self.assertEqual(disturbed, ["rpc_cpu_2: pair 1 was measured again: calls failed: 3 with code 14 (no connection)"] * 2)

    def test_the_third_failure_ends_the_row(self) -> None:
        with self.assertRaises(MeasurementFailed):
            run_pair(Disturbed(failures=3), 0, "rpc_cpu_2")

    def test_a_world_that_a_failure_leaves_behind_is_not_used_again(self) -> None:
        experiment = Disturbed(failures=1, is_repeatable=False)
        with self.assertRaises(MeasurementFailed):
            run_pair(experiment, 0, "control_plane_kill_failed")
        self.assertEqual(experiment.sides, ["ours", "peer"])

    def test_rows_at_a_rate_have_no_limit_that_a_stall_would_fill(self) -> None:
        [cluster, _] = CallsAtRate(2).cluster([("127.0.0.1", 80)])
        self.assertEqual(cluster["circuit_breakers"], {"thresholds": [{"max_requests": 1_000_000}]})


class RateTest(unittest.TestCase):
    def test_a_fifth_of_the_machine_stays_idle_where_calls_become_cheaper(self) -> None:
        # Other work takes 10 % of this machine, and a call costs less at a higher rate.
        def idle_at(rate: float) -> float:
            return max(0.0, 1 - (0.1 + 0.7 * (rate / 20_000) ** 0.5))

        self.assertAlmostEqual(idle_at(rate_that_leaves_idle(idle_at)), 0.2, delta=0.03)

    def test_a_probe_has_at_most_four_times_the_rate_before(self) -> None:
        rates: list[float] = []

        def idle_at(rate: float) -> float:
            rates.append(rate)
            return 0.99 if rate < 2000 else 0.5 if rate < 5000 else 0.2

        self.assertEqual(rate_that_leaves_idle(idle_at), 6400)
        self.assertEqual(rates, [1000, 4000, 6400])

    def test_a_machine_that_is_always_busy_ends_the_probes(self) -> None:
        rates: list[float] = []

        def idle_at(rate: float) -> float:
            rates.append(rate)
            return 0.0

        self.assertLess(rate_that_leaves_idle(idle_at), 1000)
        self.assertEqual(len(rates), 10)


class DriverTest(unittest.TestCase):
    def run_it(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, str(BENCH), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)

    def test_neither_side_is_always_first(self) -> None:
        self.assertEqual([sides_of(pair) for pair in range(3)],
                         [("ours", "peer"), ("peer", "ours"), ("ours", "peer")])

    def test_every_row_has_one_name(self) -> None:
        self.assertEqual(len(set(NAMES)), len(NAMES))
        self.assertEqual(len(NAMES), sum(len(plan.rows) for plan in PLANS))

    def test_the_bounds_are_those_that_were_promised(self) -> None:
        self.assertEqual({row.name: str(row.target) for plan in PLANS for row in plan.rows}, {
            "pick_2": "<= 0.15",
            "pick_1000": "<= 0.08",
            "pick_1000_2threads": "<= 0.1",
            "pick_10000_round_robin": "<= 0.1",
            "pick_10000_ring_hash": "<= 0.1",
            "pick_10000_least_request": "<= 0.1",
            "pick_affinity_1000": "<= 1.4",
            "pick_tiered_1000": "<= 1.15",
            "pick_1000_wrr": "<= 1.2",
            "route_10000": "<= 1.7",
            "rpc_latency_2": "<= 0.97",
            "rpc_latency_1000": "<= 1.03",
            "rpc_cpu_2": "<= 0.9",
            "rpc_cpu_1000": "<= 0.7",
            "metrics_latency_2": "<= 1.01",
            "metrics_cpu_1000": "<= 1.01",
            "record_cpu_1000": "<= 1.01",
            "scrape_10000_ms": "<= 1",
            "ready_10000_ms": "<= 1",
            "lrs_cpu_2": "<= 1.02",
            "retry_call": "<= 1",
            "rpc_qps_16threads": ">= 1.05",
            "queued_call": "None",
            "overload_goodput": str(AtLeast(0.9)),
            "wrr_tail": "<= 0.5",
            "least_request_tail": "<= 0.5",
            "failover_ms": "<= 1",
            "failover_failed_no_retry": "<= 0.9",
            "failback_ms": "<= 0.5",
            "failover_standby_ms": "<= 0.3",
            "failover_failed": str(Exactly(0)),
            "control_plane_kill_failed": str(Exactly(0)),
            "eds_update_10000_cpu": "<= 0.01",
            "eds_new_endpoint_10000_ms": "<= 0.1",
            "memory_10000_connected": "<= 0.9",
            "memory_10000_refused": "<= 0.35",
            "cold_start_10000_ms": "None",
            "all_ready_10000_cpu": "<= 0.9", "cold_start_200_targets_ms": "<= 1",
            "cold_start_200_targets_requests": "<= 1",
            "empty_resources_64mib_ms": "<= 1",
            "empty_resources_64mib_memory": "<= 1",
            "patterns_90000_ms": "<= 1",
            "patterns_90000_memory": "<= 1",
        })

    def test_wrong_arguments_end_it_with_2_and_are_named(self) -> None:
        for arguments, named in [
            (["pick_3"], "no row 'pick_3'"), (["--fast"], "--fast"), (["--pairs", "0"], "--pairs"),
            (["--pairs", "many"], "--pairs"), (["--seconds", "-1"], "--seconds"), (["--json"], "--json"),
            (["--json", "no/such/folder/rows.json"], "no/such/folder/rows.json"),
        ]:
            with self.subTest(arguments):
                answer = self.run_it(*arguments)
                self.assertEqual((answer.returncode, answer.stdout), (2, ""))
                self.assertIn(named, answer.stderr)

    def test_help_names_the_rows(self) -> None:
        answer = self.run_it("--help")
        self.assertEqual(answer.returncode, 0)
        for name in NAMES:
            self.assertIn(name, answer.stdout.replace("\n", " "))

    def test_what_cannot_be_measured_ends_it_with_1(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            file = Path(empty) / "rows.json"
            answer = self.run_it("--build", empty, "--json", str(file), "pick_2", "failover_ms")
            self.assertEqual(answer.returncode, 1)
            self.assertIn("not measured: pick_2", answer.stdout)
            self.assertIn("not measured: failover_ms", answer.stdout)
            self.assertEqual(json.loads(file.read_text(encoding="utf-8")), [])

    def test_only_a_gate_fails_for_a_bound_that_is_not_met(self) -> None:
        met, missed = comparison((1, 2), target=Target(0.9)), comparison((2, 1), target=Target(0.9))
        noise = comparison((9, 10), (11, 10), target=Target(0.5))
        self.assertEqual(noise.verdict(), "noise")
        for rows, arguments, status in [([met, missed], [], 0), ([met, missed], ["--gate"], 1),
                                        ([met, noise, comparison((2, 1))], ["--gate"], 0)]:
            with self.subTest(arguments, rows=len(rows)), mock.patch("bench.run_plan", return_value=(rows, [])), \
                    contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(run_all(parse([*arguments, "pick_2"])), status)

    def test_a_world_ends_its_processes_when_something_fails(self) -> None:
        started = []
        with self.assertRaises(MeasurementFailed):
            with World(Programs(Path("/bin/cat"), Path("/bin/cat"), Path("none"), Path("none"), Path("none"))) as world:
                started.append(world._start(["tail", "-f", "/dev/null"]))  # pylint: disable=protected-access
                raise MeasurementFailed("on purpose")
        self.assertIsNotNone(started[0].popen.returncode)


if __name__ == "__main__":
    unittest.main()
