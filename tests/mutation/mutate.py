#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds out whether the tests of the cores notice changes. A seed draws mutants of lb, xds/client,
xds/depend and xds/parse; the tests should kill each mutant.

    sources ─▶ mutants.py: the menu ─▶ seed ─▶ one mutant ─▶ build ─▶ tests that cover it ─▶ killed, or a survivor
                                                └ in build/mutation/tree, a worktree of HEAD: never in the checkout

Progress goes to stderr, and survivors go to stdout. Exit status: 0 enough mutants were killed, 1
too many survived, 2 the run was not possible, or the tests fail without a mutant at its end, 130 it
was interrupted. An interrupted run prints what it has."""

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

from mutants import Mutant, apply, blanked, enumerators_of, mutants_of

ROOT = Path(__file__).resolve().parents[2]
CORES = ("lb", "xds/client", "xds/depend", "xds/parse")
BODY = re.compile(r"\)[\w\s]*\{")  # Where the body of a function begins.
MOST_DRAWS = 20  # The most draws for each wanted mutant, because some mutants do not compile.
QUICK = 3.0  # Tests of fewer seconds run first, because they kill most mutants.
SPARE = 30.0  # Seconds that tests may take beyond ten times what they take without a mutant.


class CannotRun(Exception):
    """The tests do not build, or fail without a mutant."""


def say(text: str) -> None:
    print(f"mutate: {text}", file=sys.stderr, flush=True)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def programs_in(root: Path, folder: str) -> dict[str, list[str]]:
    """The test programs in the folder's CMakeLists.txt, with their sources."""
    found = {}
    for name, body in re.findall(r"signalbox_test\((\w+)([^)]*)\)", read(root / folder / "CMakeLists.txt")):
        found[name] = [f"{folder}/{source}" for source in re.findall(r"\b\w+\.cpp\b", body)]
    return found


def programs_for(root: Path, path: str) -> list[list[str]]:
    """The test programs for a source or a header, in two rounds. The programs that include the
    header come first. The second round has the other unit tests of the layer, the other spec tests,
    and the scenarios and orders (for lb) or some fuzz targets (for xds)."""
    layer = path.split("/")[0]
    programs = {**programs_in(root, f"tests/unit/{layer}"), **programs_in(root, "tests/spec")}
    header = str(Path(path).with_suffix(".hpp"))
    near = [name for name, sources in programs.items()
            if any((root / source).is_file() and f'#include "{header}"' in read(root / source) for source in sources)]
    extra = ["signalbox_scenario_test", "orders_test"] if layer == "lb" else [
        "fuzz_ads", "fuzz_fallback", "fuzz_cluster", "fuzz_response"]
    rest = [name for name in [*programs, *extra] if name not in near]
    return [names for names in (near, rest) if names]


def draw(root: Path, seed: int) -> list[Mutant]:
    """All mutants of the cores' sources and of their headers that have function bodies, shuffled by
    the seed."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "--", *CORES], check=True, capture_output=True, text=True)
    texts = {path: read(root / path) for path in listed.stdout.splitlines() if path.endswith((".cpp", ".hpp"))}
    texts = {path: text for path, text in texts.items() if path.endswith(".cpp") or BODY.search(blanked(text))}
    values = enumerators_of(list(texts.values()))
    mutants = [mutant for path, text in texts.items() for mutant in mutants_of(path, text, values)]
    random.Random(seed).shuffle(mutants)
    return mutants


def again(mutants: list[Mutant], told: str) -> list[Mutant]:
    """The mutants that an earlier output names as survivors. Their lines may stand elsewhere now."""
    def change(text: str) -> str:
        return re.sub(r":\d+: ", ": ", text, count=1)

    survivors = [line.removeprefix("survived: ") for line in told.splitlines() if line.startswith("survived: ")]
    missing = {change(text): text for text in survivors}
    found = [mutant for mutant in mutants if change(str(mutant)) in missing]
    for mutant in found:
        missing.pop(change(str(mutant)), None)
    for text in missing.values():
        say(f"no longer in the sources: {text}")
    if not found:
        raise CannotRun("found no survivor of the earlier output in the sources")
    return found


def end_group(process: subprocess.Popen, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # It may have ended already.
        os.killpg(process.pid, number)
    process.wait()


class Tree:
    """A git worktree of HEAD with its own build, so the checkout is never changed."""

    def __init__(self, checkout: Path) -> None:
        self.path = checkout / "build" / "mutation" / "tree"
        self.build_folder = self.path / "build" / "debug"
        self.log = checkout / "build" / "mutation" / "log"
        self.seconds: dict[str, float] = {}  # How long each test takes without a mutant.
        git = ["git", "-C", str(checkout)]
        head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        if (self.path / ".git").exists():
            # This also undoes the mutation of an interrupted run.
            subprocess.run(["git", "-C", self.path, "checkout", "--quiet", "--force", "--detach", head], check=True)
        else:
            subprocess.run([*git, "worktree", "prune"], check=True)
            subprocess.run([*git, "worktree", "add", "--quiet", "--detach", self.path, head], check=True)

    def succeeds(self, *words: str, seconds: float | None = None) -> bool:
        """Runs a command in the worktree. Its output replaces the log. An interrupt ends all that the
        command has started, and so does the end of the seconds, which counts as a failure."""
        with self.log.open("wb") as log:
            process = subprocess.Popen(words, cwd=self.path, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True)
            try:
                return process.wait(seconds) == 0
            except subprocess.TimeoutExpired:
                end_group(process, signal.SIGKILL)
                return False
            except KeyboardInterrupt:
                end_group(process, signal.SIGTERM)
                raise

    def build(self, names: list[str]) -> bool:
        return self.succeeds("cmake", "--build", str(self.build_folder), "--target", *names)

    def passes(self, names: list[str]) -> bool:
        """Whether all tests pass, the quick ones first."""
        quick = [name for name in names if self.seconds.get(name, 0.0) < QUICK]
        slow = [name for name in names if name not in quick]
        return all(self.passes_at_once(some) for some in (quick, slow) if some)

    def passes_at_once(self, names: list[str]) -> bool:
        """A test that fails is repeated once, because the machine may be at fault. A mutant may never
        end, so the tests' time has a limit as soon as they are measured."""
        limit = SPARE + 10.0 * sum(self.seconds.get(name, 0.0) for name in names) if self.seconds else None
        return self.succeeds("ctest", "--test-dir", str(self.build_folder), "-j2", "--repeat", "until-pass:2",
                             "--stop-on-failure", "--no-tests=error", "-R", f"^({'|'.join(names)})$", seconds=limit)

    def prepare(self, names: list[str]) -> None:
        """Configures the worktree, then builds and runs the tests without a mutant."""
        say(f"building {len(names)} test programs in {self.path}")
        # Without debug information a mutant is linked in a fraction of the time.
        if not self.succeeds("cmake", "--preset", "debug", "-DSIGNALBOX_BUILD_TESTS=ON", "-DSIGNALBOX_JOIN_SOURCES=OFF",
                             "-DCMAKE_CXX_FLAGS_DEBUG=-Og"):
            raise CannotRun(f"the tests do not configure; see {self.log}")
        self.check(names, "")
        self.measure()

    def measure(self) -> None:
        """Reads how long tests took. Each line of ctest's file is a test, how often it has run, and its
        seconds; after "---" are those that failed."""
        costs = read(self.build_folder / "Testing" / "Temporary" / "CTestCostData.txt").partition("---")[0]
        self.seconds = {name: float(seconds) for name, _, seconds in map(str.split, costs.splitlines())}

    def check(self, names: list[str], consequence: str) -> None:
        """Builds and runs the tests, which must pass without a mutant."""
        if not self.build(names):
            raise CannotRun(f"the tests do not build without a mutant{consequence}; see {self.log}")
        if not self.passes(names):
            raise CannotRun(f"the tests fail without a mutant{consequence}; see {self.log}")

    def try_out(self, mutant: Mutant) -> str:
        """Builds and tests a mutant. Returns "killed", "survived", or, if it does not compile, "no
        code"."""
        source = self.path / mutant.path
        text = read(source)
        try:
            source.write_text(apply(mutant, text), encoding="utf-8")
            # The mutated object is built before the test programs, so a mutant that does not
            # compile costs little time. A header has no object of its own.
            if mutant.path.endswith(".cpp") and not self.succeeds("ninja", "-C", str(self.build_folder), f"{source}^"):
                return "no code"
            for names in programs_for(self.path, mutant.path):
                if not self.build(names):
                    return "no code"
                if not self.passes(names):
                    return "killed"
            return "survived"
        finally:
            source.write_text(text, encoding="utf-8")


def judge(killed: int, survivors: list[Mutant], at_least: float) -> tuple[str, int]:
    tried = killed + len(survivors)
    share = 100.0 * killed / tried if tried else 0.0
    lines = [f"survived: {mutant}" for mutant in survivors]
    lines.append(f"{killed} of {tried} mutants were killed: {share:.1f} %, at least {at_least:g} % are wanted")
    return "\n".join(lines), 0 if tried and share >= at_least else 1


def run(options: argparse.Namespace, mutants: list[Mutant], tree: Tree) -> int:
    names = sorted({name for core in CORES for names in programs_for(tree.path, f"{core}/x.cpp") for name in names})
    tree.prepare(names)
    killed, survivors = 0, []
    try:
        for mutant in mutants[:options.count * MOST_DRAWS]:
            if killed + len(survivors) == options.count:
                break
            outcome = tree.try_out(mutant)
            say(f"{outcome}: {mutant}")
            if outcome == "killed":
                killed += 1
            elif outcome == "survived":
                survivors.append(mutant)
        tree.check(names, " after the last mutant, so the kills prove nothing")
    except KeyboardInterrupt:
        text, _ = judge(killed, survivors, options.at_least)
        print(f"{text}, interrupted after {killed + len(survivors)} of {options.count}")
        raise
    text, status = judge(killed, survivors, options.at_least)
    print(text)
    return status


def parse(arguments: list[str]) -> argparse.Namespace:
    def positive(text: str) -> int:
        if not re.fullmatch(r"[1-9][0-9]*", text):
            raise argparse.ArgumentTypeError(f"expected a positive number, got '{text}'")
        return int(text)

    parser = argparse.ArgumentParser(prog="tests/mutation/mutate.py", description="Do the tests of the cores notice a change?")
    parser.add_argument("--count", type=positive, default=30, metavar="N", help="so many mutants that compile; by default 30")
    parser.add_argument("--seed", type=positive, default=1, metavar="S", help="which ones; by default 1")
    parser.add_argument("--at-least", type=float, default=92.0, metavar="PERCENT", help="so many must be killed; by default 92")
    parser.add_argument("--again", type=Path, metavar="FILE", help="only the survivors that FILE names, an earlier output")
    parser.add_argument("--list", action="store_true", help="print the mutants, and build nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        if options.list:
            mutants = draw(ROOT, options.seed)
            print(*mutants[:options.count], sep="\n")
            say(f"{len(mutants):,} mutants in all")
            return 0
        (ROOT / "build" / "mutation").mkdir(parents=True, exist_ok=True)
        told = read(options.again) if options.again else None
        tree = Tree(ROOT)
        mutants = draw(tree.path, options.seed)
        if told is not None:
            mutants = again(mutants, told)
            options.count = len(mutants)
        return run(options, mutants, tree)
    except (CannotRun, OSError, UnicodeError, subprocess.CalledProcessError) as error:
        say(str(error))
        return 2


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        say("interrupted; the tree is as it was")
        sys.exit(130)
