# SPDX-License-Identifier: Apache-2.0
"""What a night does and what it has shown: no process, no file, no clock.

    Part, hours ─▶ amount_of ─▶ commands ─▶ (nightly.py) ─▶ Result ─▶ verdict_of ─▶ report.py"""

import re
from dataclasses import asdict, dataclass, field
from math import ceil

from parts import Command, Part

FULL_HOURS = 8  # The length of a night for which the counts in parts.py hold.
TAIL_LINES = 30


@dataclass
class Failure:
    command: str  # The command line that repeats the run, from the checkout's folder.
    why: str
    output: str  # The last lines of the run's output.


@dataclass
class Result:
    """What became of one part. It stands in the state file until the report is made."""

    part: str
    amount: int
    commit: str
    seed: int
    count: float = 0.0
    seconds: float = 0.0
    commands: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


def result_from(data: dict) -> Result:
    return Result(**{**data, "failures": [Failure(**failure) for failure in data["failures"]]})


def result_as_data(result: Result) -> dict:
    return asdict(result)


def amount_of(part: Part, hours: float) -> int:
    """The part's count in a night of so many hours; at least one."""
    return max(1, ceil(part.gate * hours / FULL_HOURS))


def is_done(part: Part, amount: int, commit: str, seed: int, before: Result | None) -> bool:
    """Is it the same work? A failure is done, too: a second run must not hide it."""
    return before is not None and (before.part, before.amount, before.commit, before.seed) == (
        part.name, amount, commit, seed)


def count_of(command: Command, output: str, status: int) -> float:
    """What one run of a command adds to the count."""
    if command.counted:
        numbers = re.findall(command.counted, output, re.MULTILINE)
        return min((float(number.replace(",", "")) for number in numbers), default=0.0)
    return command.worth if command.worth is not None and status == 0 else 0.0


def counts(command: Command) -> bool:
    return bool(command.counted) or command.worth is not None


def why_failed(command: Command, output: str, status: int) -> str:
    """Empty: the run went well."""
    if status != 0:
        return f"exit status {status}"
    if command.forbidden and command.forbidden in output:
        return f"it said '{command.forbidden}'"
    if command.counted and not re.search(command.counted, output, re.MULTILINE):
        return f"it exited with 0, but printed no count (pattern '{command.counted}')"
    return ""


def tail_of(output: str) -> str:
    return "\n".join(output.splitlines()[-TAIL_LINES:])


def verdict_of(part: Part, result: Result | None) -> str:
    if part.commands is None:
        return "not built"
    if result is None:
        return "not run"
    if result.failures:
        return "failed"
    if result.count < part.gate:
        return "short"
    return "reached in part" if part.beyond else "reached"
