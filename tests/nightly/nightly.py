#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./run nightly: runs the tests that take too long for a pull request, and reports all results.

    parts.py ─▶ plan.py: how much ─▶ builds, commands ─▶ Result ─▶ state.json ─▶ report.py: text, JSON, HTML

Progress goes to stderr, and the report goes to stdout. The output of each part is kept in
build/nightly/logs. After each part the results are written to build/nightly/state.json; --resume
continues from this file, and reports all that the file has of the same work."""

import argparse
import contextlib
import datetime
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Optional

from parts import PARTS, Command, Part
from plan import (FULL_HOURS, Failure, Result, State, amount_of, count_of, counts, is_done, state_as_data, state_from,
                  tail_of, why_failed)
from report import Night, as_data, as_html, as_text, has_failed

ROOT = Path(__file__).resolve().parents[2]
LEAST_PATIENCE = 4 * 3600.0  # The least limit for one command, in seconds; longer nights have more.
GRACE = 10.0  # What an ended command has to end what it has started, in seconds.
MOST_FAILURES = 10  # A part ends after this many failures, because more would tell nothing new.


def say(text: str) -> None:
    print(f"nightly: {text}", file=sys.stderr, flush=True)


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def commit_of(root: Path) -> str:
    """The commit, and a hash of the uncommitted changes and of new files, if there are any."""
    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", root, *words], check=True, capture_output=True).stdout

    commit = git("rev-parse", "HEAD").decode().strip()
    changes = git("diff", "HEAD")
    for name in git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0"):
        path = root / os.fsdecode(name)
        if path.is_file():
            changes += name + path.read_bytes()
    return commit if not changes else f"{commit}+{hashlib.sha256(changes).hexdigest()[:12]}"


class Runner:
    """Runs the commands of parts, one after the other."""

    def __init__(self, root: Path, seed: int, hours: float) -> None:
        self.root = root
        self.seed = seed
        self.patience = LEAST_PATIENCE * max(1.0, hours / FULL_HOURS)
        self.logs = root / "build" / "nightly" / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def run_part(self, part: Part, amount: int, commit: str) -> Result:
        result = Result(part.name, amount, commit, self.seed)
        begun = time.monotonic()
        self.log_of(part).write_bytes(b"")
        if all(self.build(part, preset, targets, result) for preset, targets in part.builds):
            commands = part.commands(amount)
            done = [(command, self.repeat(part, command, result)) for command in commands]
            result.count = min((count for command, count in done if counts(command)), default=0.0)
            result.measured = all(command.counted for command in commands if counts(command))
        result.seconds = time.monotonic() - begun
        return result

    def build(self, part: Part, preset: str, targets: tuple[str, ...], result: Result) -> bool:
        for words in (("cmake", "--preset", preset, "-DSIGNALBOX_BUILD_TESTS=ON"),
                      ("cmake", "--build", "--preset", preset, "--target", *targets)):
            self.run_once(part, Command(words), 0, result)
            if result.failures:
                return False
        return True

    def repeat(self, part: Part, command: Command, result: Result) -> float:
        count = 0.0
        for number in range(command.times):
            if len(result.failures) >= MOST_FAILURES:
                break
            count += self.run_once(part, command, number, result)
        return count

    def run_once(self, part: Part, command: Command, number: int, result: Result) -> float:
        seeded = command.with_seed(self.seed + number)
        if number == 0:
            result.commands.append(command.line_of_runs(self.seed))
        patience = self.patience + command.seconds
        status, output = self.call(part, list(seeded.words), dict(seeded.environment), patience)
        why = f"more than {patience:.0f} s" if status is None else why_failed(command, output, status)
        if why:
            result.failures.append(Failure(seeded.line(), why, tail_of(output)))
            say(f"{part.name}: FAILED ({why}): {seeded.line()}")
        return count_of(command, output, 0 if not why else 1)

    def log_of(self, part: Part) -> Path:
        return self.logs / f"{part.name}.log"

    def call(self, part: Part, words: list[str], environment: dict[str, str], patience: float) -> tuple[Optional[int], str]:
        """Runs a command. Returns its exit status and output. None: the command exceeded its
        time."""
        with self.log_of(part).open("r+b") as log:
            begin = log.seek(0, os.SEEK_END)
            try:
                # The command has its own process group, so that all its processes can be ended with
                # it.
                process = subprocess.Popen(words, cwd=self.root, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                           env={**os.environ, **environment}, start_new_session=True)
            except OSError as error:
                return 127, str(error)
            try:
                status = process.wait(patience)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                end_group(process)
            log.seek(begin)
            return status, log.read().decode("utf-8", errors="replace")


def end_group(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.terminate()  # It may have started other groups, which only the process can end.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def state_in(path: Path) -> Optional[State]:
    """None: there is no state file, or it has another form."""
    if not path.is_file():
        return None
    try:
        return state_from(json.loads(path.read_text(encoding="utf-8")))
    except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        say(f"{path} is not the state of a night, so it counts for nothing: {type(error).__name__}: {error}")
        return None


def hours_of(options: argparse.Namespace, last: Optional[State]) -> float:
    return options.hours or (last.hours if options.resume and last is not None else float(FULL_HOURS))


def seed_of(options: argparse.Namespace, last: Optional[State]) -> int:
    return options.seed or (last.seed if options.resume and last is not None else random.SystemRandom().randrange(1, 2**31))


def begin(options: argparse.Namespace, last: Optional[State]) -> State:
    """A new night, or with --resume the last one."""
    if last is None or not options.resume:
        if last is not None:
            say(f"a new night: the last one's results, of {len(last.results)} parts, are forgotten (--resume keeps them)")
        return State(hours_of(options, last), seed_of(options, last), now())
    night = State(hours_of(options, last), seed_of(options, last), last.begun, last.results)
    if night.hours != last.hours:
        say(f"{night.hours:g} hours in place of the last night's {last.hours:g}: parts with another count run again")
    if night.seed != last.seed:
        say(f"seed {night.seed} in place of the last night's {last.seed}: all parts run again")
    return night


def write(path: Path, text: str) -> None:
    """Replaces a file atomically, so that an interrupted night leaves a readable state."""
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def keep(path: Path, state: State) -> None:
    write(path, json.dumps(state_as_data(state), indent=2))


def write_reports(night: Night, options: argparse.Namespace) -> None:
    write(options.html, as_html(night))
    write(options.json, json.dumps(as_data(night), indent=2) + "\n")


def parse(arguments: list[str], parts: tuple[Part, ...], root: Path) -> argparse.Namespace:
    def positive(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0.0 < value <= 1000.0:
            raise argparse.ArgumentTypeError(f"expected a number of hours above 0 and up to 1000, got '{text}'")
        return value

    parser = argparse.ArgumentParser(prog="./run nightly", description="All that is too long for a pull request.")
    parser.add_argument("parts", nargs="*", metavar="PART", help="by default all of them")
    parser.add_argument("--hours", type=positive, metavar="H")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--seed", type=int, metavar="S")
    parser.add_argument("--html", type=Path, default=root / "build" / "nightly" / "report.html", metavar="FILE")
    parser.add_argument("--json", type=Path, default=root / "build" / "nightly" / "report.json", metavar="FILE")
    parser.add_argument("--list", action="store_true", help="the commands, and nothing else")
    parser.add_argument("--only-arguments", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    known = [part.name for part in parts]
    for name in options.parts:
        if name not in known:
            parser.error(f"there is no part '{name}'. There are: {', '.join(known)}")
    if options.seed is not None and options.seed < 1:
        parser.error(f"--seed: expected a positive number, got '{options.seed}'")
    (root / "build" / "nightly").mkdir(parents=True, exist_ok=True)
    for option, path in (("--html", options.html), ("--json", options.json)):
        if not path.resolve().parent.is_dir():
            parser.error(f"{option}: there is no folder {path.resolve().parent}")
    return options


def show_commands(parts: list[Part], hours: float, seed: int) -> None:
    for part in parts:
        commands = part.commands(amount_of(part, hours)) if part.commands else []
        for command in commands:
            print(f"{part.name:<9} {command.line_of_runs(seed)}")
        if not commands:
            print(f"{part.name:<9} not built")


def main(arguments: list[str], parts: tuple[Part, ...] = PARTS, root: Path = ROOT) -> int:
    options = parse(arguments, parts, root)
    wanted = [part for part in parts if not options.parts or part.name in options.parts]
    if options.only_arguments:
        return 0
    path = root / "build" / "nightly" / "state.json"
    last = state_in(path)
    if options.list:
        show_commands(wanted, hours_of(options, last), seed_of(options, last))
        return 0
    state = begin(options, last)
    keep(path, state)
    commit = commit_of(root)
    done = {part.name: state.results[part.name] for part in parts
            if is_done(part, amount_of(part, state.hours), commit, state.seed, state.results.get(part.name))}
    reported = [part for part in parts if part in wanted or part.name in done]
    night = Night(commit, state.seed, state.hours, state.begun, "", reported, done)
    runner = Runner(root, state.seed, state.hours)
    try:
        for part in wanted:
            if part.name in done:
                if done[part.name].failures:
                    say(f"{part.name}: it failed, and is not run again; run the lines after 'again:' in the report")
            elif part.commands is not None:
                amount = amount_of(part, state.hours)
                say(f"{part.name}: {part.title}, {amount:,} {part.unit}")
                done[part.name] = state.results[part.name] = runner.run_part(part, amount, commit)
                keep(path, state)
    finally:
        night.ended = now()
        write_reports(night, options)
    print(as_text(night))
    say(f"report: {options.html}")
    return 1 if has_failed(night) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        say("interrupted; go on with --resume")
        sys.exit(130)
