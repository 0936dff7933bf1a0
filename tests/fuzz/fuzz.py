#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./run fuzz: runs the fuzz targets of this folder with libFuzzer, AddressSanitizer and
UndefinedBehaviorSanitizer.

    SECONDS, targets ─▶ two at a time, an equal share each ─▶ Outcome ─▶ table, JSON

Progress goes to stderr, and the table goes to stdout. In the build folder, fuzz-corpus/TARGET keeps
inputs that reach new code, and the next run begins with them. fuzz-findings/ keeps inputs that
broke a target. README.md in this folder explains what each target checks."""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

# The longest input of each target, in bytes.
TARGETS = {
    "listener": 4096,
    "route_config": 4096,
    "cluster": 4096,
    "endpoints": 4096,
    "response": 16384,
    "flood": 256,
    "bootstrap": 2048,
    "resource_file": 2048,
    "route_match": 256,
    "session_cookie": 8192,
    "admin": 4096,
    "ads": 512,
    "fallback": 512,
}

AT_A_TIME = min(2, os.cpu_count() or 1)
INPUT_SECONDS = 1  # An input that takes longer is a hang.
RSS_MB = 512
MALLOC_MB = 64  # The limit for one allocation.
BUDGET = [f"-timeout={INPUT_SECONDS}", f"-rss_limit_mb={RSS_MB}", f"-malloc_limit_mb={MALLOC_MB}"]
PROGRESS_SECONDS = 10.0

# AddressSanitizer keeps freed memory in a quarantine, to find a later use of it. A quarantine of
# the default size, 256 MB, would look like a leak.
ASAN_OPTIONS = "quarantine_size_mb=64:detect_stack_use_after_return=1:strict_string_checks=1"


def say(text: str) -> None:
    sys.stderr.write(f"fuzz: {text}\n")  # One write per line, because two threads write.
    sys.stderr.flush()


@dataclass
class Outcome:
    target: str
    executions: int = 0
    seconds: float = 0.0
    new_units: int = 0
    # For each finding, the command line that reproduces it, or the reason why there is none.
    findings: list[str] = field(default_factory=list)


INTERRUPTED = 72  # libFuzzer's exit status after SIGINT or SIGTERM.


def outcome_of(target: str, program: Path, log: str, status: int, seconds: float) -> Outcome:
    """The outcome of a target, from libFuzzer's log. The statistics at the end of the log may be
    missing, so the progress lines are read, too."""

    def last(pattern: str) -> int:
        found = re.findall(pattern, log, re.MULTILINE)
        return int(found[-1]) if found else 0

    outcome = Outcome(target, seconds=round(seconds, 1))
    outcome.executions = max(last(r"^stat::number_of_executed_units:\s*(\d+)"), last(r"^#(\d+)\s"))
    outcome.new_units = max(last(r"^stat::new_units_added:\s*(\d+)"), len(re.findall(r"^#\d+\s+NEW\s", log, re.MULTILINE)))
    if status not in (0, INTERRUPTED):
        units = re.findall(r"Test unit written to (\S+)", log)
        outcome.findings = [" ".join([str(program), *BUDGET, unit]) for unit in units] or [f"exit status {status}, no input was kept"]
    return outcome


def summary_of(log: str) -> list[str]:
    """The first six lines of the log that describe findings, without the stacks."""
    return [line for line in log.splitlines() if re.match(r"fuzz: BROKEN|  found: |SUMMARY: |.*runtime error: ", line)][:6]


def table(outcomes: list[Outcome]) -> str:
    rows = [("target", "executions", "per second", "new units", "findings")]
    for one in outcomes:
        rate = f"{one.executions / one.seconds:,.0f}" if one.seconds else "-"
        rows.append((one.target, f"{one.executions:,}", rate, f"{one.new_units:,}", str(len(one.findings))))
    rows.append(("all", f"{sum(one.executions for one in outcomes):,}", "", f"{sum(one.new_units for one in outcomes):,}",
                 str(sum(len(one.findings) for one in outcomes))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                  for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


class Fuzzing:
    """The fuzz processes of one `./run fuzz`, and their logs."""

    def __init__(self, build: Path, seed: int) -> None:
        self.build = build
        self.seed = seed
        self.running: dict[str, subprocess.Popen] = {}
        self.stopped = threading.Event()

    def log_of(self, target: str) -> Path:
        return self.build / "fuzz-logs" / f"{target}.log"

    def arguments(self, target: str, seconds: float) -> list[str]:
        grown = self.build / "fuzz-corpus" / target
        found = self.build / "fuzz-findings"
        for folder in (grown, found, self.log_of(target).parent):
            folder.mkdir(parents=True, exist_ok=True)
        return [
            str(self.build / "tests" / "fuzz" / f"fuzz_{target}"), str(grown), str(HERE / "corpus" / target),
            f"-max_total_time={max(1, round(seconds))}", *BUDGET,
            f"-max_len={TARGETS[target]}", f"-seed={self.seed}", "-detect_leaks=1", "-print_final_stats=1",
            f"-artifact_prefix={found}/{target}-"]

    def run(self, target: str, seconds: float) -> Outcome:
        arguments = self.arguments(target, seconds)
        if self.stopped.is_set():
            return Outcome(target)
        say(f"{target}: {seconds:.0f} s")
        environment = {**os.environ, "ASAN_OPTIONS": ASAN_OPTIONS,
                       "UBSAN_OPTIONS": f"print_stacktrace=1:suppressions='{ROOT}/conf/sanitizers/ubsan.supp'"}
        begun = time.monotonic()
        with self.log_of(target).open("wb") as log:
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
            self.running[target] = process
            status = process.wait()
        del self.running[target]
        log_text = self.log_of(target).read_text(encoding="utf-8", errors="replace")
        outcome = outcome_of(target, Path(arguments[0]), log_text, status, time.monotonic() - begun)
        say(f"{target}: ran for {outcome.seconds:.0f} s")
        if outcome.findings:
            say("\n  ".join([f"{target}: FOUND something, see {self.log_of(target)}", *summary_of(log_text)]))
        return outcome

    def run_all(self, targets: list[str], seconds: float) -> list[Outcome]:
        share = seconds * AT_A_TIME / len(targets) if len(targets) > AT_A_TIME else seconds
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            futures = [pool.submit(self.run, target, share) for target in targets]
            try:
                while concurrent.futures.wait(futures, PROGRESS_SECONDS).not_done:
                    self.tell_progress()
            except KeyboardInterrupt:
                self.stop()
            return [future.result() for future in futures]

    def tell_progress(self) -> None:
        for target in list(self.running):
            lines = self.log_of(target).read_text(encoding="utf-8", errors="replace").splitlines()
            last = next((line for line in reversed(lines) if line.startswith("#")), None)
            if last is not None:
                say(f"{target}: {' '.join(last.split())}")

    def stop(self) -> None:
        self.stopped.set()
        for process in list(self.running.values()):
            process.terminate()


def parse(arguments: list[str]) -> argparse.Namespace:
    def positive(text: str) -> int:
        if not re.fullmatch(r"[1-9][0-9]*", text):
            raise argparse.ArgumentTypeError(f"expected a positive number, got '{text}'")
        return int(text)

    parser = argparse.ArgumentParser(
        prog="./run fuzz", description="The fuzz targets under libFuzzer with sanitizers, two at a time.",
        epilog=f"Targets: {', '.join(TARGETS)}. Each input may take {INPUT_SECONDS} s, and a target {RSS_MB} MB of memory, {MALLOC_MB} MB of them at once. Exit status: 0 nothing was found, 1 something was, 2 wrong arguments.")
    parser.add_argument("seconds", type=positive, metavar="SECONDS", help="how long, all targets together")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="by default all of them")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table to this file as data")
    parser.add_argument("--seed", type=positive, default=1, metavar="S", help="libFuzzer's; by default 1")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "fuzz", help=argparse.SUPPRESS)
    parser.add_argument("--only-arguments", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    for target in options.targets:
        if target not in TARGETS:
            parser.error(f"there is no target '{target}'. There are: {', '.join(TARGETS)}")
    if options.json is not None and not options.json.resolve().parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.resolve().parent}")
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.only_arguments:
        return 0
    targets = list(dict.fromkeys(options.targets)) or list(TARGETS)
    outcomes = Fuzzing(options.build, options.seed).run_all(targets, options.seconds)
    print(table(outcomes))
    findings = [finding for one in outcomes for finding in one.findings]
    if findings:
        print("\nTo see each again:", *(f"  {finding}" for finding in findings), sep="\n")
    if options.json is not None:
        options.json.write_text(json.dumps({"targets": [asdict(one) for one in outcomes]}, indent=2) + "\n", encoding="utf-8")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
