#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests ./run: its calls of apt-get, cmake and ctest, and the arguments that it refuses. The tools
are fakes on PATH that record their calls. The checkout is a copy, and its path has a space."""

import os
import shlex
import shutil
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

FAKES = {
    "dpkg-query": 'for name in "$@"; do case "$name" in -*|*" "*) ;; *) [[ " $ABSENT " == *" $name "* ]] '
                  '|| echo "$name installed" ;; esac; done',
    "apt-get": 'note apt-get "$@"; [[ -z "${APT_FAILS:-}" ]]',
    "sudo": '[[ "${1:-}" == -n ]] && shift; [[ -z "${SUDO_FAILS:-}" ]] && exec "$@"',
    "cmake": 'note cmake "$@"; if [[ " $* " == *" --build "* ]]; then exit "${BUILD_STATUS:-0}"; fi',
    "python3": 'note python3 "in $PWD" "$@"; exit "${BENCH_STATUS:-0}"',
    "ctest": 'if [[ "$*" == *--print-labels* ]]; then printf "All Labels:\\n  spec\\n  unit\\n"; exit; fi; '
             'note ctest "$@"; exit "${CTEST_STATUS:-0}"',
}
PROGRAM = ('note "$(basename "$0")" "in $PWD" "$@" '
           '${SIGNALBOX_SOCKET_CONNECTIONS:+"sockets: $SIGNALBOX_SOCKET_CONNECTIONS"}')
PROGRAMS = ["build/release/tools/signalbox", "build/release/tests/sim/signalbox_sim",
            "build/asan/tests/stress/signalbox_stress"]


def script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    note = 'note() { local IFS="|"; printf "%s\\n" "$*" >>"$NOTES"; }'
    path.write_text(f"#!/usr/bin/env bash\n{note}\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


class RunTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="signalbox run ")
        self.addCleanup(folder.cleanup)
        self.here = Path(folder.name).resolve()
        self.checkout = self.here / "check out"
        (self.checkout / "conf").mkdir(parents=True)
        self.release_file = self.here / "os-release"
        self.release_file.write_text('VERSION_ID="12"\n', encoding="utf-8")
        door = (CHECKOUT / "run").read_text(encoding="utf-8")
        self.assertIn("/etc/os-release", door)
        (self.checkout / "run").write_text(door.replace("/etc/os-release", shlex.quote(str(self.release_file))),
                                           encoding="utf-8")
        (self.checkout / "run").chmod(0o755)
        shutil.copy(CHECKOUT / "conf" / "packages.txt", self.checkout / "conf" / "packages.txt")
        for name, body in FAKES.items():
            script(self.here / "bin" / name, body)
        for program in PROGRAMS:
            script(self.checkout / program, PROGRAM)
        self.elsewhere = self.here / "else where"
        self.elsewhere.mkdir()

    def run_it(self, *arguments: str, **environment: str) -> tuple[int, str, list[str]]:
        """Runs ./run. Returns its exit status, its output, and the calls that the fakes
        recorded."""
        notes = self.here / "notes"
        notes.write_text("", encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if name not in ("SIGNALBOX_SKIP_SETUP", "SIGNALBOX_FAST_BUILD")}
        path = f"{self.here / 'bin'}:{os.environ['PATH']}"
        answer = subprocess.run(
            [str(self.checkout / "run"), *arguments],
            env={**kept, "PATH": path, "NOTES": str(notes), "ABSENT": "", **environment},
            cwd=self.elsewhere, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False)
        return answer.returncode, answer.stdout, notes.read_text(encoding="utf-8").splitlines()

    def test_help_is_there_for_every_command(self) -> None:
        for command in ("demo", "test", "sim", "bench", "check", "asan", "tsan", "fuzz", "nightly", "docs", "package",
                        "reproducible"):
            for arguments in ((command, "--help"), (command, "-h"), ("help", command)):
                with self.subTest(arguments):
                    status, said, notes = self.run_it(*arguments)
                    self.assertEqual((status, notes), (0, []))
                    self.assertIn(f"Usage: ./run {command}", said)
                    self.assertIn("Example", said)
        self.assertIn("Usage: ./run COMMAND", self.run_it()[1])

    def test_what_does_not_exist_is_refused(self) -> None:
        for arguments, named in [
            (("dance",), "'dance'"), (("help", "dance"), "'dance'"), (("test", "polka"), "'polka'"),
            (("test", "a b"), "'a b'"), (("sim",), "got ''"), (("sim", "0"), "got '0'"), (("sim", "x"), "got 'x'"),
            (("check", "now"), "got 'now'"), (("check", "--no-tests", "now"), "got 'now'"), (("tsan", "now"), "no arguments"), (("docs", "now"), "no arguments"),
            (("asan", "polka"), "'polka'"),
        ]:
            with self.subTest(arguments):
                status, said, _ = self.run_it(*arguments)
                self.assertEqual(status, 2)
                self.assertIn(named, said)

    def test_the_demo_is_built_and_becomes_the_command_in_the_callers_folder(self) -> None:
        status, _, notes = self.run_it("demo", "--seconds", "30", "--json", "a b.json")
        self.assertEqual(status, 0)
        self.assertEqual(notes, [
            "cmake|--preset|release|-DSIGNALBOX_FAST_BUILD=ON|-DSIGNALBOX_BUILD_TESTS=OFF",
            "cmake|--build|--preset|release|--target|signalbox_tools",
            f"signalbox|in {self.elsewhere}|demo|--seconds|30|--json|a b.json",
        ])

    def test_the_demo_installs_only_what_is_missing_of_the_build_packages(self) -> None:
        status, _, notes = self.run_it("demo", ABSENT="libcaf-dev catch2 mold")
        self.assertEqual(status, 0)
        self.assertEqual(notes[:2], ["apt-get|update",
                                     "apt-get|install|-y|--no-install-recommends|libcaf-dev|mold"])

    def test_the_tests_install_both_sections(self) -> None:
        notes = self.run_it("test", ABSENT="libcaf-dev catch2")[2]
        self.assertEqual(notes[1], "apt-get|install|-y|--no-install-recommends|libcaf-dev|catch2")

    def test_a_refused_installation_prints_the_line_to_run(self) -> None:
        line = "  apt-get update && apt-get install -y --no-install-recommends mold"
        refusals = [{"APT_FAILS": "1"}] + ([{"SUDO_FAILS": "1"}] if os.geteuid() != 0 else [])
        for refusal in refusals:
            with self.subTest(refusal):
                status, said, notes = self.run_it("demo", ABSENT="mold", **refusal)
                self.assertEqual(status, 2)
                self.assertIn(line, said.splitlines())
                self.assertFalse(any(note.startswith("cmake") for note in notes))

    def test_the_documents_need_no_build(self) -> None:
        status, _, notes = self.run_it("docs", ABSENT="libcaf-dev python3-venv")
        self.assertEqual(status, 0)
        self.assertEqual(notes, [
            "apt-get|update", "apt-get|install|-y|--no-install-recommends|python3-venv",
            f"python3|in {self.elsewhere}|-B|{self.checkout}/conf/docs/site.py",
        ])

    def test_set_up_can_be_skipped(self) -> None:
        status, _, notes = self.run_it("demo", ABSENT="mold", SIGNALBOX_SKIP_SETUP="1")
        self.assertEqual((status, notes[0][:5]), (0, "cmake"))

    def test_a_failed_build_ends_it(self) -> None:
        status, _, notes = self.run_it("demo", BUILD_STATUS="1")
        self.assertEqual((status, len(notes)), (1, 2))

    def test_the_tests_are_ctests_and_so_is_their_status(self) -> None:
        for arguments, labels in [((), ""), (("unit",), "|-L|^(unit)$"), (("unit", "spec"), "|-L|^(unit|spec)$")]:
            with self.subTest(arguments):
                status, _, notes = self.run_it("test", *arguments, CTEST_STATUS="8")
                self.assertEqual(status, 8)
                self.assertTrue(notes[-1].startswith(f"ctest|--test-dir|{self.checkout}/build/debug|"), notes)
                self.assertTrue(notes[-1].endswith(f"|-j|{2 * len(os.sched_getaffinity(0)) + 1}{labels}"), notes)

    def test_the_simulator_gets_its_numbers(self) -> None:
        pinned = f"--pinned|{self.checkout}/tests/sim/pinned_seeds.txt"
        for arguments, passed in [(("7",), f"--seeds|7|{pinned}"), (("7", "--seed", "9"), "--seeds|7|--seed|9"),
                                  (("7", "--seed=9", "--trace"), "--seeds|7|--seed=9|--trace")]:
            with self.subTest(arguments):
                status, _, notes = self.run_it("sim", *arguments)
                self.assertEqual(status, 0)
                self.assertEqual(notes[1], "cmake|--build|--preset|release|--target|signalbox_sim")
                self.assertEqual(notes[2], f"signalbox_sim|in {self.elsewhere}|{passed}")

    def test_the_benchmarks_are_built_without_the_tests_and_run_in_the_callers_folder(self) -> None:
        status, _, notes = self.run_it("bench", "--quick", "pick_2", ABSENT="catch2 libbenchmark-dev mold")
        self.assertEqual(status, 0)
        self.assertEqual(notes, [
            "apt-get|update", "apt-get|install|-y|--no-install-recommends|mold",
            f"python3|in {self.elsewhere}|{self.checkout}/tests/bench/bench.py|--only-arguments|--quick|pick_2",
            "cmake|--preset|release|-DSIGNALBOX_FAST_BUILD=ON|-DSIGNALBOX_BUILD_TESTS=OFF|-DSIGNALBOX_BUILD_BENCHMARKS=ON",
            "cmake|--build|--preset|release|--target|signalbox_bench",
            f"python3|in {self.elsewhere}|{self.checkout}/tests/bench/bench.py|--quick|pick_2",
        ])

    def test_a_benchmark_with_wrong_arguments_builds_nothing(self) -> None:
        status, _, notes = self.run_it("bench", "pick_3", BENCH_STATUS="2")
        self.assertEqual((status, len(notes)), (2, 1))

    def test_fuzzing_has_a_compiler_and_a_build_of_its_own(self) -> None:
        status, _, notes = self.run_it("fuzz", "60", "ads", ABSENT="libclang-rt-14-dev")
        self.assertEqual(status, 0)
        self.assertEqual(notes, [
            "apt-get|update", "apt-get|install|-y|--no-install-recommends|libclang-rt-14-dev",
            f"python3|in {self.elsewhere}|{self.checkout}/tests/fuzz/fuzz.py|--only-arguments|60|ads",
            "cmake|--preset|fuzz|-DSIGNALBOX_FAST_BUILD=ON|-DSIGNALBOX_BUILD_TESTS=ON",
            "cmake|--build|--preset|fuzz|--target|signalbox_fuzz",
            f"python3|in {self.elsewhere}|{self.checkout}/tests/fuzz/fuzz.py|60|ads",
        ])
        self.assertEqual(len(self.run_it("fuzz", "x", BENCH_STATUS="2")[2]), 1)
        self.assertNotIn("clang", " ".join(self.run_it("test", ABSENT="clang")[2]))

    def test_a_night_reads_its_arguments_first_before_it_installs(self) -> None:
        status, _, notes = self.run_it("nightly", "--hours", "1", "S1")
        driver = f"python3|in {self.elsewhere}|-B|{self.checkout}/tests/nightly/nightly.py"
        self.assertEqual((status, notes), (0, [f"{driver}|--only-arguments|--hours|1|S1", f"{driver}|--hours|1|S1"]))
        status, _, notes = self.run_it("nightly", "polka", BENCH_STATUS="2", ABSENT="catch2")
        self.assertEqual((status, len(notes)), (2, 1))

    def test_a_package_has_the_name_of_the_release(self) -> None:
        for release, name in [('"12"', "libclang-rt-14-dev"), ('"13"', "libclang-rt-19-dev"),
                              ('"24.04"', "libclang-rt-14-dev")]:
            with self.subTest(release):
                self.release_file.write_text(f"VERSION_ID={release}\n", encoding="utf-8")
                _, _, notes = self.run_it("fuzz", "60", ABSENT="libclang-rt-14-dev libclang-rt-19-dev")
                self.assertEqual(notes[1], f"apt-get|install|-y|--no-install-recommends|{name}")

    def test_check_makes_its_clang_tools_first_and_refuses_without_them(self) -> None:
        subprocess.run(["git", "init", "-q", self.checkout], check=True)
        status, said, notes = self.run_it("check", BENCH_STATUS="2")
        self.assertEqual((status, notes), (2, [
            f"python3|in {self.elsewhere}|-B|{self.checkout}/conf/virtual_environment.py|{self.checkout}/build/clang|"
            f"{self.checkout}/conf/clang/requirements.txt"]))
        self.assertIn("SIGNALBOX_SKIP_SETUP=1 ./run check", said)

    def test_check_builds_what_its_checks_need(self) -> None:
        subprocess.run(["git", "init", "-q", self.checkout], check=True)
        status, said, notes = self.run_it("check")
        self.assertEqual((status, notes[2:4]), (0, [
            "cmake|--preset|debug|-DSIGNALBOX_FAST_BUILD=ON|-DSIGNALBOX_BUILD_TESTS=ON",
            "cmake|--build|--preset|debug|--target|signalbox_headers|signalbox_sample|signalbox_unit_spec"]))
        self.assertIn("all checks passed", said)
        self.assertTrue(any(note.startswith("ctest|") for note in notes), notes)

    def test_check_compiles_changed_headers_alone(self) -> None:
        git = ("git", "-C", self.checkout, "-c", "user.name=a", "-c", "user.email=a@example.net")
        subprocess.run(["git", "init", "-q", self.checkout], check=True)
        (self.checkout / "lb").mkdir()
        for text in ("old", "new"):
            (self.checkout / "lb" / "a.hpp").write_text(text, encoding="utf-8")
            subprocess.run([*git, "add", "lb"], check=True)
            subprocess.run([*git, "commit", "-qm", text], check=True)
        formatter = self.checkout / "build" / "clang" / "bin" / "clang-format"
        formatter.parent.mkdir(parents=True, exist_ok=True)
        formatter.write_text("#!/bin/sh\n", encoding="utf-8")
        formatter.chmod(0o755)
        _, _, notes = self.run_it("check", "--no-tests")
        asked = next(note for note in notes if "/tests/tidy/commands.py|" in note)
        self.assertTrue(asked.endswith(f"|{self.checkout}/build/debug/tests/tidy/headers/lb/a.cpp"), asked)

    def test_check_leaves_tests_out_when_told(self) -> None:
        subprocess.run(["git", "init", "-q", self.checkout], check=True)
        status, said, notes = self.run_it("check", "--no-tests")
        self.assertEqual((status, notes[3]), (0, "cmake|--build|--preset|debug|--target|signalbox_headers|signalbox_sample"))
        self.assertFalse(any(note.startswith("ctest|") for note in notes), notes)
        self.assertIn("all checks passed", said)

    def test_each_configuration_says_whether_headers_are_precompiled(self) -> None:
        for environment, value in [({}, "ON"), ({"SIGNALBOX_FAST_BUILD": ""}, "ON"), ({"SIGNALBOX_FAST_BUILD": "OFF"}, "OFF")]:
            with self.subTest(environment):
                self.assertIn(f"|-DSIGNALBOX_FAST_BUILD={value}|", self.run_it("demo", **environment)[2][0])

    def test_the_sanitizers_have_builds_of_their_own(self) -> None:
        stress = f"signalbox_stress|in {self.elsewhere}|--seconds|30|--slack-seconds|60|sockets: "
        for arguments, stressed in [((), True), (("unit",), False), (("spec", "unit"), False)]:
            with self.subTest(arguments):
                status, _, notes = self.run_it("asan", *arguments)
                self.assertEqual((status, notes[1]), (0, "cmake|--build|--preset|asan"))
                self.assertTrue(notes[2].startswith(f"ctest|--test-dir|{self.checkout}/build/asan|"), notes)
                self.assertEqual(notes[3:], [f"{stress}false", f"{stress}true"] if stressed else [])
        self.assertEqual(len(self.run_it("asan", CTEST_STATUS="8")[2]), 3)
        status, _, notes = self.run_it("tsan", CTEST_STATUS="8")
        self.assertEqual(status, 8)
        self.assertTrue(notes[1].startswith("cmake|--build|--preset|tsan|--target|deliberate_race|"), notes)
        self.assertTrue(notes[2].startswith(f"ctest|--test-dir|{self.checkout}/build/tsan|"), notes)

    def test_a_cache_of_another_place_is_made_anew(self) -> None:
        cache = self.checkout / "build" / "release" / "CMakeCache.txt"
        cache.write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/moved/away\n", encoding="utf-8")
        self.assertIn("--fresh", self.run_it("demo")[2][0])
        cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={self.checkout}\n", encoding="utf-8")
        self.assertNotIn("--fresh", self.run_it("demo")[2][0])


if __name__ == "__main__":
    unittest.main()
