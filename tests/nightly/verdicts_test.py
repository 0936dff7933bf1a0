#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the verdicts of the drivers with numbers that are made up: each has numbers that it takes, and
numbers just beyond its gate."""

import random
import time
import unittest
from argparse import Namespace
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Callable
from unittest import mock

import exhaustion
from churn import CHURN_BASE, ROW, Churn, Live, all_served, all_taken, growth_of, judge_churn, judge_rate
from drains import Drains, none_begun, none_moved
from exhaustion import is_ahead, malloc_counted, malloc_held
from soak import Held, Soak, is_flat, judge_memory
from world import Failed, after_warm_up, check, none_lost, rate_held

MIB = 1 << 20
COUNTS = {"sent": 9, "lost": 0, "left_out": 0, "failed": {}}


def window(first: int, size: int) -> set[int]:
    return {CHURN_BASE + number % ROW for number in range(first, first + size)}


class VerdictTest(unittest.TestCase):
    def fails(self, why: str) -> AbstractContextManager:
        """A gate must not be met, with a text that matches `why`. Empty: it must be met."""
        return self.assertRaisesRegex(Failed, why) if why else nullcontext()


class CallsTest(VerdictTest):
    def test_no_call_may_be_lost_or_left_out(self) -> None:
        for change, why in (({}, ""), ({"lost": 1, "failed": {"x": 1}}, "calls: 1 calls of 9 were lost: {'x': 1}"),
                            ({"left_out": 1}, "calls: 1 calls were not sent")):
            with self.subTest(change), self.fails(why):
                none_lost({**COUNTS, **change}, "calls")

    def test_a_rate_of_calls_is_held_by_95_percent(self) -> None:
        rate_held({"sent": 9_500}, 1_000, 10)
        with self.assertRaisesRegex(Failed, "9,499 calls in 10.0 s are too few for 1,000 a second"):
            rate_held({"sent": 9_499}, 1_000, 10)

    def test_sessions_stay_and_begin_elsewhere(self) -> None:
        for moved, why in ((0, ""), (1, "1 calls of sessions went to other backends")):
            with self.subTest(moved=moved), self.fails(why):
                none_moved({"moved": moved})
        for begun, why in (({"b": 7}, ""), ({"a": 1, "b": 7}, "a session began on a, which drains")):
            with self.subTest(begun=begun), self.fails(why):
                none_begun({"begun": begun}, "a")

    def test_each_mark_of_a_drain_is_judged(self) -> None:
        drains = Drains.__new__(Drains)
        drains._calls_of_sessions = 0
        for change, why in (({}, ""), ({"lost": 1}, "were lost"), ({"moved": 1}, "went to other backends")):
            counts = {**COUNTS, "moved": 0, "kept": {"a": 2}, **change}
            drains._client = SimpleNamespace(ask=lambda _, counts=counts: counts)
            with self.subTest(change), self.fails(why):
                drains._mark()
        self.assertEqual(drains._calls_of_sessions, 2)


class LiveTest(unittest.TestCase):
    def setUp(self) -> None:
        self.live = Live(CHURN_BASE, 100, settle=60)

    def test_the_endpoints_that_stay_must_be_connected(self) -> None:
        self.live.moved(10)
        now = time.monotonic()
        for first in (0, 10):
            self.assertEqual(self.live.wrong(window(first, 100), now), "")
        self.assertEqual(self.live.wrong(window(10, 90), now), "")
        self.assertIn("1 endpoints that were there", self.live.wrong(window(11, 99), now))

    def test_an_endpoint_that_went_long_ago_must_not_be_connected(self) -> None:
        self.live.moved(10)
        later = time.monotonic() + 61
        self.assertEqual(self.live.wrong(window(10, 100), later), "")
        self.assertIn("and 10 that went longer ago are", self.live.wrong(window(0, 110), later))
        self.assertIn("10 endpoints that were there", self.live.wrong(window(0, 100), later))

    def test_other_connections_do_not_count(self) -> None:
        self.live.moved(ROW - 50)  # The row begins again behind its end.
        connected = window(ROW - 50, 100)
        self.assertTrue(self.live.is_exact(connected | {0x7F000001, CHURN_BASE - 1, CHURN_BASE + ROW}))
        self.assertFalse(self.live.is_exact(connected - {CHURN_BASE}))


class ChurnTest(VerdictTest):
    def test_a_pick_without_an_endpoint_fails(self) -> None:
        self.assertEqual(all_served({"picks": 9, "unserved": 0})["picks"], 9)
        with self.assertRaisesRegex(Failed, "1 picks of 9 found no endpoint"):
            all_served({"picks": 9, "unserved": 1})

    def test_endpoints_picks_and_memory_are_judged(self) -> None:
        good = {"replaced": 1_620_000, "ratio": 2.0, "growth": MIB}
        for change, why in (({}, ""), ({"replaced": 1_619_999}, "fewer than a tenth"), ({"ratio": 2.01}, "p99 of picks is 2.0 times"),
                            ({"growth": MIB + 1}, "more than 1 MiB a minute: figures")):
            with self.subTest(change), self.fails(why):
                judge_churn(Namespace(seconds=1800.0, endpoints=10_000), **{**good, **change}, figures="figures")

    def test_memory_is_not_judged_in_less_than_half_an_hour(self) -> None:
        judge_churn(Namespace(seconds=1799.0, endpoints=10), 1_799, 1.0, 9 * MIB, "")

    def test_memory_of_the_warm_up_does_not_count(self) -> None:
        samples = [(float(second), 9e6 * second) for second in range(25)]
        self.assertAlmostEqual(growth_of([*samples, *((float(second), 3.0 * second) for second in range(25, 100))], 100), 180)

    def test_speed_and_memory_are_judged_on_demand(self) -> None:
        for judge, slowest, why in ((True, 200, ""), (True, 201, "p99 of picks"), (False, 201, "")):
            churn = Churn.__new__(Churn)
            churn._options = Namespace(seconds=60.0, burst_seconds=2.0, endpoints=10, settle=5.0, judge=judge)
            churn._client = SimpleNamespace(ask=lambda *_: {"picks": 9, "unserved": 0, "p99_ns": 100})
            churn._site = SimpleNamespace(is_exact=lambda: True, finish=lambda _: 9)
            churn._world = SimpleNamespace(end=lambda _: None)
            churn._memory = [(float(second), 7.0) for second in range(60)]
            churn._flood = lambda _: "a burst"
            churn._replace = lambda _, p99=slowest: {"replaced": 60, "p99_ns": p99}
            with self.subTest(judge=judge, slowest=slowest), self.fails(why):
                self.assertIn("1 minutes: 9 calls, 60 endpoints replaced; a burst;", churn.run())

    def test_updates_come_at_nine_tenths_of_their_rate(self) -> None:
        for updates, why in ((9_000, ""), (8_999, "8,999 updates took 10.0 s")):
            with self.subTest(updates), self.fails(why):
                judge_rate({"updates": updates, "seconds": 10.0})

    def test_updates_are_taken_on_one_stream(self) -> None:
        for nacks, streams, applied, why in ((0, 1, 50, ""), (1, 1, 50, "1 updates were refused"), (0, 2, 50, "needed 2 streams"),
                                             (0, 1, 51, "51 configurations came of 50 updates")):
            with self.subTest(why), self.fails(why):
                all_taken({"updates": 50}, {"nacks": nacks, "streams": streams}, applied)


class SoakTest(VerdictTest):
    def test_a_few_descriptors_and_threads_more_are_allowed(self) -> None:
        before = Held(24, 27)
        for now, is_right in ((before, True), (Held(30, 33), True), (Held(3, 3), True), (Held(31, 27), False), (Held(24, 34), False)):
            with self.subTest(now):
                self.assertEqual(is_flat(before, now), is_right)

    def test_memory_grows_by_less_than_1_mib_an_hour(self) -> None:
        """After the warm-up an hour has 2,700 s."""
        three = [(0.0, 0.0)] * 3
        for seconds, growth, why in ((2_700, 0.74, ""), (2_700, 0.75, "1 MiB an hour or more: figures"), (64_800, 17.9, ""),
                                     (64_800, 18, "1 MiB an hour"), (360, 0.74, ""), (360, 0.75, "1 MiB an hour")):
            with self.subTest(seconds=seconds, growth=growth), self.fails(why):
                judge_memory(three, growth * MIB, seconds, "figures")
        with self.fails("2 samples of memory, too few"):
            judge_memory(three[:2], 0, 2_700, "")

    def test_a_quarter_of_the_time_is_no_sample(self) -> None:
        self.assertEqual(after_warm_up([(24.9, 1), (25.0, 2), (99.0, 3)], 100), [(25.0, 2), (99.0, 3)])

    def test_each_fault_of_a_round_comes_once_and_is_judged(self) -> None:
        def _one(_: Soak) -> None: ...
        def _other(_: Soak) -> None: ...

        for lost, why in ((0, ""), (1, "after 'o.*': 1 calls of 9 were lost")):
            soak = Soak.__new__(Soak)
            soak._random, soak._done = random.Random(1), Counter()
            soak._client = SimpleNamespace(counts=lambda lost=lost: {**COUNTS, "lost": lost})
            soak._of, soak._pause = lambda _: [], lambda _: None
            with self.subTest(lost=lost), self.fails(why), mock.patch.object(Soak, "FAULTS", (_one, _other)):
                soak._round()
                self.assertEqual(soak._done, {"one": 1, "other": 1})

    def test_the_end_of_a_soak_is_judged(self) -> None:
        slow, grown = {"sent": 949_000}, [(float(second), 1.01 * second * MIB / 3_600.0) for second in range(3_600)]
        for judge, change, memory, why in (
                (True, {}, [(second, 7.0) for second, _ in grown], ""), (False, slow, grown, ""), (False, {"lost": 1}, grown, "were lost"),
                (True, slow, grown, "949,000 calls in"), (True, {}, grown, r"memory \+0.76 MiB in 45.0 minutes after"), (True, {}, [], "too few")):
            soak = Soak.__new__(Soak)
            soak._rate, soak._done = 1_000, {"kill plane": 2}
            counts = {**COUNTS, "sent": 1_000_000, "ok": 1_000_000, **change}
            soak._client = SimpleNamespace(begun=time.monotonic() - 1_000, finish=lambda counts=counts: counts)
            soak._held = lambda: Held(25, 28)
            with self.subTest(why, judge=judge), self.fails(why):
                self.assertIn("24 descriptors, then 25; 27 threads, then 28", soak._verdict(Held(24, 27), memory, 3_600.0, judge))


class ExhaustionTest(VerdictTest):
    def test_a_shim_that_counts_no_bytes_fails(self) -> None:
        for live_bytes, why in ((4_836_736, ""), (1_024_000, ""), (1_023_999, "1,023,999 bytes of malloc for 1,000 endpoints"),
                                (0, "0 bytes"), (-5, "-5 bytes")):
            with self.subTest(live_bytes), self.fails(why):
                malloc_counted(live_bytes, 1_000)

    def test_malloc_may_not_fail(self) -> None:
        for refused, why in ((0, ""), (1, "malloc failed 1 times")):
            with self.subTest(refused), self.fails(why):
                malloc_held(refused)

    def test_a_clock_that_is_not_stepped_fails(self) -> None:
        now = 1_796_041_916.0
        for hours, ahead, is_right in ((1, 3_599.98, True), (1, 0.0, False), (1, 2_999.0, False), (1, 4_201.0, False),
                                       (1, -3_600.0, False), (0, -0.5, True), (0, 3_600.0, False), (0, -601.0, False)):
            with self.subTest(hours=hours, ahead=ahead):
                self.assertEqual(is_ahead(now + ahead, now, hours), is_right)
        self.assertFalse(is_ahead(0.0, now, 0), "there is no metric")

    def run_kind(self, kind: str, numbers: dict[str, int], serve: Callable[..., None], metric: Callable[..., float]) -> None:
        """Runs a kind of S18 with `numbers` in place of the shim's file, and without a process."""
        faults = SimpleNamespace(get=numbers.__getitem__, set=numbers.__setitem__)
        client = SimpleNamespace(metric=metric, ask=lambda _: {}, counts=lambda: COUNTS, is_ready=lambda: True)
        site = SimpleNamespace(client=client, faults=faults, serve=serve, first_address="127.0.0.1:1", go_on=lambda _: None,
                               is_unready=lambda: True, calls=lambda _: 7)

        def step(_: object, by_ns: int) -> None:
            numbers["clock_offset_ns"] += by_ns

        def at_once(holds: Callable[[], bool], why: str) -> None:
            check(holds(), why)

        with mock.patch.multiple(exhaustion, Site=lambda *_, **__: site, wait_over_step=step, eventually=at_once):
            self.assertEqual(exhaustion.KINDS[kind](None, 2, Namespace(endpoints=1_000)), 7)

    def test_each_step_of_the_clock_must_be_seen(self) -> None:
        for seen, why in ((1.0, ""), (0.0, "a clock that is ahead by 1 h"), (0.5, "a clock that is ahead by 1 h")):
            numbers = {"clock_offset_ns": 0}
            with self.subTest(seen=seen), self.fails(why):
                self.run_kind("clock", numbers, lambda *_: None,
                              lambda _, seen=seen, numbers=numbers: time.time() + seen * numbers["clock_offset_ns"] / 1e9)

    def test_the_limit_of_malloc_must_be_seen(self) -> None:
        for live_bytes, refused, why in ((4_836_736, 0, ""), (0, 0, "0 bytes of malloc"), (4_836_736, 1, "malloc failed 1 times")):
            served: list[int] = []
            numbers = {"live_bytes": live_bytes, "refused": refused, "most_bytes": 0}

            def metric(name: str, served: list[int] = served, **_: str) -> float:
                return sum(size > 1_000 for size in served) if "rejected" in name else served[-1]

            with self.subTest(live_bytes=live_bytes, refused=refused), self.fails(why):
                self.run_kind("memory", numbers, lambda _, *more, served=served: served.append(
                    len(more[-1]["endpoints"][0]["lb_endpoints"])), metric)
            self.assertEqual(numbers["most_bytes"], 256 * MIB)


if __name__ == "__main__":
    unittest.main()
