# SPDX-License-Identifier: Apache-2.0
"""The result of `./run bench scale`, as text and as a page.

    Run ─▶ text(): a table for each sweep
        └▶ page(): HTML: exponents, a log-log chart for each measure, the numbers

The page is one file. It loads nothing and runs no script. Its charts are SVG."""

import math
from html import escape
from typing import Iterable, Optional

from comparison import as_text
from growth import LIMIT, MEASURES, Curve, Fit, Measure, Run


def fit_text(found: Optional[Fit]) -> str:
    if found is None:
        return "-"
    error = "" if found.error is None else f" ± {found.error:.2f}"
    return f"{round(found.exponent, 2) + 0.0:.2f}{error}"  # + 0.0 turns -0.0 into 0.0.


def verdict(curve: Curve) -> str:
    if not curve.is_above():
        return ""
    return "explained" if curve.explanation() else f"above {LIMIT:g}"


def sweeps_of(curves: list[Curve]) -> list[list[Curve]]:
    """The curves of each sweep."""
    found: dict[str, list[Curve]] = {}
    for curve in curves:
        found.setdefault(curve.sweep.name, []).append(curve)
    return list(found.values())


def rows_of(curves: list[Curve]) -> list[list[str]]:
    """The table of one sweep: a head, and a line for each measure."""
    head = ["", *(f"{size:,}" for size, _ in curves[0].points), "unit", "exponent", "at the end", ""]
    return [head] + [[curve.measure.title, *(as_text(cost, 3) for _, cost in curve.points), curve.measure.unit,
                      fit_text(curve.whole()), fit_text(curve.end()), verdict(curve)] for curve in curves]


def explanations(curves: list[Curve]) -> list[str]:
    return [f"{curve.sweep.name}, {curve.measure.title}: {curve.explanation()}" for curve in curves
            if curve.explanation()]


def text(result: Run) -> str:
    parts = []
    for curves in sweeps_of(result.curves):
        rows = rows_of(curves)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        parts.append(f"{curves[0].sweep.name}: {curves[0].sweep.title}")
        for row in rows:
            cells = [cell.ljust(width) if i == 0 or i == len(row) - 1 else cell.rjust(width)
                     for i, (cell, width) in enumerate(zip(row, widths))]
            parts.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join([*parts, *explanations(result.curves), result.facts() + "; exponent: of size, with its standard "
                      "error; at the end: that of the larger sizes alone"])


# --- the page -------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; --page: #fff; --text: #1c2024; --quiet: #5b646d; --line: #d7dce1; --bad: #b3261e;
  --c0: #0072b2; --c1: #b87a00; --c2: #00805f; --c3: #b0508a; --c4: #6a4fb0; --c5: #c24e00; }
@media (prefers-color-scheme: dark) { :root { --page: #14181c; --text: #e6e9ec; --quiet: #9ba6b0; --line: #333b43;
  --bad: #ff8a80; --c0: #56b4e9; --c1: #e6b13c; --c2: #3fc79a; --c3: #e39ac4; --c4: #b39ddb; --c5: #ff9150; } }
* { box-sizing: border-box; }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1.25rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0 .75rem; }
.quiet { color: var(--quiet); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: right; padding: .2rem .6rem; white-space: nowrap; font-variant-numeric: tabular-nums; }
th { font-weight: 600; } tbody th { font-weight: 400; }
th:first-child { text-align: left; }
thead th { border-bottom: 1px solid var(--line); }
.bad { color: var(--bad); font-weight: 650; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 1.5rem; }
figure { margin: 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--quiet); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--line); } .guide { stroke: var(--quiet); stroke-dasharray: 2 5; }
.curve { fill: none; stroke-width: 2; }
.key { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; padding: 0; margin: .25rem 0 0; list-style: none; }
.key svg { display: inline-block; width: 2rem; height: .8rem; vertical-align: -1px; margin-right: .4rem; }
""" + "".join(f".s{i} {{ stroke: var(--c{i}); }} .f{i} {{ fill: var(--c{i}); }}\n" for i in range(6))

# Curves differ in their dashes, too, because not every reader can tell them apart by colours alone.
DASHES = ("", "9 4", "3 3", "12 3 3 3", "6 2", "1 4")

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 62, 30, 12, 40


def decades(values: Iterable[float]) -> tuple[int, int]:
    """The powers of ten that enclose the positive values; at least one decade."""
    known = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    return low, max(high, low + 1)


def power_text(power: int) -> str:
    return f"{10 ** power:,}" if power >= 0 else f"{10.0 ** power:.{-power}f}"


class Axes:
    """Where a point of a chart is. Both axes are logarithmic."""

    def __init__(self, points: list[tuple[float, float]]) -> None:
        self.columns = decades(size for size, _ in points)
        self.rows = decades(cost for _, cost in points)

    def x(self, size: float) -> float:
        low, high = self.columns
        return LEFT + (math.log10(size) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, cost: float) -> float:
        low, high = self.rows
        return HEIGHT - BOTTOM - (math.log10(cost) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def grid(self, unit: str) -> list[str]:
        lines = []
        for power in range(self.columns[0], self.columns[1] + 1):
            x = self.x(10.0 ** power)
            lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
                         f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{power_text(power)}</text>')
        for power in range(self.rows[0], self.rows[1] + 1):
            y = self.y(10.0 ** power)
            lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                         f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{power_text(power)}</text>')
        lines.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">size</text>'
                     f'<text x="12" y="{(TOP + HEIGHT - BOTTOM) / 2:.0f}" text-anchor="middle" '
                     f'transform="rotate(-90 12 {(TOP + HEIGHT - BOTTOM) / 2:.0f})">{escape(unit)}</text>')
        return lines

    def guide(self) -> str:
        """A line with the exponent 1, from the lower left corner to the edge."""
        steps = min(self.columns[1] - self.columns[0], self.rows[1] - self.rows[0])
        size, cost = 10.0 ** self.columns[0], 10.0 ** self.rows[0]
        far = 10.0 ** steps
        return (f'<line class="guide" x1="{self.x(size):.1f}" y1="{self.y(cost):.1f}" x2="{self.x(size * far):.1f}" '
                f'y2="{self.y(cost * far):.1f}"><title>exponent 1</title></line>')


def known_points(curve: Curve) -> list[tuple[float, float]]:
    return [(float(size), cost) for size, cost in curve.points if cost is not None and cost > 0]


def curve_svg(axes: Axes, curve: Curve, number: int) -> list[str]:
    points = known_points(curve)
    path = " ".join(f"{axes.x(size):.1f},{axes.y(cost):.1f}" for size, cost in points)
    lines = [f'<polyline class="curve s{number}" stroke-dasharray="{DASHES[number]}" points="{path}"/>']
    for size, cost in points:
        title = f"{curve.sweep.name} {size:,.0f}: {as_text(cost)} {curve.measure.unit}"
        lines.append(f'<circle class="f{number}" cx="{axes.x(size):.1f}" cy="{axes.y(cost):.1f}" r="3.5">'
                     f"<title>{escape(title)}</title></circle>")
    return lines


def chart(measure: Measure, curves: list[Curve], numbers: dict[str, int]) -> str:
    """The chart of one measure, with a curve for each sweep. `numbers`: the sweeps' colours."""
    drawn = [curve for curve in curves if known_points(curve)]
    axes = Axes([point for curve in drawn for point in known_points(curve)])
    lines = axes.grid(measure.unit) + [axes.guide()]
    keys = []
    for curve in drawn:
        number = numbers[curve.sweep.name]
        lines += curve_svg(axes, curve, number)
        keys.append(f'<li><svg viewBox="0 0 32 12" aria-hidden="true"><line class="curve s{number}" '
                    f'stroke-dasharray="{DASHES[number]}" x1="0" x2="32" y1="6" y2="6"/></svg>'
                    f"{escape(curve.sweep.name)} <span class=quiet>{escape(fit_text(curve.end()))}</span></li>")
    label = escape(f"{measure.title} by size, both axes logarithmic")
    return (f'<figure><figcaption>{escape(measure.title)}, {escape(measure.unit)}</figcaption>'
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(lines)}</svg>'
            f'<ul class="key">{"".join(keys)}</ul></figure>')


def is_steep(found: Optional[Fit]) -> bool:
    return found is not None and found.exponent > LIMIT


def html_table(curves: list[Curve]) -> str:
    """The table of one sweep. Exponents above the limit, and what is said of them, are marked."""
    head, *rows = rows_of(curves)
    body = ""
    for curve, row in zip(curves, rows):
        marked = [False] * (len(row) - 3) + [is_steep(curve.whole()), is_steep(curve.end()), curve.is_above()]
        cells = "".join(f"<td{' class=bad' if is_marked else ''}>{escape(cell)}</td>"
                        for cell, is_marked in zip(row[1:], marked[1:]))
        body += f"<tr><th>{escape(row[0])}</th>{cells}</tr>\n"
    head_cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    return f'<div class="scroll"><table><thead><tr>{head_cells}</tr></thead>\n<tbody>{body}</tbody></table></div>\n'


def summary(result: Run) -> str:
    """The exponents of all curves: at the end, where the sizes are large."""
    head = "".join(f"<th>{escape(measure.title)}</th>" for measure in MEASURES)
    body = ""
    for curves in sweeps_of(result.curves):
        cells = "".join(f"<td{' class=bad' if curve.is_above() else ''}>{escape(fit_text(curve.end()))}"
                        f"{' *' if curve.is_above() else ''}</td>" for curve in curves)
        body += f"<tr><th>{escape(curves[0].sweep.name)}</th>{cells}</tr>\n"
    return (f'<div class="scroll"><table><thead><tr><th>exponent at the end</th>{head}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>\n")


def page(result: Run) -> str:
    sweeps = sweeps_of(result.curves)
    numbers = {curves[0].sweep.name: number for number, curves in enumerate(sweeps)}
    charts = "\n".join(chart(measure, [curve for curve in result.curves if curve.measure == measure], numbers)
                       for measure in MEASURES)
    tables = "".join(
        f"<h2>{escape(curves[0].sweep.name)}: {escape(curves[0].sweep.title)}</h2>\n"
        + html_table(curves) for curves in sweeps)
    reasons = "".join(f"<p>* {escape(reason)}</p>\n" for reason in explanations(result.curves))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>signalbox: how cost grows</title>
<style>{STYLE}</style></head>
<body><h1>How cost grows</h1>
<p class="quiet">{escape(result.facts())}</p>
<p>A cost of size<sup>e</sup> has the exponent e: 0 does not grow, 1 grows with the size. The exponents are fits of the
logarithms with the least squares, ± their standard errors. The end is the larger half of the sizes, and at least three
sizes. An exponent above {LIMIT:g} is marked *.</p>
{summary(result)}{reasons}<h2>Charts</h2>
<p class="quiet">Both axes are logarithmic. The dotted line has the exponent 1. Beside the names: the exponents at the end.</p>
<div class="charts">
{charts}
</div>
{tables}</body></html>
"""
