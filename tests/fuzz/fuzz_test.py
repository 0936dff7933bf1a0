#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the driver of `./run fuzz` with programs that only print what libFuzzer would print."""

import contextlib
import io
import json
import stat
import tempfile
import unittest
from pathlib import Path

import fuzz

QUIET = """#!/bin/sh
printf '%s\\n' "$@" > "$0.arguments"
echo '#7	NEW    cov: 3' >&2
echo 'stat::number_of_executed_units: 1234' >&2
echo 'stat::new_units_added:          5' >&2
"""
BROKEN = """#!/bin/sh
printf '#2\\tINITED\\n#9\\tNEW    cov: 3\\nfuzz: BROKEN: R1\\n' >&2
echo 'artifact_prefix=x; Test unit written to found/cluster-crash-1' >&2
exit 77
"""


class FuzzTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="signalbox fuzz ")
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        (self.build / "tests" / "fuzz").mkdir(parents=True)
        for target in fuzz.TARGETS:
            self.program(target, QUIET)

    def program(self, target: str, body: str) -> Path:
        path = self.build / "tests" / "fuzz" / f"fuzz_{target}"
        path.write_text(body, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def run_it(self, *arguments: str) -> tuple[int, str, str]:
        said, told = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
            status = fuzz.main([*arguments, "--build", str(self.build)])
        return status, said.getvalue(), told.getvalue()

    def arguments_of(self, target: str) -> list[str]:
        path = self.build / "tests" / "fuzz" / f"fuzz_{target}.arguments"
        return path.read_text(encoding="utf-8").splitlines()

    def test_every_target_is_run_and_counted(self) -> None:
        status, said, told = self.run_it("90")
        self.assertEqual(status, 0)
        for target in fuzz.TARGETS:
            self.assertIn(f"fuzz: {target}: ran for 0 s\n", told)
            self.assertRegex(said, rf"(?m)^{target} +1,234 ")
        self.assertRegex(said, rf"(?m)^all +{1234 * len(fuzz.TARGETS):,} ")

    def test_the_seconds_are_shared_by_as_many_as_run_at_a_time(self) -> None:
        self.run_it("90")
        share = round(90 * fuzz.AT_A_TIME / len(fuzz.TARGETS))
        self.assertIn(f"-max_total_time={share}", self.arguments_of("cluster"))
        self.run_it("90", "cluster")
        self.assertIn("-max_total_time=90", self.arguments_of("cluster"))

    def test_hangs_memory_and_leaks_are_findings_and_the_corpus_is_read(self) -> None:
        self.run_it("1", "ads")
        arguments = self.arguments_of("ads")
        for wanted in ("-timeout=1", "-rss_limit_mb=512", "-malloc_limit_mb=64", "-detect_leaks=1", "-max_len=512"):
            self.assertIn(wanted, arguments)
        self.assertEqual(arguments[:2], [str(self.build / "fuzz-corpus" / "ads"), str(fuzz.HERE / "corpus" / "ads")])

    def test_a_finding_is_a_failure_and_is_told_with_the_line_that_shows_it(self) -> None:
        program = self.program("cluster", BROKEN)
        status, said, told = self.run_it("1", "cluster", "listener")
        self.assertEqual(status, 1)
        self.assertIn(f"  {program} -timeout=1 -rss_limit_mb=512 -malloc_limit_mb=64 found/cluster-crash-1\n", said)
        self.assertRegex(said, r"(?m)^cluster +9 +\S+ +1 +1$")
        self.assertIn("fuzz: BROKEN: R1", told)

    def test_a_target_that_fails_without_a_word_is_a_finding(self) -> None:
        self.program("cluster", "#!/bin/sh\nexit 3\n")
        status, said, _ = self.run_it("1", "cluster")
        self.assertEqual(status, 1)
        self.assertIn("exit status 3, no input was kept", said)

    def test_who_ends_it_has_found_nothing(self) -> None:
        self.program("cluster", "#!/bin/sh\necho '#9\tNEW    cov: 3' >&2\nexit 72\n")
        status, said, _ = self.run_it("1", "cluster")
        self.assertEqual(status, 0)
        self.assertRegex(said, r"(?m)^cluster +9 ")

    def test_the_table_can_be_had_as_data(self) -> None:
        path = self.build / "table.json"
        self.run_it("1", "ads", "--json", str(path))
        (row,) = json.loads(path.read_text(encoding="utf-8"))["targets"]
        self.assertEqual((row["target"], row["executions"], row["findings"]), ("ads", 1234, []))

    def test_wrong_arguments_are_refused(self) -> None:
        for arguments, named in [((), "SECONDS"), (("0",), "'0'"), (("x",), "'x'"), (("1", "polka"), "'polka'"),
                                 (("1", "--json", "/nowhere/x"), "/nowhere")]:
            with self.subTest(arguments), contextlib.redirect_stderr(io.StringIO()) as told:
                with self.assertRaises(SystemExit) as refused:
                    fuzz.main(list(arguments))
                self.assertEqual(refused.exception.code, 2)
                self.assertIn(named, told.getvalue())

    def test_every_target_is_built_and_has_a_corpus(self) -> None:
        lists = (fuzz.HERE / "CMakeLists.txt").read_text(encoding="utf-8")
        for target in fuzz.TARGETS:
            self.assertRegex(lists, rf"\b{target}\b")
            self.assertTrue(any((fuzz.HERE / "corpus" / target).iterdir()), target)


if __name__ == "__main__":
    unittest.main()
