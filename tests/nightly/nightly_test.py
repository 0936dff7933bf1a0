#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the driver of `./run nightly`: scaling, resume, gates and reports. Its commands here are
one-line shell programs."""

import contextlib
import io
import json
import re
import subprocess
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import churn
import exhaustion
import includes
import nightly
import parts
from parts import FUZZ_TARGETS, PARTS, RESOURCES_A_SECOND, Command, Part
from plan import FULL_HOURS, Result, State, amount_of, count_of, counts, state_as_data, state_from, verdict_of, why_failed
from soak import Soak

ROOT = Path(__file__).resolve().parents[2]
README = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
PLAIN = Command(("true",), worth=1)


def shell(text: str, **how) -> Command:
    return Command(("sh", "-c", text), **how)


def part(name: str, *commands: Command, gate: int = 1, **how) -> Part:
    return Part(name, f"the part {name}", gate, "runs", (lambda _: list(commands)) if commands else None, **how)


# What each program says of the number after an option, or of RC_PARAMS' max_success. Without such an
# option it is a count by `worth`.
SAID = (("--seeds", "{:d} passed, 0 failed"), ("max_success", "OK, passed {:d} tests"), ("--drains", "{:,} drains ("),
        ("--reloads", "{:,} reloads ("), ("--rounds", "{:d} rounds of files"), ("--states", "{:d} states, depth 13"),
        ("--count", "24 of {:d} mutants were killed"), ("--pairs", "bench: record_cpu_1000: pair {0:d} of {0:d}: ratio so far 1"))


# What the plan demands of a whole night, as a program or driver gets it. said_by() repeats numbers, so
# it would also take others.
DEMANDED = {
    "S6": ["asan", "tsan"],
    "S7": ["demo --drill control-plane --kill-seconds 60 --rps 1000 --seed {seed}"],
    "S13": ["drains --drains 1000 --rate 1000 --judge"],
    "S14": ["churn --seconds 1800 --burst-seconds 60 --judge"],
    "S15": ["bench --gate --pairs 10 --seconds 60 overload_goodput"],
    "S16": ["soak --seconds 3600 --rate 1000 --seed {seed} --judge"],
    "S17": ["upgrade --reloads 1000 --drains 100 --sessions"],
    "S18": ["exhaustion --rounds 20"],
    "orders": ["leaves --states 500000", "returns --mailboxes all --states 500000", "calls"],
    "recording": ["bench --gate --pairs 100 record_cpu_1000"],
}


def said_by(words: list[str], environment: dict[str, str]) -> str:
    """What a command prints if all goes well, and fast."""
    if "fuzz" in words:
        share = int(words[2]) * parts.FUZZED_AT_A_TIME / FUZZ_TARGETS
        return f"fuzz: ads: ran for {share:.0f} s\nall  {RESOURCES_A_SECOND * int(words[2]):,}  12"
    if "--kill-seconds" in words:
        return "  killed             60.0 s     60001         0     14431.1 ms     56.5 s"
    if "calls" in words:
        return "851569 states, depth 33, 5 transitions, 1 at rest, complete"
    if "tests/nightly/includes.py" in words:
        return f"{parts.SOURCES + 53} sources compile"
    if "[restarts]" in words:
        number = re.search(r"kRestarts = (\d+)", sources_of(Path(words[0])))[1]
        return "\n".join(f"warning:\n  {number} restarts{how}: 9 unary calls" for how in ("", " with sockets"))
    asked = " ".join([*words, *environment.values()])
    lines = [line.format(int(number)) for option, line in SAID for number in re.findall(rf"{option}[ =](\d+)", asked)]
    if "tests/nightly/churn.py" in words or "tests/nightly/soak.py" in words:
        lines += [f"{int(seconds) // 60} minutes: " for seconds in re.findall(r"--seconds (\d+)", asked)]
    if any(word.startswith("[") for word in words):
        lines.append("All tests passed (9 assertions in 1 test case)")
    return "\n".join(lines)


def percent_killed() -> str:
    return re.search(r"^\| `mutation` .* (\d+) % killed \|", README, re.MULTILINE)[1]


def done_by(one: Part, command: Command) -> float:
    """The number that one run adds to its part's count, by its arguments or by what its sources repeat."""
    words = command.line()
    if one.unit == "minutes":
        pairs = re.search(r"--pairs (\d+)", words)
        return int(pairs[1] if pairs else 1) * int(re.search(r"--seconds (\d+)", words)[1]) / 60
    if one.unit == "flaps":
        # The loops of the cases that flap: `flap < 300`, or a list of what follows each flap.
        source = sources_of(Path(command.words[0]))
        lists = [len(each.split(",")) for each in re.findall(r"next : {(.*?)}", source)]
        [number] = {*map(int, re.findall(r"flap < (\d+)", source)), *lists}
        return number
    return 1


class Told(nightly.Runner):
    """Runs no command: each says what said_by() has."""

    def call(self, part: Part, words: list[str], environment: dict[str, str], patience: float) -> tuple[int, str]:
        if "fuzz" in words:
            # The command also builds the targets.
            assert int(words[2]) + 3600 <= patience, (words, patience)
        return 0, said_by(words, environment)


def tags_of(command: Command) -> list[str]:
    """The tags by which a command chooses test cases, and those that it leaves out."""
    return [tag for word in command.words[1:] for tag in re.findall(r"\[[^\]]+\]", word)]


def sources_of(program: Path) -> str:
    """The text of the sources of a test program, as its CMake list has them."""
    folder = ROOT / Path(*program.parts[2:-1])
    lists = (folder / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(rf"signalbox_test\({program.name}\s[^)]*?SOURCES\s+([^)]*?)\s*(?:LIBS|\))", lists)
    assert found, program
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in found[1].split())


class PlanTest(unittest.TestCase):
    def test_hours_scale_the_counts_and_nothing_becomes_nothing(self) -> None:
        for hours, amount in [(FULL_HOURS, 10_000), (FULL_HOURS / 2, 5_000), (2 * FULL_HOURS, 20_000), (0.0001, 1)]:
            with self.subTest(hours):
                self.assertEqual(amount_of(part("S1", PLAIN, gate=10_000), hours), amount)
        self.assertEqual(amount_of(part("S6", PLAIN), 1), 1)

    def test_a_count_is_read_from_the_output_or_is_the_worth_of_a_run_that_went_well(self) -> None:
        passed = Command(("x",), counted=r"^(\d[\d,]*) passed")
        self.assertEqual(count_of(passed, "one line\n1,234 passed, 0 failed\n", 0), 1234)
        self.assertEqual(count_of(passed, "7 passed\n5 passed\n", 0), 5)
        self.assertEqual(count_of(passed, "nothing", 0), 0)
        self.assertEqual([count_of(replace(PLAIN, worth=4), "", status) for status in (0, 1)], [4, 0])

    def test_what_fails_says_why(self) -> None:
        self.assertEqual(why_failed(PLAIN, "", 0), "")
        self.assertEqual(why_failed(PLAIN, "", 3), "exit status 3")
        self.assertIn("no count", why_failed(replace(PLAIN, counted=r"(\d+) passed"), "", 0))
        whole = replace(PLAIN, says=", complete$")
        self.assertEqual(why_failed(whole, "9 states, complete\n", 0), "")
        self.assertIn("did not say", why_failed(whole, "9 states\n", 0))

    def test_a_gate_is_reached_only_by_its_count_and_in_part_where_the_plan_wants_more(self) -> None:
        result = Result("S", 10, "c", 1, count=10)
        whole = part("S", PLAIN, gate=10)
        self.assertEqual(verdict_of(whole, result), "reached")
        self.assertEqual(verdict_of(replace(whole, beyond="more"), result), "reached in part")
        self.assertEqual(verdict_of(replace(whole, gate=11), result), "short")
        self.assertEqual(verdict_of(whole, replace(result, failures=["x"])), "failed")
        self.assertEqual(verdict_of(whole, None), "not run")
        self.assertEqual(verdict_of(part("S"), None), "not built")

    def test_a_night_is_the_same_after_the_state_file(self) -> None:
        result = Result("S", 1, "c", 2, 3.0, 4.0, ["a"], [nightly.Failure("a", "b", "c")])
        state = State(1.0, 2, "then", {"S": result})
        self.assertEqual(state_from(json.loads(json.dumps(state_as_data(state)))), state)


class PartsTest(unittest.TestCase):
    def test_every_row_of_the_plan_is_there_once(self) -> None:
        names = [one.name for one in PARTS]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual({f"S{number}" for number in range(1, 19)}, set(names))

    def test_full_hours_reach_every_gate_as_it_is_counted(self) -> None:
        with tempfile.TemporaryDirectory(prefix="signalbox night ") as folder:
            for hours, cores in ((FULL_HOURS, 2), (FULL_HOURS, 1), (2 * FULL_HOURS, 1)):
                told = Told(Path(folder), 1, hours)
                for one in PARTS:
                    with self.subTest(one.name, hours=hours, cores=cores), mock.patch("parts.FUZZED_AT_A_TIME", cores), \
                            contextlib.redirect_stderr(io.StringIO()):
                        result = told.run_part(one, amount_of(one, hours), "c")
                        self.assertEqual(result.failures, [])
                        self.assertEqual(verdict_of(one, result), "reached in part" if one.beyond else "reached")

    def test_a_part_does_what_its_row_says(self) -> None:
        """Without these words its commands do less than their counts say."""
        seeded, unmeasured = set(), set()
        for one in PARTS:
            counting = [command for command in one.commands(one.gate) if counts(command)]
            if all("{seed}" in command.line() for command in counting):
                seeded.add(one.name)
            if one.gate > 1 and not all(command.counted for command in counting):
                unmeasured.add(one.name)
        self.assertEqual(seeded, {"S1", "S1-asan", "S2", "S3", "S4", "S5", "S7", "S10", "S16", "stress", "includes", "mutation"})
        self.assertEqual(unmeasured, set(re.findall(r"`(.*?)`", re.search(r"The programs of (.*?)print none", README, re.DOTALL)[1])))
        for name, words in (("S2", "--twice"), ("S10", "--faults"), ("mutation", f"--at-least {percent_killed()}")):
            self.assertIn(words, next(one for one in PARTS if one.name == name).commands(1)[0].line())

    def test_a_part_does_what_the_plan_demands(self) -> None:
        commands = {one.name: one.commands(one.gate) for one in PARTS}
        for name, lines in DEMANDED.items():
            words = [" ".join(command.words[1:]) for command in commands[name]]
            self.assertEqual([re.sub(r"^tests/nightly/(\w+)\.py --build build/release", r"\1", line) for line in words], lines)
        self.assertEqual(commands["orders"][-1].says, ", complete$", "the story that is told to its end")

    def test_drivers_do_what_the_plan_demands(self) -> None:
        churned = churn.options_of(["--build", "release"])
        self.assertEqual((churned.endpoints, churn.TENTH, churned.settle, churn.BURST_UPDATES), (10_000, 10, 5.0, 1_000))
        self.assertEqual((exhaustion.MOST_BYTES, exhaustion.HOUR_NS), (256 << 20, 3_600 * 10**9))
        self.assertEqual(exhaustion.options_of(["--build", "release"]).kinds, ["files", "memory", "disk", "clock", "names"])
        self.assertEqual(sorted(fault.__name__ for fault in Soak.FAULTS), [
            "_drain_backend", "_end_backend", "_kill_backend", "_kill_cluster", "_kill_plane", "_other_cluster",
            "_refused_update", "_stop_backend", "_stop_plane", "_wrong_file"])

    def test_a_run_is_worth_what_it_does(self) -> None:
        for one in PARTS:
            for command in one.commands(one.gate):
                with self.subTest(command.line()):
                    if command.worth is not None:
                        self.assertEqual(command.worth, done_by(one, command))

    def test_a_control_plane_that_is_away_is_away_from_enough_calls(self) -> None:
        command = next(one for one in PARTS if one.name == "S7").commands(1)[0]
        for calls, is_enough in ((57_000, True), (60_001, True), (56_999, False), (9_999, False)):
            line = f"  killed             60.0 s {calls:9}         0     14431.1 ms     56.5 s"
            self.assertEqual(why_failed(command, line, 0) == "", is_enough, calls)

    def test_benchmarks_of_a_night_have_a_bound(self) -> None:
        rows = (ROOT / "tests" / "bench" / "rows.py").read_text(encoding="utf-8")
        measured = {one.name: command.words for one in PARTS for command in one.commands(1) if "bench" in command.words}
        self.assertEqual(set(measured), {"S15", "recording"})
        for words in measured.values():
            self.assertIn("--gate", words)
            self.assertRegex(rows, rf'Row\("{words[-1]}", [^)]*(Target|AtLeast)\(')

    def test_a_short_run_is_not_judged(self) -> None:
        judged = {hours: [one.name for one in PARTS for command in one.commands(amount_of(one, hours))
                          if "--judge" in command.words] for hours in (0.1, 1, FULL_HOURS)}
        self.assertEqual(judged, {0.1: [], 1: ["S13", "S14", "S16"], FULL_HOURS: ["S13", "S14", "S16"]})

    def test_the_title_of_s6_names_all_that_asan_runs(self) -> None:
        labels = re.search(r"labels=\(([a-z0-9 ]+)\)", (ROOT / "run").read_text(encoding="utf-8"))[1].split()
        title = next(one for one in PARTS if one.name == "S6").title.replace(",", "").split()
        self.assertEqual(sorted(labels), sorted(set(labels) & set(title)))

    def test_sources_are_drawn_by_the_seed_and_generated_ones_are_none(self) -> None:
        files = [f"/tree/lb/{number}.cpp" for number in range(9)]
        commands = [{"file": file} for file in [*files, files[0], "/tree/build/debug/a.pb.cc"]]

        def drawn(count: int, seed: int) -> list[str]:
            return includes.chosen(commands, Path("/tree"), count, seed)

        self.assertEqual(sorted(drawn(10, 1)), files)
        self.assertEqual(drawn(3, 1), drawn(3, 1))
        self.assertEqual(len({tuple(drawn(3, seed)) for seed in range(5)}), 5)

    def test_a_source_compiles_if_its_command_says_so(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            done = [includes.compiles({"file": "a.cpp", "directory": "/", "command": command})
                    for command in ("true", "echo an error && false")]
        self.assertEqual(done, [True, False])
        self.assertEqual(said.getvalue(), "a.cpp: compiles\na.cpp: does not compile\nan error\n")

    def test_a_missing_tool_is_no_success(self) -> None:
        tests = [command for one in PARTS for command in one.commands(1) if command.words[:2] == ("./run", "test")]
        self.assertTrue(tests)
        for command in tests:
            self.assertIn(("CI", "true"), command.environment, command.words)

    def test_what_a_part_runs_exists_or_is_built_by_it(self) -> None:
        lists = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("t*/**/CMakeLists.txt"))
        for one in PARTS:
            with self.subTest(one.name):
                built = {target for _, targets in one.builds for target in targets}
                for target in built:
                    self.assertRegex(lists, rf"\b{target}\b")
                for command in one.commands(1):
                    program = command.words[0]
                    if program.startswith("build/"):
                        self.assertTrue(Path(program).name in built or built == {"signalbox_tools"}, program)
                        self.assertTrue((ROOT / Path(*Path(program).parts[2:-1])).is_dir(), program)
                for tag in [tag for command in one.commands(1) for tag in tags_of(command) if tag.startswith("[S")]:
                    self.assertEqual(tag, f"[{one.name}]")

    def test_each_tag_has_a_test_case(self) -> None:
        """Catch2 succeeds, and runs nothing, if no test case has the tag."""
        tagged = [(Path(command.words[0]), tag) for one in PARTS for command in one.commands(1) for tag in tags_of(command)]
        self.assertTrue(tagged)
        for program, tag in tagged:
            with self.subTest(program=program.name, tag=tag):
                self.assertRegex(sources_of(program), rf"TEST_CASE\([^{{]*{re.escape(tag)}")

    def test_programs_under_sanitizers_know_the_suppressions(self) -> None:
        sanitized = [command for one in PARTS for command in one.commands(1) if command.words[0].startswith("build/asan/")]
        self.assertTrue(sanitized)
        for command in sanitized:
            options = dict(command.environment)["UBSAN_OPTIONS"]
            self.assertTrue((ROOT / options.partition("suppressions=")[2]).is_file(), options)

    def test_the_fuzz_targets_share_the_seconds_as_fuzz_py_does(self) -> None:
        text = (ROOT / "tests" / "fuzz" / "fuzz.py").read_text(encoding="utf-8")
        targets = text.partition("TARGETS = {")[2].partition("}")[0].count(":")
        self.assertEqual(FUZZ_TARGETS, targets)
        for user in (text, (Path(__file__).parent / "parts.py").read_text(encoding="utf-8")):
            self.assertIn("AT_A_TIME = min(2, os.cpu_count() or 1)\n", user)

    def test_help_and_readme_name_every_part(self) -> None:
        told = subprocess.run([ROOT / "run", "help", "nightly"], check=True, capture_output=True, text=True).stdout
        for one in PARTS:
            row = re.search(rf"^\| `{one.name}` \|.*\| (once|[\d,]+)[^|]* \| (.*?) ?\|$", README, re.MULTILINE)
            self.assertTrue(row, one.name)
            self.assertEqual(row[1], f"{one.gate:,}" if one.gate > 1 else "once", one.name)
            self.assertEqual(bool(row[2]), bool(one.beyond), f"what the plan wants more of {one.name}")
            self.assertTrue(one.name[1:].isdigit() or one.name in told.replace(",", " ").replace(";", " ").split(), one.name)


class NightTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="signalbox night ")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        git = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "init", "-q"], check=True)
        (self.root / "tracked").write_text("a", encoding="utf-8")
        (self.root / ".gitignore").write_text("/build/\n/runs_*\n", encoding="utf-8")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "one"], check=True)

    def night(self, parts: list[Part], *arguments: str) -> tuple[int, dict]:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
            status = nightly.main(list(arguments), tuple(parts), self.root)
        self.told = told.getvalue()
        return status, json.loads((self.root / "build" / "nightly" / "report.json").read_text(encoding="utf-8"))

    def html(self) -> str:
        return (self.root / "build" / "nightly" / "report.html").read_text(encoding="utf-8")

    def runs(self, name: str) -> int:
        path = self.root / name
        return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0

    def test_a_part_that_fails_is_told_with_the_line_that_repeats_it_and_the_next_one_runs(self) -> None:
        bad = part("bad", shell("echo '<seed {seed}>'; exit 3", worth=1))
        status, data = self.night([bad, part("good", PLAIN)], "--seed", "7")
        self.assertEqual((status, data["failed"]), (1, True))
        first, second = data["parts"]
        self.assertEqual((first["verdict"], second["verdict"]), ("failed", "reached"))
        self.assertEqual(first["failures"], [
            {"command": "sh -c 'echo '\"'\"'<seed 7>'\"'\"'; exit 3'", "why": "exit status 3", "output": "<seed 7>"}])
        self.assertIn("exit status 3", self.html())
        self.assertIn("&lt;seed 7&gt;", self.html())

    def test_each_run_has_the_next_seed_and_some_failures_leave_a_count(self) -> None:
        odd = part("odd", shell("test {seed} != 6", times=4, worth=1), gate=4)
        _, data = self.night([odd], "--seed", "5")
        self.assertEqual((data["parts"][0]["count"], data["parts"][0]["verdict"]), (3, "failed"))
        self.assertEqual(data["parts"][0]["failures"][0]["command"], "sh -c 'test 6 != 6'")

    def test_a_part_ends_after_some_failures(self) -> None:
        self.night([part("a", shell("echo >> runs_a; exit 1", times=30, worth=1))])
        self.assertEqual(self.runs("runs_a"), 10)

    def test_a_printed_line_is_one_to_copy(self) -> None:
        one = part("a", shell('echo "<$TEXT>" {seed}; exit 1', environment=(("TEXT", "of {seed}"),), worth=1, times=2))
        with contextlib.redirect_stdout(io.StringIO()) as listed:
            nightly.main(["--list", "--seed", "7"], (one,), self.root)
        row = self.night([one], "--seed", "7")[1]["parts"][0]
        for line in (listed.getvalue().removeprefix("a "), row["commands"][0], row["failures"][0]["command"]):
            said = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
            self.assertEqual(said.stdout, "<of 7> 7\n", line)

    def test_a_count_that_no_program_prints_is_told_as_such(self) -> None:
        printed = part("printed", shell("echo 1 passed", counted=r"(\d+) passed"))
        with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.redirect_stderr(io.StringIO()):
            nightly.main([], (printed, part("ended", *printed.commands(1), PLAIN)), self.root)
        self.assertEqual([line.endswith("(by exit status)") for line in text.getvalue().splitlines()], [False, True])
        self.assertEqual([text.count("It is not measured") for text in self.html().split("<h2")], [0, 0, 1])

    def test_the_least_of_the_commands_that_count_is_the_parts_count(self) -> None:
        both = part("both", shell("echo 30 passed", counted=r"(\d+) passed"), shell("echo 20 passed", counted=r"(\d+) passed"),
                    shell(":"), gate=20)
        status, data = self.night([both])
        self.assertEqual((status, data["parts"][0]["count"], data["parts"][0]["verdict"]), (0, 20, "reached"))

    def test_a_part_without_a_runner_is_told_by_name_and_is_no_failure(self) -> None:
        status, data = self.night([part("S14"), part("S15", PLAIN, beyond="all of it")])
        self.assertEqual((status, [row["verdict"] for row in data["parts"]]), (0, ["not built", "reached in part"]))
        self.assertIn("not built", self.html())
        self.assertIn("The plan wants more: all of it.", self.html())

    def test_a_program_that_is_missing_and_a_build_that_fails_are_failures(self) -> None:
        _, data = self.night([part("a", Command(("/nowhere/x",), worth=1)), part("b", PLAIN, builds=(("none", ("x",)),))])
        self.assertEqual([row["verdict"] for row in data["parts"]], ["failed", "failed"])
        self.assertEqual(data["parts"][1]["failures"][0]["command"], "cmake --preset none -DSIGNALBOX_BUILD_TESTS=ON")

    def test_resume_runs_only_what_is_not_done_with_the_same_commit_and_counts(self) -> None:
        parts = [part("a", shell("echo >> runs_a", worth=1)), part("b", shell("echo >> runs_b; exit 1", worth=1), gate=8)]
        _, first = self.night(parts, "a")
        status, second = self.night(parts, "--resume")
        self.assertEqual((self.runs("runs_a"), self.runs("runs_b"), status), (1, 1, 1))
        self.assertEqual(first["seed"], second["seed"])
        self.assertEqual(self.night(parts, "--resume")[0], 1, "a failure stays one")
        self.assertEqual((self.runs("runs_a"), self.runs("runs_b")), (1, 1))
        self.night(parts, "--resume", "--hours", "1")
        self.assertEqual((self.runs("runs_a"), self.runs("runs_b")), (1, 2), "b is another amount")
        self.assertIn("1 hours in place of the last night's 8", self.told)
        for runs, name, text in ((2, "tracked", "b"), (3, "new", "b"), (4, "new", "c")):
            (self.root / name).write_text(text, encoding="utf-8")
            self.night(parts, "--resume", "a")
            self.assertEqual(self.runs("runs_a"), runs)
        self.night(parts, "a")
        self.assertEqual(self.runs("runs_a"), 5)
        self.assertIn("of 2 parts, are forgotten", self.told)

    def test_a_part_that_is_run_after_the_night_hides_no_failure(self) -> None:
        parts = [part("a", shell("echo >> runs_a; exit 1", worth=1)), part("b", PLAIN), part("c", PLAIN), part("d", PLAIN)]
        times = iter(f"time {number}" for number in range(9))
        with mock.patch.object(nightly, "now", lambda: next(times)):
            self.night(parts, "a", "b")
            status, data = self.night(parts, "--resume", "c")
            self.assertEqual((status, data["failed"], data["begun"], data["ended"]), (1, True, "time 0", "time 2"))
            self.assertEqual([(row["part"], row["verdict"]) for row in data["parts"]],
                             [("a", "failed"), ("b", "reached"), ("c", "reached")])
            self.assertNotIn("a: it failed", self.told)
            self.assertEqual((self.night(parts, "--resume", "a"), self.runs("runs_a")), ((1, {**data, "ended": "time 3"}), 1))
            self.assertIn("a: it failed, and is not run again", self.told)
            self.assertEqual(self.night(parts, "--resume", "--seed", str(data["seed"] + 1), "c")[0], 0, "a has no such result")

    def test_resume_has_the_hours_and_the_seed_of_the_last_night(self) -> None:
        parts = [part("a", shell("echo >> runs_a", worth=1), gate=80), part("b", PLAIN)]
        _, first = self.night(parts, "--hours", "1", "--seed", "7", "a")
        _, second = self.night(parts, "--resume")
        self.assertEqual([(night["hours"], night["seed"], night["parts"][0]["amount"]) for night in (first, second)],
                         [(1, 7, 10), (1, 7, 10)])
        self.assertEqual(self.runs("runs_a"), 1)
        self.assertNotIn("in place of", self.told)
        _, third = self.night(parts, "--resume", "--seed", "8")
        self.assertEqual((third["seed"], self.runs("runs_a")), (8, 2))
        self.assertIn("seed 8 in place of the last night's 7", self.told)

    def test_the_list_with_resume_has_the_counts_of_the_last_night(self) -> None:
        self.night([part("a", PLAIN, gate=80)], "--hours", "1")
        counted = [replace(part("a", gate=80), commands=lambda amount: [Command(("count", str(amount)))])]
        for arguments, amount in [(("--list",), 80), (("--list", "--resume"), 10), (("--list", "--resume", "--hours", "2"), 20)]:
            with contextlib.redirect_stdout(io.StringIO()) as listed:
                nightly.main(list(arguments), tuple(counted), self.root)
            self.assertIn(f"count {amount}\n", listed.getvalue(), arguments)

    def test_a_state_file_of_another_form_is_no_night(self) -> None:
        self.night([part("a", PLAIN)], "--hours", "1")
        path = self.root / "build" / "nightly" / "state.json"
        whole = path.read_text(encoding="utf-8")
        for text in ('{"a": {"part": "a"}}', whole[:-9], "", "[]", "7", whole.replace('"count"', '"number"'), "\udcff"):
            for arguments in ((), ("--resume",), ("--list",)):
                with self.subTest(text, arguments=arguments):
                    path.write_bytes(text.encode(errors="surrogateescape"))
                    status, data = self.night([part("a", PLAIN)], *arguments)
                    self.assertEqual((status, data["hours"]), (0, FULL_HOURS))
                    self.assertIn("is not the state of a night", self.told)

    def test_an_interrupted_night_leaves_a_report_and_what_was_done(self) -> None:
        def interrupt(_: int) -> list[Command]:
            raise KeyboardInterrupt

        parts = [part("a", PLAIN), Part("b", "it is interrupted", commands=interrupt)]
        with self.assertRaises(KeyboardInterrupt):
            self.night(parts)
        data = json.loads((self.root / "build" / "nightly" / "report.json").read_text(encoding="utf-8"))
        self.assertEqual([row["verdict"] for row in data["parts"]], ["reached", "not run"])
        state = nightly.state_in(self.root / "build" / "nightly" / "state.json")
        self.assertEqual((state.hours, list(state.results)), (FULL_HOURS, ["a"]))

    def test_a_command_that_does_not_end_is_a_failure_and_is_ended(self) -> None:
        runner = nightly.Runner(self.root, 1, 1)
        runner.patience = 0.0
        with mock.patch.object(nightly, "end_group", wraps=nightly.end_group) as ended:
            result = runner.run_part(part("a", shell("sleep 600 & wait", worth=1)), 1, "c")
        self.assertEqual((result.failures[0].why, result.count), ("more than 0 s", 0))
        ended.assert_called_once()

    def test_a_command_that_is_ended_can_end_what_it_has_started_and_nothing_stays(self) -> None:
        ended = self.root / "ended"
        process = subprocess.Popen(["sh", "-c", f"trap 'echo > \"{ended}\"; exit 1' TERM; sleep 600 & echo ready; wait"],
                                   stdout=subprocess.PIPE, start_new_session=True)
        process.stdout.readline()
        nightly.end_group(process)
        self.assertTrue(ended.exists())
        process.communicate(timeout=30)  # The output ends when all processes that write to it have ended.

    def test_wrong_arguments_are_refused(self) -> None:
        for arguments, named in [(("polka",), "'polka'"), (("--hours", "0"), "'0'"), (("--hours", "x"), "'x'"),
                                 (("--seed", "0"), "'0'"), (("--html", "/nowhere/x"), "/nowhere")]:
            with self.subTest(arguments), contextlib.redirect_stderr(io.StringIO()) as told:
                with self.assertRaises(SystemExit) as refused:
                    nightly.main(list(arguments), PARTS, self.root)
                self.assertEqual(refused.exception.code, 2)
                self.assertIn(named, told.getvalue())


if __name__ == "__main__":
    unittest.main()
