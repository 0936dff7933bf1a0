# SPDX-License-Identifier: Apache-2.0
"""The result of `./run bench fleet`, as text and as a page.

    Run ─▶ text(): a table of all outcomes, and one of capacities
        └▶ page(): HTML: the tables, and for each scenario two charts: messages a second, and the
           clients that have the newest version

The page is one file. It loads nothing and runs no script. Its charts are SVG."""

import math
from html import escape
from typing import Optional

from fleet import MANNERS, SIZED_MANNER, SIZED_SCENARIO, Run
from growth_page import BOTTOM, DASHES, HEIGHT, LEFT, RIGHT, STYLE, TOP, WIDTH

COLUMNS = (("p50_s", "50 %, s"), ("p99_s", "99 %, s"), ("p100_s", "100 %, s"), ("peak", "peak"),
           ("peak_connections", "connections"), ("peak_connections_tenth", "in 0.1 s"), ("messages", "messages"),
           ("refused", "refused"), ("wasted", "in vain"), ("nacks", "NACKs"), ("longest_wait_s", "wait, s"))
LEGEND = ("peak: the most messages that arrive in a second; connections: the most connections in a second, and in 0.1 s; "
          "messages: all that arrive; refused: attempts while the control plane is away; in vain: work for clients that had "
          "given up after 20 s; wait: the longest time that a message waits for the control plane")
OWN_STYLE = """.capacity { stroke: var(--quiet); stroke-dasharray: 2 5; } .refused { stroke-width: 1; opacity: .6; }
td.left, th.left { text-align: left; }
"""


def as_text(value: Optional[float]) -> str:
    if value is None:
        return "never"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def rows_of(outcomes: list[dict], first: str) -> list[list[str]]:
    """A head, and a line for each outcome. `first`: the key of the column before the numbers."""
    head = ["scenario", first, *(title for _, title in COLUMNS)]
    return [head] + [[outcome["scenario"], as_text(int(outcome[first])) if first == "capacity" else outcome[first],
                      *(as_text(outcome[key]) for key, _ in COLUMNS)] for outcome in outcomes]


def text_table(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


def text(result: Run) -> str:
    parts = [text_table(rows_of(result.outcomes, "manner"))]
    if result.sizes:
        parts.append(text_table(rows_of(result.sizes, "capacity")))
    return "\n".join([*parts, LEGEND, result.facts()])


# --- the page -------------------------------------------------------------------------------------


def html_table(rows: list[list[str]]) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}{' class=left' if i < 2 else ''}>{escape(cell)}</{tag}>"
                                for i, cell in enumerate(cells)) + "</tr>\n"

    head, *body = rows
    return (f'<div class="scroll"><table><thead>{line(head, "th")}</thead>\n'
            f'<tbody>{"".join(line(cells, "td") for cells in body)}</tbody></table></div>\n')


def steps_to(largest: float) -> list[float]:
    """Four to ten round values from 0 to `largest`, or just beyond it."""
    largest = max(largest, 1.0)
    step = 10.0 ** math.floor(math.log10(largest))
    for part in (0.1, 0.2, 0.25, 0.5, 1.0):
        if largest / (step * part) <= 10:
            step *= part
            break
    return [step * i for i in range(math.ceil(largest / step - 1e-9) + 1)]


class Axes:
    """Where a point of a chart is. Both axes begin with 0."""

    def __init__(self, columns: list[float], rows: list[float]) -> None:
        self.columns, self.rows = columns, rows

    def x(self, value: float) -> float:
        return LEFT + value / self.columns[-1] * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - value / self.rows[-1] * (HEIGHT - TOP - BOTTOM)

    def grid(self, below: str, beside: str) -> list[str]:
        lines = []
        for value in self.columns:
            x = self.x(value)
            lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
                         f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:,g}</text>')
        for value in self.rows:
            y = self.y(value)
            lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                         f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>')
        middle = (TOP + HEIGHT - BOTTOM) / 2
        lines.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(below)}</text>'
                     f'<text x="10" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 10 {middle:.0f})">'
                     f"{escape(beside)}</text>")
        return lines

    def curve(self, values: list[tuple[float, float]], number: int, more: str = "") -> str:
        """Points beyond the right edge are left out."""
        points = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in values if x <= self.columns[-1])
        return (f'<polyline class="curve s{number}{more}" stroke-dasharray="{DASHES[number]}" points="{points}"/>')


def stairs(counts: list[int]) -> list[tuple[float, float]]:
    """The corners of a line that has the value counts[i] from i to i + 1."""
    return [(float(second + side), float(count)) for second, count in enumerate(counts) for side in (0, 1)]


def figure(caption: str, lines: list[str], keys: list[str]) -> str:
    return (f'<figure><figcaption>{escape(caption)}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(caption)}">{"".join(lines)}</svg><ul class="key">{"".join(keys)}</ul></figure>')


def key(outcome: dict, said: str) -> str:
    number = MANNERS.index(outcome["manner"])
    return (f'<li><svg viewBox="0 0 32 12" aria-hidden="true"><line class="curve s{number}" '
            f'stroke-dasharray="{DASHES[number]}" x1="0" x2="32" y1="6" y2="6"/></svg>{escape(outcome["manner"])} '
            f"<span class=quiet>{escape(said)}</span></li>")


def load_chart(outcomes: list[dict]) -> str:
    """Messages a second from the scenario's time 0. Thin lines: attempts that are refused."""
    capacity = outcomes[0]["capacity"]
    most = max([capacity, *(max(outcome["arrived"], default=0) for outcome in outcomes)])
    axes = Axes(steps_to(max(len(outcome["arrived"]) for outcome in outcomes)), steps_to(most))
    lines = axes.grid("seconds", "messages a second")
    lines.append(f'<line class="capacity" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{axes.y(capacity):.1f}" '
                 f'y2="{axes.y(capacity):.1f}"><title>capacity</title></line>')
    for outcome in outcomes:
        number = MANNERS.index(outcome["manner"])
        if outcome["refused"]:
            # An attempt that meets no server costs nothing, so the thin lines may leave the chart.
            refused = [min(count, int(axes.rows[-1])) for count in outcome["refused_each"]]
            lines.append(axes.curve(stairs(refused), number, " refused"))
        lines.append(axes.curve(stairs(outcome["arrived"]), number))
    return figure("Messages a second at the control plane", lines,
                  [key(outcome, f"{outcome['peak']:,} at most") for outcome in outcomes])


def reached_chart(outcomes: list[dict]) -> str:
    """The percentage of clients with the newest version, from its publication."""
    axes = Axes(steps_to(max(len(outcome["reached"]) for outcome in outcomes)), [0, 25, 50, 75, 100])
    lines = axes.grid("seconds from its publication", "% of the clients")
    for outcome in outcomes:
        points = [(float(second), 100 * count / outcome["clients"]) for second, count in enumerate([0, *outcome["reached"]])]
        lines.append(axes.curve(points, MANNERS.index(outcome["manner"])))
    return figure("Clients that have the newest version", lines, [
        key(outcome, "never all" if outcome["p100_s"] is None else f"all after {as_text(outcome['p100_s'])} s")
        for outcome in outcomes])


def section(outcomes: list[dict]) -> str:
    first = outcomes[0]
    return (f"<h2>{escape(first['scenario'])}: {escape(first['title'])}</h2>\n"
            f'<div class="charts">{load_chart(outcomes)}{reached_chart(outcomes)}</div>\n')


def page(result: Run) -> str:
    names = list(dict.fromkeys(outcome["scenario"] for outcome in result.outcomes))
    sections = "".join(section([one for one in result.outcomes if one["scenario"] == name]) for name in names)
    sizes = "" if not result.sizes else (
        f"<h2>Capacities</h2>\n<p>Scenario {SIZED_SCENARIO}, manner {SIZED_MANNER}.</p>\n"
        + html_table(rows_of(result.sizes, "capacity")))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>signalbox: a fleet and its control plane</title>
<style>{STYLE}{OWN_STYLE}</style></head>
<body><h1>A fleet and its control plane</h1>
<p class="quiet">{escape(result.facts())}</p>
<p>A message is a connection, a request, or an ACK or NACK. Each costs the control plane the same, and so does a pushed
response. Times are from the publication of the newest version. The manners are signalbox's own back-off, those of the xDS clients of gRPC
C++ and gRPC Go, and signalbox's without jitter. The dotted line is the capacity. Thin lines are attempts while the control
plane is away.</p>
{html_table(rows_of(result.outcomes, "manner"))}<p class="quiet">{escape(LEGEND)}</p>
{sizes}{sections}</body></html>
"""
