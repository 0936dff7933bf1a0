# SPDX-License-Identifier: Apache-2.0
"""The report of a night, as data, as text and as one HTML file without scripts.

    Night ─▶ as_data ─▶ JSON
                └─────▶ as_html, as_text"""

import html
from dataclasses import asdict, dataclass

from parts import Part
from plan import Result, verdict_of

STYLE = """body { font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
table { border-collapse: collapse; width: 100% } th, td { border-bottom: 1px solid #ccc; padding: .3em .6em; text-align: left;
vertical-align: top } td.number { text-align: right; white-space: nowrap } pre { background: #f4f4f4; overflow: auto; padding: .6em }
.failed { background: #fbd5d5 } .reached { background: #d9f2d9 } .part, .short { background: #fdf3cf } .none { color: #777 }"""
CLASSES = {"failed": "failed", "reached": "reached", "reached in part": "part", "short": "short"}


@dataclass
class Night:
    commit: str
    seed: int
    hours: float
    begun: str
    ended: str
    parts: list[Part]
    results: dict[str, Result]


def as_data(night: Night) -> dict:
    rows = []
    for part in night.parts:
        result = night.results.get(part.name)
        rows.append({
            "part": part.name, "title": part.title, "verdict": verdict_of(part, result), "gate": part.gate,
            "unit": part.unit, "amount": result.amount if result else 0, "count": result.count if result else 0,
            "measured": result.measured if result else True,
            "seconds": round(result.seconds, 1) if result else 0, "beyond": part.beyond,
            "commands": result.commands if result else [],
            "failures": [asdict(failure) for failure in result.failures] if result else []})
    return {"commit": night.commit, "seed": night.seed, "hours": night.hours, "begun": night.begun, "ended": night.ended,
            "seconds": round(sum(row["seconds"] for row in rows), 1), "failed": has_failed(night), "parts": rows}


def has_failed(night: Night) -> bool:
    return any(verdict_of(part, night.results.get(part.name)) == "failed" for part in night.parts)


def number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def row_of(row: dict) -> str:
    cells = [f"<td><a href='#{row['part']}'>{html.escape(row['part'])}</a></td>", f"<td>{html.escape(row['title'])}</td>",
             f"<td class='{CLASSES.get(row['verdict'], 'none')}'>{row['verdict']}</td>",
             f"<td class='number'>{number(row['count'])}</td>", f"<td class='number'>{number(row['gate'])}</td>",
             f"<td>{html.escape(row['unit'])}</td>", f"<td class='number'>{number(row['seconds'])} s</td>"]
    return f"<tr>{''.join(cells)}</tr>"


def details_of(row: dict) -> str:
    lines = [f"<h2 id='{row['part']}'>{html.escape(row['part'])}: {html.escape(row['title'])}</h2>"]
    if row["beyond"]:
        lines.append(f"<p>The plan wants more: {html.escape(row['beyond'])}.</p>")
    if not row["measured"]:
        lines.append("<p>The count is of commands that succeeded. It is not measured, because the programs print none.</p>")
    if row["commands"]:
        lines.append(f"<pre>{html.escape(chr(10).join(row['commands']))}</pre>")
    for failure in row["failures"]:
        lines.append(f"<p class='failed'>Failed: {html.escape(failure['why'])}. Again:</p>"
                     f"<pre>{html.escape(failure['command'])}</pre><pre>{html.escape(failure['output'])}</pre>")
    return "\n".join(lines)


def as_html(night: Night) -> str:
    data = as_data(night)
    about = (f"Commit {data['commit']}, seed {data['seed']}, {number(data['hours'])} hours; "
             f"{data['begun']} to {data['ended']}.")
    head = "".join(f"<th>{name}</th>" for name in ("part", "what", "gate", "count", "wanted", "of", "time"))
    return "\n".join([
        "<!doctype html>", "<html lang='en'><head><meta charset='utf-8'><title>signalbox: a night</title>",
        f"<style>{STYLE}</style></head><body>", "<h1>A night of signalbox</h1>", f"<p>{html.escape(about)}</p>",
        f"<table><thead><tr>{head}</tr></thead><tbody>", *map(row_of, data["parts"]), "</tbody></table>",
        *map(details_of, data["parts"]), "</body></html>", ""])


def as_text(night: Night) -> str:
    lines = []
    for row in as_data(night)["parts"]:
        lines.append(f"{row['part']:<9} {row['verdict']:<16} {number(row['count']):>10} of {number(row['gate'])} {row['unit']}"
                     f"{'' if row['measured'] else ' (by exit status)'}")
        for failure in row["failures"]:
            lines.append(f"{'':<9} {failure['why']}; again: {failure['command']}")
    return "\n".join(lines)
