# SPDX-License-Identifier: Apache-2.0
"""The amount of work in a night, and the verdicts on its results. This file uses no process, file
or clock.

    Part, hours ─▶ amount_of ─▶ commands ─▶ (nightly.py) ─▶ Result ─▶ verdict_of ─▶ report.py"""

import re
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Optional

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
    """The result of one part."""

    part: str
    amount: int
    commit: str
    seed: int
    count: float = 0.0
    seconds: float = 0.0
    commands: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    measured: bool = True  # False: some of the count is Command.worth, and no program has printed it.


@dataclass
class State:
    """What --resume needs of a night. The state file keeps it."""

    hours: float
    seed: int
    begun: str
    results: dict[str, Result] = field(default_factory=dict)


def result_from(data: dict) -> Result:
    return Result(**{**data, "failures": [Failure(**failure) for failure in data["failures"]]})


def state_from(data: dict) -> State:
    results = {name: result_from(result) for name, result in data["results"].items()}
    return State(data["hours"], data["seed"], data["begun"], results)


def state_as_data(state: State) -> dict:
    return asdict(state)


def amount_of(part: Part, hours: float) -> int:
    """The count that a part should reach in a night of `hours`; at least one."""
    return max(1, ceil(part.gate * hours / FULL_HOURS))


def is_done(part: Part, amount: int, commit: str, seed: int, before: Optional[Result]) -> bool:
    """Whether `before` is the result of the same work. Failed work is done, too, because a second
    run must not hide the failure."""
    return before is not None and (before.part, before.amount, before.commit, before.seed) == (
        part.name, amount, commit, seed)


def count_of(command: Command, output: str, status: int) -> float:
    """The number that one run of a command adds to the part's count."""
    if command.counted:
        numbers = re.findall(command.counted, output, re.MULTILINE)
        return min((float(number.replace(",", "")) for number in numbers), default=0.0)
    return command.worth if command.worth is not None and status == 0 else 0.0


def counts(command: Command) -> bool:
    return bool(command.counted) or command.worth is not None


def why_failed(command: Command, output: str, status: int) -> str:
    """The reason why a run failed. Empty: it succeeded."""
    if status != 0:
        return f"exit status {status}"
    if command.counted and not re.search(command.counted, output, re.MULTILINE):
        return f"it exited with 0, but printed no count (pattern '{command.counted}')"
    if not re.search(command.says, output, re.MULTILINE):
        return f"it exited with 0, but did not say '{command.says}'"
    return ""


def tail_of(output: str) -> str:
    return "\n".join(output.splitlines()[-TAIL_LINES:])


def verdict_of(part: Part, result: Optional[Result]) -> str:
    if part.commands is None:
        return "not built"
    if result is None:
        return "not run"
    if result.failures:
        return "failed"
    if result.count < part.gate:
        return "short"
    return "reached in part" if part.beyond else "reached"
