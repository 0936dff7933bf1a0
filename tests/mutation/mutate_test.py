#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the mutations of a small text, the choice of tests, and runs with their verdicts. Nothing
is built."""

import argparse
import contextlib
import io
import os
import signal
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import mutate
from mutants import Mutant, apply, blanked, enumerators_of, mutants_of

TEXT = """#include "a.hpp"
// if (a < b) return;
namespace x {
int f(int a, int b) {
  if (a < b) return 7;
  const auto text = "a == b";
  states.push_back(State::kReady);
  total_ = a + b;
  if (is_open(a) && !done)
    begin();
  SIGNALBOX_INVARIANT(a == b &&
                          is_open(b),
                      "a; b");
  return compute(a,
                 b) ? true : false;
}
}  // namespace x
"""
VALUES = {"State": ["kConnecting", "kIdle", "kReady"]}


# Lines of code, and what becomes of each by the mutations of a kind.
LINES = {
    "relational": {"f(a < b);": ["f(a <= b);"], "f(a <= b);": ["f(a < b);"], "f(a > b);": ["f(a >= b);"], "f(a >= b);": ["f(a > b);"],
                   "f(a == b);": ["f(a != b);"], "f(a != b);": ["f(a == b);"]},
    "logical": {"f(a && b);": ["f(a || b);"], "f(a || b);": ["f(a && b);"]},
    "arithmetic": {"f(a + b);": ["f(a - b);"], "f(a - b);": ["f(a + b);"], "a += b;": ["a -= b;"], "a -= b;": ["a += b;"],
                   "++a;": ["--a;"], "--a;": ["++a;"], "f(a--);": ["f(a++);"]},
    "constant": {"f(true);": ["f(false);"], "f(false);": ["f(true);"], "f(is_true, true_);": []},
    "boundary": {"f(0);": ["f(1);"], "f(1);": ["f(2);", "f(0);"], "f(a1, 2.5, 0x1f);": []},
    "negation": {"if (f(a)) g();": ["if (!(f(a))) g();"], "if (int a = f(); a) g();": []},
    "enum": {"f(State::kIdle);": ["f(State::kReady);"], "f(State::kReady);": ["f(State::kConnecting);"], "f(Other::kOne);": []},
    "early return": {"if (a) return;": [""], "if (a) return b;": [""], "if (a) co_return;": [""], "if (a) co_return b;": [""],
                     "if (a) continue;": [""], "if (a) break;": [""], "continue;": [], "return a;": []},
    "statement": {"f(a);": [""], "a.b->c(d);": [""], "a = b;": [""], "a += b;": [""], "a -= b;": [""], "a |= b;": [""],
                  "int a = b;": []},
}


def lines_of(kind: str, text: str = TEXT) -> list[tuple[int, str]]:
    return [(one.line, one.after.strip()) for one in mutants_of("a.cpp", text, VALUES) if one.kind == kind]


class MenuTest(unittest.TestCase):
    def test_the_menu_on_a_small_text(self) -> None:
        for kind, wanted in [
            ("relational", [(5, "if (a <= b) return 7;")]),
            ("boundary", [(5, "if (a < b) return 8;"), (5, "if (a < b) return 6;")]),
            ("negation", [(5, "if (!(a < b)) return 7;"), (9, "if (!(is_open(a) && !done))")]),
            ("logical", [(9, "if (is_open(a) || !done)")]),
            ("arithmetic", [(8, "total_ = a - b;")]),
            ("enum", [(7, "states.push_back(State::kConnecting);")]),
            ("constant", [(15, "b) ? false : false;"), (15, "b) ? true : true;")]),
            ("early return", [(5, "")]),
            ("statement", [(7, ""), (8, "")]),
        ]:
            with self.subTest(kind):
                self.assertEqual(lines_of(kind), wanted)

    def test_the_menu_line_by_line(self) -> None:
        for kind, lines in LINES.items():
            for line, wanted in lines.items():
                with self.subTest(kind, line=line):
                    self.assertEqual(lines_of(kind, f"  {line}"), [(1, after) for after in wanted])

    def test_comments_strings_invariants_and_what_stands_at_the_margin_are_left_alone(self) -> None:
        self.assertFalse({one.line for one in mutants_of("a.cpp", TEXT, VALUES)} & {1, 2, 3, 4, 6, 11, 12, 13, 14, 16, 17})
        self.assertEqual([len(line) for line in blanked(TEXT).split("\n")], [len(line) for line in TEXT.split("\n")])

    def test_a_mutant_changes_its_line_alone_and_says_how(self) -> None:
        for mutant in mutants_of("a.cpp", TEXT, VALUES):
            changed = apply(mutant, TEXT).split("\n")
            differing = [number for number, pair in enumerate(zip(TEXT.split("\n"), changed), 1) if pair[0] != pair[1]]
            self.assertEqual(differing, [mutant.line])
        self.assertEqual(str(mutants_of("a.cpp", TEXT, VALUES)[0]),
                         "a.cpp:5: relational: if (a < b) return 7;  =>  if (a <= b) return 7;")

    def test_a_source_that_is_another_is_not_changed(self) -> None:
        with self.assertRaises(ValueError):
            apply(Mutant("a.cpp", 5, "relational", "  other", "  x"), TEXT)

    def test_enumerations_are_known_by_what_the_sources_name(self) -> None:
        self.assertEqual(enumerators_of(["A::kTwo; // A::kNone", "A::kOne; B::kX; A::kTwo"]),
                         {"A": ["kOne", "kTwo"], "B": ["kX"]})


class DrawTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.first = mutate.draw(mutate.ROOT, 1)

    def test_a_seed_draws_the_same_mutants_again_and_another_others(self) -> None:
        first = self.first
        self.assertEqual(first[:50], mutate.draw(mutate.ROOT, 1)[:50])
        self.assertNotEqual(first[:50], mutate.draw(mutate.ROOT, 2)[:50])
        self.assertGreater(len(first), 5000)
        cores = {"lb", "xds/client", "xds/depend", "xds/parse"}
        self.assertEqual({core for core in cores for one in first if one.path.startswith(core + "/")}, cores)
        self.assertEqual({one.kind for one in first}, {"relational", "logical", "arithmetic", "constant", "boundary", "enum",
                                                       "negation", "early return", "statement"})

    def test_headers_are_drawn_if_they_have_function_bodies(self) -> None:
        paths = {one.path for one in self.first}
        self.assertLess({"lb/pick/router.hpp", "lb/session/find_cookie.hpp", "lb/shrink.hpp"}, paths)
        self.assertNotIn("lb/policy.hpp", paths)

    def test_survivors_of_an_earlier_output_are_found_where_their_lines_stand(self) -> None:
        one, other = Mutant("a.cpp", 7, "enum", "  a;", "  b;"), Mutant("a.cpp", 8, "enum", "  c;", "  d;")
        told = f"{'survived: ' + str(one).replace(':7:', ':5:')}\nsurvived: gone.cpp:1: enum: x  =>  y\n1 of 3 mutants\n"
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(mutate.again([other, one], told), [one])
            self.assertEqual(said.getvalue(), "mutate: no longer in the sources: gone.cpp:1: enum: x  =>  y\n")
            with self.assertRaisesRegex(mutate.CannotRun, "found no survivor of the earlier output"):
                mutate.again([other], told)

    def test_programs_that_include_the_header_come_first_and_all_of_the_layer_after_them(self) -> None:
        near, rest = mutate.programs_for(mutate.ROOT, "lb/tree/priority.cpp")
        self.assertIn("lb_policy_test", near)
        self.assertLess({"signalbox_scenario_test", "orders_test"}, set(rest))
        self.assertFalse(set(near) & set(rest))
        self.assertEqual(mutate.programs_for(mutate.ROOT, "lb/tree/priority.hpp"), [near, rest])
        near, rest = mutate.programs_for(mutate.ROOT, "xds/client/client_core.cpp")
        self.assertIn("xds_client_test", near)
        self.assertEqual({name for name in rest if name.startswith("fuzz_")},
                         {"fuzz_ads", "fuzz_fallback", "fuzz_cluster", "fuzz_response"})
        self.assertFalse(any(name.startswith("lb_") for name in [*near, *rest]))


class TreeTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="signalbox mutants ")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        git = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "init", "-q"], check=True)
        (self.root / ".gitignore").write_text("/build/\n", encoding="utf-8")
        for name in ("a.cpp", "a.hpp"):
            (self.root / name).write_text(TEXT, encoding="utf-8")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "one"], check=True)
        (self.root / "build" / "mutation").mkdir(parents=True)
        self.mutant = mutants_of("a.cpp", TEXT, VALUES)[0]
        self.seen: list[str] = []

    def tree(self, builds: bool, passes: list[bool]) -> mutate.Tree:
        tree = mutate.Tree(self.root)

        def succeeds(*_: str) -> bool:
            self.seen.append((tree.path / "a.cpp").read_text(encoding="utf-8"))
            return builds

        tree.succeeds, tree.build, tree.passes = succeeds, lambda names: True, lambda names: passes.pop(0)
        tree.measure = lambda: None
        return tree

    def test_a_mutant_stands_in_the_worktree_while_it_is_tried_and_never_in_the_checkout(self) -> None:
        for builds, passes, outcome in [(False, [], "no code"), (True, [False], "killed"), (True, [True, False], "killed"),
                                        (True, [True, True], "survived")]:
            with self.subTest(outcome), mock.patch.object(mutate, "programs_for", lambda *_: [["a"], ["b"]]):
                tree = self.tree(builds, list(passes))
                self.assertEqual(tree.try_out(self.mutant), outcome)
                self.assertEqual(self.seen[-1], apply(self.mutant, TEXT))
                self.assertEqual((tree.path / "a.cpp").read_text(encoding="utf-8"), TEXT)
        status = subprocess.run(["git", "-C", self.root, "status", "--porcelain"], check=True, capture_output=True, text=True)
        self.assertEqual(status.stdout, "")

    def test_a_header_has_no_object_so_its_programs_say_whether_it_compiles(self) -> None:
        mutant = mutants_of("a.hpp", TEXT, VALUES)[0]
        for builds, passes, outcome in [(False, [], "no code"), (True, [False], "killed")]:
            with self.subTest(outcome), mock.patch.object(mutate, "programs_for", lambda *_: [["a"]]):
                tree = self.tree(False, passes)
                tree.build = mock.Mock(return_value=builds)
                self.assertEqual(tree.try_out(mutant), outcome)
                tree.build.assert_called_once_with(["a"])
                self.assertEqual((tree.path / "a.hpp").read_text(encoding="utf-8"), TEXT)

    def test_an_interrupted_mutant_is_taken_back(self) -> None:
        tree = self.tree(True, [])
        tree.succeeds = mock.Mock(side_effect=KeyboardInterrupt)
        with self.assertRaises(KeyboardInterrupt):
            tree.try_out(self.mutant)
        self.assertEqual((tree.path / "a.cpp").read_text(encoding="utf-8"), TEXT)
        (tree.path / "a.cpp").write_text("killed without a chance to tidy up", encoding="utf-8")
        self.assertEqual((mutate.Tree(self.root).path / "a.cpp").read_text(encoding="utf-8"), TEXT)

    def test_an_interrupt_ends_all_that_a_command_started(self) -> None:
        alive = self.root / "alive"  # A FIFO: it ends when all processes that write to it have ended.
        os.mkfifo(alive)
        waits = threading.Event()
        real_wait = subprocess.Popen.wait

        def wait(process: subprocess.Popen, timeout: float | None = None) -> int:
            waits.set()
            return real_wait(process, timeout)

        def interrupt() -> None:
            with alive.open(encoding="utf-8") as processes:
                processes.readline()
                waits.wait(30)
                os.kill(os.getpid(), signal.SIGINT)
                processes.read()

        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        tree = mutate.Tree(self.root)
        with self.assertRaises(KeyboardInterrupt), mock.patch.object(subprocess.Popen, "wait", wait):
            tree.succeeds("sh", "-c", f"exec 3> '{alive}'; sleep 600 & echo it runs >&3; wait")
        thread.join(30)
        self.assertFalse(thread.is_alive(), "what the command started still runs")

    def test_what_has_ended_already_is_ended_without_an_error(self) -> None:
        process = subprocess.Popen(["true"], start_new_session=True)
        process.wait()
        mutate.end_group(process, signal.SIGTERM)
        self.assertEqual(process.returncode, 0)

    def test_tests_that_fail_without_a_mutant_judge_nothing(self) -> None:
        tree = self.tree(True, [False])
        with self.assertRaises(mutate.CannotRun), contextlib.redirect_stderr(io.StringIO()):
            tree.prepare(["a"])

    def run_with(self, passes: list[bool], *outcomes: object) -> int:
        """Runs mutants with these outcomes. Keeps in self.told what is printed."""
        tree = self.tree(True, passes)
        tree.try_out = mock.Mock(side_effect=outcomes)
        options = argparse.Namespace(count=2, at_least=50.0)
        with mock.patch.object(mutate, "programs_for", lambda *_: [["a"]]), \
                contextlib.redirect_stdout(io.StringIO()) as self.told, contextlib.redirect_stderr(io.StringIO()):
            return mutate.run(options, [self.mutant] * 4, tree)

    def test_mutants_that_do_not_compile_are_drawn_again_and_survivors_are_told(self) -> None:
        self.assertEqual(self.run_with([True, True], "no code", "killed", "survived"), 0)
        self.assertEqual(self.told.getvalue(), f"survived: {self.mutant}\n"
                                               "1 of 2 mutants were killed: 50.0 %, at least 50 % are wanted\n")

    def test_tests_that_fail_after_the_last_mutant_judge_nothing(self) -> None:
        with self.assertRaisesRegex(mutate.CannotRun, "fail without a mutant after the last mutant, so the kills prove nothing"):
            self.run_with([True, False], "killed", "killed")
        self.assertEqual(self.told.getvalue(), "")

    def test_an_interrupted_run_tells_its_count(self) -> None:
        with self.assertRaises(KeyboardInterrupt):
            self.run_with([True], "survived", KeyboardInterrupt)
        self.assertEqual(self.told.getvalue(), f"survived: {self.mutant}\n0 of 1 mutants were killed: 0.0 %, "
                                               "at least 50 % are wanted, interrupted after 1 of 2\n")

    def tree_with_tests(self, tests: str) -> mutate.Tree:
        tree = mutate.Tree(self.root)
        tree.build_folder.mkdir(parents=True)
        (tree.build_folder / "CTestTestfile.cmake").write_text(tests, encoding="utf-8")
        return tree

    def test_a_test_that_fails_once_kills_nothing(self) -> None:
        tree = self.tree_with_tests("""
            add_test(flaky sh -c "echo >> flaky; test -e known || { touch known; exit 1; }")
            add_test(broken sh -c "echo >> broken; exit 1")
            add_test(later sh -c "echo >> later")
            set_tests_properties(later PROPERTIES DEPENDS broken)
            """)
        for names, passes, runs in [(["flaky"], True, {"flaky": 2}), (["broken", "later"], False, {"broken": 2, "later": 0}),
                                    (["absent"], False, {})]:
            with self.subTest(names):
                self.assertEqual(tree.passes(names), passes)
                for name, count in runs.items():
                    path = tree.build_folder / name
                    self.assertEqual(len(path.read_text(encoding="utf-8")) if path.exists() else 0, count, name)

    def test_tests_may_take_half_a_minute_more_than_ten_times_what_they_took(self) -> None:
        tree = mutate.Tree(self.root)
        tree.seconds = {"a": 1.0, "b": 2.0}
        tree.succeeds = mock.Mock(return_value=True)
        tree.passes(["a", "b"])
        self.assertEqual(tree.succeeds.call_args.kwargs["seconds"], 60.0)

    def test_quick_tests_come_first_and_a_mutant_that_never_ends_is_killed(self) -> None:
        tree = self.tree_with_tests("""
            add_test(slow sh -c "echo slow >> order; sleep 1")
            add_test(quick sh -c "echo quick >> order")
            add_test(endless sh -c "sleep 600")
            """)
        with mock.patch.object(mutate, "QUICK", 0.5), mock.patch.object(mutate, "SPARE", 5.0):
            self.assertTrue(tree.passes(["slow", "quick"]))
            tree.measure()
            (tree.build_folder / "order").unlink()
            self.assertTrue(tree.passes(["slow", "quick"]))
            self.assertEqual((tree.build_folder / "order").read_text(encoding="utf-8").split(), ["quick", "slow"])
            tree.seconds["endless"] = 0.0
            self.assertFalse(tree.passes(["slow", "endless"]))


class JudgeTest(unittest.TestCase):
    def test_too_many_survivors_or_no_mutants_fail(self) -> None:
        one = Mutant("a.cpp", 1, "enum", "a", "b")
        self.assertEqual([mutate.judge(killed, [one] * alive, 92)[1] for killed, alive in [(23, 2), (22, 3), (0, 0)]], [0, 1, 1])

    def test_a_run_has_30_mutants_of_the_first_seed_and_kills_92_of_100(self) -> None:
        options = mutate.parse([])
        self.assertEqual((options.count, options.seed, options.at_least), (30, 1, 92.0))

    def test_wrong_arguments_are_refused(self) -> None:
        for arguments in (["--count", "0"], ["--seed", "x"], ["polka"]):
            with self.subTest(arguments), contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as refused:
                mutate.parse(arguments)
            self.assertEqual(refused.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
