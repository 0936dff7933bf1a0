# SPDX-License-Identifier: Apache-2.0
"""What signalbox does otherwise than Envoy, on purpose: the rows of differences.json, and the judge that goes by them.

    (case, what signalbox does, what Envoy does) ─▶ [Judge] ─▶ complaints

    a row's cases  they differ, and signalbox does what the row says: well; else a complaint
    any other      they are equal: well; else a complaint

A row is a complaint, too, if none of its cases was compared: so no row outlives its reason.

A row: {"part": …, "reason": …, "envoy": a sentence, "cases": {CASE: what signalbox does, …}}. A case may be a pattern
("*/a60"): then all that it stands for differ, and signalbox does the same in all of them."""

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
    """One for each case or pattern."""
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
        """What signalbox is to do: as its row says, else as Envoy."""
        return next((row.ours for row in self._rows_of(case)), envoys)

    def compare(self, case: str, ours, envoys, differ: bool | None = None) -> None:
        """`differ`: where equality of values does not say it."""
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
