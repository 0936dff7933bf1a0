# SPDX-License-Identifier: Apache-2.0
"""The intended differences between signalbox and Envoy (the rows of differences.json), and the
judge that compares both sides by these rows.

    (case, what signalbox does, what Envoy does) ─▶ [Judge] ─▶ complaints

    a case with a row      The sides must differ, and signalbox must do what the row says.
    a case without a row   The sides must be equal.

A row without a compared case is a complaint, too, so outdated rows are found.

A row is {"part": …, "reason": …, "envoy": a sentence, "cases": {CASE: what signalbox does, …}}. A
case may be a pattern ("*/a60"). The row then holds for all cases that match the pattern."""

import fnmatch
import json
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).resolve().parent / "differences.json"


@dataclass(frozen=True)
class Row:
    pattern: str
    ours: object
    reason: str


def load_rows(part: str) -> list[Row]:
    """The rows of one part of the comparison: one for each case or pattern."""
    return [Row(pattern, ours, row["reason"])
            for row in json.loads(TABLE.read_text(encoding="utf-8")) if row["part"] == part
            for pattern, ours in row["cases"].items()]


class Judge:
    def __init__(self, part: str) -> None:
        self._part = part
        self._rows = load_rows(part)
        self._judged: set[str] = set()
        self._used: set[str] = set()
        self.complaints: list[str] = []

    @property
    def compared(self) -> int:
        return len(self._judged)

    def complain(self, case: str, what: str) -> None:
        self.complaints.append(f"{self._part}/{case}: {what}")

    def wanted(self, case: str, envoys):
        """What signalbox must do: what the row of this case says. Without a row: what Envoy
        does."""
        return next((row.ours for row in self._rows_of(case)), envoys)

    def compare(self, case: str, ours, envoys, differ: bool | None = None) -> None:
        """`differ` says whether the sides differ. None: they differ if their values are not
        equal."""
        self._judged.add(case)
        if differ is None:
            differ = ours != envoys
        both = f"\n  signalbox: {say(ours)}\n  Envoy:     {say(envoys)}"
        rows = self._rows_of(case)
        self._used.update(row.pattern for row in rows)
        if len(rows) > 1:
            self.complain(case, f"{len(rows)} rows of {TABLE.name} speak of it")
        elif not rows and differ:
            self.complain(case, f"a difference that is not in {TABLE.name}{both}")
        elif rows and not differ:
            self.complain(case, f"the known difference shows no more; take its row out ({rows[0].reason}){both}")
        elif rows and ours != rows[0].ours:
            self.complain(case, f"signalbox does not do what its row says ({rows[0].reason})"
                                f"\n  row:       {say(rows[0].ours)}{both}")

    def _rows_of(self, case: str) -> list[Row]:
        return [row for row in self._rows if fnmatch.fnmatchcase(case, row.pattern)]

    def finish(self) -> list[str]:
        for row in self._rows:
            if row.pattern not in self._used:
                self.complain(row.pattern, f"{TABLE.name} has a row for a case that there is not")
        return self.complaints


def say(value) -> str:
    return value if isinstance(value, str) else json.dumps(value)
