#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the driver of `./run nightly`: scaling, resume, gates and reports. Its commands here are
one-line shell programs."""

import contextlib
import io
import json
import subprocess
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import nightly
from parts import FUZZ_TARGETS, FUZZED_AT_A_TIME, PARTS, Command, Part
from plan import FULL_HOURS, Result, amount_of, count_of, result_as_data, result_from, verdict_of, why_failed

ROOT = Path(__file__).resolve().parents[2]
PLAIN = Command(("true",), worth=1)


def shell(text: str, **how) -> Command:
    return Command(("sh", "-c", text), **how)


def part(name: str, *commands: Command, gate: int = 1, **how) -> Part:
    return Part(name, f"the part {name}", gate, "runs", (lambda _: list(commands)) if commands else None, **how)


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

    def test_a_gate_is_reached_only_by_its_count_and_in_part_where_the_plan_wants_more(self) -> None:
        result = Result("S", 10, "c", 1, count=10)
        whole = part("S", PLAIN, gate=10)
        self.assertEqual(verdict_of(whole, result), "reached")
        self.assertEqual(verdict_of(replace(whole, beyond="more"), result), "reached in part")
        self.assertEqual(verdict_of(replace(whole, gate=11), result), "short")
        self.assertEqual(verdict_of(whole, replace(result, failures=["x"])), "failed")
        self.assertEqual(verdict_of(whole, None), "not run")
        self.assertEqual(verdict_of(part("S"), None), "not built")

    def test_a_result_is_the_same_after_the_state_file(self) -> None:
        result = Result("S", 1, "c", 2, 3.0, 4.0, ["a"], [nightly.Failure("a", "b", "c")])
        self.assertEqual(result_from(json.loads(json.dumps(result_as_data(result)))), result)


class PartsTest(unittest.TestCase):
    def test_every_row_of_the_plan_is_there_once(self) -> None:
        names = [one.name for one in PARTS]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual({f"S{number}" for number in range(1, 19)}, set(names))

    def test_full_hours_reach_every_gate_and_each_part_counts(self) -> None:
        for one in PARTS:
            with self.subTest(one.name):
                if one.commands is None:
                    continue
                commands = [command for command in one.commands(amount_of(one, FULL_HOURS)) if nightly.counts(command)]
                self.assertTrue(commands)
                for command in commands:
                    if command.worth is not None:
                        self.assertGreaterEqual(command.worth * command.times, one.gate)

    def test_what_a_part_runs_exists_or_is_built_by_it(self) -> None:
        lists = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("t*/**/CMakeLists.txt"))
        for one in PARTS:
            with self.subTest(one.name):
                built = {target for _, targets in one.builds for target in targets}
                for target in built:
                    self.assertRegex(lists, rf"\b{target}\b")
                for command in one.commands(1) if one.commands else []:
                    program = command.words[0]
                    if program.startswith("build/"):
                        self.assertTrue(Path(program).name in built or built == {"signalbox_tools"}, program)
                        self.assertTrue((ROOT / Path(*Path(program).parts[2:-1])).is_dir(), program)
                for tag in [word for command in (one.commands(1) if one.commands else []) for word in command.words
                            if word.startswith("[S")]:
                    self.assertEqual(tag, f"[{one.name}]")

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
        self.assertIn(f"AT_A_TIME = min({FUZZED_AT_A_TIME},", text)

    def test_help_and_readme_name_every_part(self) -> None:
        told = subprocess.run([ROOT / "run", "help", "nightly"], check=True, capture_output=True, text=True).stdout
        readme = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
        for one in PARTS:
            self.assertIn(f"`{one.name}`", readme)
            self.assertTrue(one.name[1:].isdigit() or one.name in told.replace(",", " ").replace(";", " ").split(), one.name)


class NightTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="signalbox night ")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        git = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "init", "-q"], check=True)
        (self.root / "tracked").write_text("a", encoding="utf-8")
        subprocess.run([*git, "add", "tracked"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "one"], check=True)

    def night(self, parts: list[Part], *arguments: str) -> tuple[int, dict]:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = nightly.main(list(arguments), tuple(parts), self.root)
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
        (self.root / "tracked").write_text("b", encoding="utf-8")
        self.night(parts, "--resume", "a")
        self.assertEqual(self.runs("runs_a"), 2)
        self.night(parts, "a")
        self.assertEqual(self.runs("runs_a"), 3)

    def test_an_interrupted_night_leaves_a_report_and_what_was_done(self) -> None:
        def interrupt(_: int) -> list[Command]:
            raise KeyboardInterrupt

        parts = [part("a", PLAIN), Part("b", "it is interrupted", commands=interrupt)]
        with self.assertRaises(KeyboardInterrupt):
            self.night(parts)
        data = json.loads((self.root / "build" / "nightly" / "report.json").read_text(encoding="utf-8"))
        self.assertEqual([row["verdict"] for row in data["parts"]], ["reached", "not run"])
        self.assertEqual(list(nightly.results_in(self.root / "build" / "nightly" / "state.json")), ["a"])

    def test_a_command_that_does_not_end_is_a_failure_and_is_ended(self) -> None:
        runner = nightly.Runner(self.root, 1, 1)
        runner.patience = 0.0
        result = runner.run_part(part("a", shell("sleep 600 & wait", worth=1)), 1, "c")
        self.assertEqual((result.failures[0].why, result.count), ("more than 0 s", 0))

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
