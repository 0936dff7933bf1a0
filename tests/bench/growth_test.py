#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of `./run bench scale` (growth.py, growth_page.py): the fit, the sweeps, what is written, and
refused arguments. Nothing is measured."""

import contextlib
import html.parser
import io
import json
import math
import random
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import growth
from bench import parse, run_scale
from growth import LIMIT, MEASURES, NAMES, QUICK, SWEEPS, Curve, Fit, Measure, Run, Sweep, fit
from growth_page import Axes, decades, fit_text, page, power_text, text
from world import MeasurementFailed, Programs

ROOT = Path(__file__).resolve().parents[2]


def sweep_of(name: str) -> Sweep:
    return SWEEPS[NAMES.index(name)]


def curve_of(cost, sizes=(10, 100, 1000, 10_000), sweep="endpoints", measure="update_cpu_ms") -> Curve:
    return Curve(sweep_of(sweep), next(one for one in MEASURES if one.name == measure),
                 [(size, cost(size)) for size in sizes])


def run_of(*curves: Curve) -> Run:
    return Run(list(curves), cores=2, load_before=0.5, seconds=12.0, effort=QUICK)


class FitTest(unittest.TestCase):
    def test_a_power_of_the_size_is_found_without_an_error(self) -> None:
        for exponent in (0.0, 0.5, 1.0, 2.0):
            found = fit([(size, 3.0 * size**exponent) for size in (10, 50, 1000, 100_000)])
            self.assertAlmostEqual(found.exponent, exponent)
            self.assertAlmostEqual(found.error, 0.0)

    def test_the_error_is_that_of_least_squares(self) -> None:
        # By hand: the logarithms are (0, 0), (1, 2), (2, 1) times log 10; slope 1/2, residuals
        # -1/2, 1, -1/2, so the error is sqrt(1.5 / 1 / 2).
        found = fit([(1, 1.0), (10, 100.0), (100, 10.0)])
        self.assertAlmostEqual(found.exponent, 0.5)
        self.assertAlmostEqual(found.error, math.sqrt(0.75))

    def test_noise_is_within_a_few_errors(self) -> None:
        dice = random.Random(1)
        found = fit([(size, size**0.9 * dice.uniform(0.9, 1.1)) for size in (10, 100, 1000, 5000, 20_000, 50_000)])
        self.assertLess(abs(found.exponent - 0.9), 3 * found.error)
        self.assertLess(found.error, 0.03)

    def test_two_points_have_no_error_and_one_has_no_line(self) -> None:
        found = fit([(10, 1.0), (1000, 10.0)])
        self.assertAlmostEqual(found.exponent, 0.5)
        self.assertIsNone(found.error)
        for points in ([], [(10, 1.0)], [(10, 1.0), (10, 2.0)]):
            self.assertIsNone(fit(points))

    def test_points_without_a_positive_cost_do_not_count(self) -> None:
        found = fit([(1, 0.0), (10, None), (20, -0.5), (100, 5.0), (1000, 50.0)])
        self.assertAlmostEqual(found.exponent, 1.0)


class CurveTest(unittest.TestCase):
    def test_a_steep_end_is_seen_behind_a_flat_beginning(self) -> None:
        curve = curve_of(lambda size: 100 + 0.001 * size**1.5, (10, 100, 1000, 10_000, 100_000))
        self.assertLess(curve.whole().exponent, LIMIT)
        self.assertGreater(curve.end().exponent, LIMIT)
        self.assertTrue(curve.is_above())

    def test_the_end_is_the_larger_half_and_at_least_three_points(self) -> None:
        for count, used in [(2, 2), (3, 3), (5, 3), (6, 3), (7, 4)]:
            sizes = [10 * 2**i for i in range(count)]
            # Only the used points are on a line.
            curve = curve_of(lambda size, first=sizes[-used]: size if size >= first else 1e9, sizes)
            self.assertAlmostEqual(curve.end().exponent, 1.0, msg=str(count))

    def test_only_an_exponent_above_the_limit_has_an_explanation(self) -> None:
        steep, flat = curve_of(lambda size: size**1.5), curve_of(lambda size: size)
        with mock.patch.dict(growth.EXPLANATIONS, {("endpoints", "update_cpu_ms"): "caches are small"}, clear=True):
            self.assertEqual((steep.explanation(), flat.explanation()), ("caches are small", ""))
        with mock.patch.dict(growth.EXPLANATIONS, clear=True):
            self.assertEqual(steep.explanation(), "")

    def test_explanations_are_about_curves_that_exist(self) -> None:
        measures = [measure.name for measure in MEASURES]
        for sweep, measure in growth.EXPLANATIONS:
            self.assertIn(sweep, NAMES)
            self.assertIn(measure, measures)


class SweepTest(unittest.TestCase):
    def test_the_sizes_are_those_that_were_promised(self) -> None:
        self.assertEqual({sweep.name: (sweep.sizes[0], sweep.sizes[-1]) for sweep in SWEEPS}, {
            "endpoints": (10, 50_000), "connections": (10, 10_000), "clusters": (10, 5000), "routes": (10, 100_000),
            "targets": (1, 500), "threads": (1, 16)})
        for sweep in SWEEPS:
            for sizes in (sweep.sizes, sweep.quick_sizes):
                self.assertEqual(sorted(set(sizes)), list(sizes))
                self.assertGreaterEqual(len(sizes), 3)

    def test_an_update_changes_little_of_a_world(self) -> None:
        for name, changed in [("endpoints", 1), ("clusters", 2), ("routes", 1), ("targets", 1), ("threads", 16)]:
            before, after = sweep_of(name).worlds(10, 80)
            with self.subTest(name):
                self.assertEqual(len(before), len(after))
                self.assertEqual(sum(one != other for one, other in zip(before, after)), changed)

    def test_resources_have_names_of_their_own(self) -> None:
        for sweep in SWEEPS:
            for world in sweep.worlds(20, 80):
                names = [(resource["@type"], resource.get("name") or resource["cluster_name"]) for resource in world]
                self.assertEqual(len(set(names)), len(names), sweep.name)

    def test_every_address_is_a_valid_one(self) -> None:
        [endpoints] = [resource for resource in sweep_of("endpoints").worlds(50_000, 80)[1] if "cluster_name" in resource]
        hosts = [endpoint["endpoint"]["address"]["socket_address"]["address"]
                 for endpoint in endpoints["endpoints"][0]["lb_endpoints"]]
        self.assertEqual(len(set(hosts)), 50_000)
        self.assertTrue(all(int(part) < 256 for host in hosts for part in host.split(".")))

    def test_a_point_that_fails_has_no_costs_and_the_others_are_measured(self) -> None:
        costs = {measure.name: 1.0 for measure in MEASURES}
        said: list[str] = []
        with mock.patch("growth.measure_point", side_effect=[costs, MeasurementFailed("it says nothing"), costs]):
            curves, is_whole = growth.run_sweep(mock.create_autospec(Programs), sweep_of("targets"), True, QUICK, said.append)
        self.assertFalse(is_whole)
        self.assertEqual(curves[0].points, [(1, 1.0), (5, None), (25, 1.0)])
        self.assertIn("scale targets 5: not measured: it says nothing", said)


class Reader(html.parser.HTMLParser):
    """Checks that elements are closed in the order in which they were opened."""

    VOID = ("meta",)

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")


class PageTest(unittest.TestCase):
    def setUp(self) -> None:
        self.curves = [curve_of(lambda size, measure=measure: size * 0.5, sweep=sweep, measure=measure.name)
                       for sweep in ("endpoints", "routes") for measure in MEASURES]

    def test_it_has_a_chart_for_each_measure_and_a_table_for_each_sweep(self) -> None:
        reader = Reader()
        reader.feed(page(run_of(*self.curves)))
        self.assertEqual(reader.open, [])
        self.assertEqual(reader.counts["figure"], len(MEASURES))
        self.assertEqual(reader.counts["polyline"], len(self.curves))
        self.assertEqual(reader.counts["circle"], sum(len(curve.points) for curve in self.curves))
        self.assertEqual(reader.counts["table"], 1 + 2)

    def test_it_loads_nothing_and_runs_nothing(self) -> None:
        written = page(run_of(*self.curves))
        self.assertIn("default-src 'none'", written)
        for word in ("<script", "http://", "https://", "url(", "@import", "javascript:"):
            self.assertNotIn(word, written)
        self.assertIn("prefers-color-scheme: dark", written)

    def test_a_steep_curve_is_marked_and_explained(self) -> None:
        steep = curve_of(lambda size: size**1.5)
        with mock.patch.dict(growth.EXPLANATIONS, clear=True):
            self.assertIn("<td class=bad>1.50 ± 0.00 *</td>", page(run_of(steep)))
            self.assertIn("above 1.1", text(run_of(steep)))
        with mock.patch.dict(growth.EXPLANATIONS, {("endpoints", "update_cpu_ms"): "a <b> & c"}, clear=True):
            self.assertIn("endpoints, update: a &lt;b&gt; &amp; c", page(run_of(steep)))
            self.assertIn("endpoints, update: a <b> & c", text(run_of(steep)))

    def test_points_that_were_not_measured_are_left_out(self) -> None:
        missing = Curve(sweep_of("targets"), MEASURES[0], [(1, None), (5, 2.0), (25, None)])
        written = page(run_of(missing))
        self.assertEqual(written.count("<circle"), 1)
        self.assertIn("<td>-</td>", written)
        self.assertNotIn("nan", written.lower())
        page(run_of(Curve(sweep_of("targets"), MEASURES[0], [(1, None)])))

    def test_every_point_is_inside_its_chart(self) -> None:
        axes = Axes([(10, 0.004), (50_000, 7.0)])
        self.assertEqual((axes.columns, axes.rows), ((1, 5), (-3, 1)))
        for size, cost in [(10, 0.001), (100_000, 10.0)]:
            self.assertTrue(0 <= axes.x(size) <= 560 and 0 <= axes.y(cost) <= 340)
        self.assertLess(axes.y(10.0), axes.y(0.001))

    def test_decades_enclose_values(self) -> None:
        for values, powers in [([1, 500], (0, 3)), ([10.0], (1, 2)), ([0.02, 0.3], (-2, 0)), ([], (0, 1))]:
            self.assertEqual(decades(values), powers)
        self.assertEqual([power_text(power) for power in (-2, 0, 4)], ["0.01", "1", "10,000"])

    def test_exponents_are_short(self) -> None:
        for found, words in [(None, "-"), (Fit(1.034, 0.021), "1.03 ± 0.02"), (Fit(0.5, None), "0.50"),
                             (Fit(-0.001, 0.1), "0.00 ± 0.10")]:
            self.assertEqual(fit_text(found), words)

    def test_data_has_the_sizes_costs_and_fits(self) -> None:
        data = json.loads(json.dumps(run_of(*self.curves).as_data()))
        self.assertEqual([sweep["name"] for sweep in data["sweeps"]], ["endpoints", "routes"])
        first = data["sweeps"][0]
        self.assertEqual(first["sizes"], [10, 100, 1000, 10_000])
        self.assertEqual([measure["name"] for measure in first["measures"]], [measure.name for measure in MEASURES])
        self.assertEqual(first["measures"][0]["costs"], [5, 50, 500, 5000])
        self.assertEqual(first["measures"][0]["fit"]["exponent"], 1.0)
        self.assertFalse(first["measures"][0]["is_above"])


class ArgumentsTest(unittest.TestCase):
    def refusal(self, *arguments: str) -> str:
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            parse(list(arguments))
        self.assertEqual(end.exception.code, 2)
        return said.getvalue().splitlines()[-1]

    def test_wrong_arguments_are_named(self) -> None:
        for arguments, named in [
            (("scale", "sockets"), "no sweep 'sockets'. There are: endpoints"),
            (("scale", "pick_2"), "no sweep 'pick_2'"), (("pick_2", "scale"), "no row 'scale'"),
            (("scale", "--pairs", "3"), "--pairs: scale"), (("scale", "--gate"), "--gate: scale"),
            (("scale", "--html", "no/such/folder/page.html"), "no/such/folder/page.html"), (("scale", "--html"), "--html"),
            (("scale", "--seconds", "0"), "--seconds"), (("--html", "page.html", "pick_2"), "only `scale` and `fleet` write pages"),
        ]:
            with self.subTest(arguments):
                self.assertIn(named, self.refusal(*arguments))

    def test_sweeps_may_stand_after_options(self) -> None:
        options = parse(["scale", "--quick", "routes", "targets"])
        self.assertEqual((options.rows, options.is_scale), (["scale", "routes", "targets"], True))

    def test_help_names_the_sweeps(self) -> None:
        said = subprocess.run([ROOT / "run", "help", "bench"], check=True, capture_output=True, text=True).stdout
        words = re.split(r"[\s,;.]+", said)
        self.assertEqual([name for name in (*NAMES, "scale", "--html") if name not in words], [])

    def test_page_and_data_are_written_and_a_missing_point_is_a_failure(self) -> None:
        result = run_of(curve_of(lambda size: size))
        for is_whole, status in [(True, 0), (False, 1)]:
            with tempfile.TemporaryDirectory() as folder, mock.patch("growth.run", return_value=(result, is_whole)), \
                    contextlib.redirect_stdout(io.StringIO()) as said:
                files = [Path(folder) / name for name in ("page.html", "data.json")]
                options = parse(["scale", "--html", str(files[0]), "--json", str(files[1]), "endpoints"])
                self.assertEqual(run_scale(options), status)
                self.assertIn("<h1>How cost grows</h1>", files[0].read_text(encoding="utf-8"))
                self.assertEqual(json.loads(files[1].read_text(encoding="utf-8"))["cores"], 2)
                self.assertIn("1.00 ± 0.00", said.getvalue())


if __name__ == "__main__":
    unittest.main()
