# SPDX-License-Identifier: Apache-2.0
"""A test without its tool is skipped by name, and fails in CI (CI=true).

    a project with tests/operate, no promtool, no Prometheus, no Go ─▶ ctest ─▶ Skipped, or Failed
    a test that needs Chromium, with an empty PATH ─▶ its exit status

Usage: missing_tools_test.py CMAKE CTEST
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CMAKE, CTEST = "", ""
NEED_TOOLS = ["operate_alerts", "operate_rules", "operate_rules-grpc", "operate_dashboard", "operate_strict_dashboard"]
PROJECT = f"""
cmake_minimum_required(VERSION 3.22)
project(without_tools LANGUAGES NONE)
enable_testing()
add_executable(signalbox IMPORTED GLOBAL)
set_target_properties(signalbox PROPERTIES IMPORTED_LOCATION "{sys.executable}")
set(Python3_EXECUTABLE "{sys.executable}")
add_subdirectory("{TESTS}/operate" operate)
"""


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess:
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run(list(map(str, command)), env={**inherited, **environment}, capture_output=True, text=True)


class CTestWithoutTools(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="signalbox-operate-")))
        (cls.folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
        # Nothing is built, so any program can stand for make.
        made = run(CMAKE, "-S", cls.folder, "-B", cls.folder / "build", "-G", "Unix Makefiles",
                   f"-DCMAKE_MAKE_PROGRAM={sys.executable}", "-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF",
                   "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF")
        assert made.returncode == 0, made.stderr

    def ends(self, **environment: str) -> tuple[int, dict[str, str]]:
        """The exit status of ctest, and how each test ended."""
        ended = run(CTEST, "--test-dir", self.folder / "build", "-R", f"^({'|'.join(NEED_TOOLS)})$", **environment)
        found = re.findall(r"Test +#\d+: (\S+) \.+ *(?:\*\*\*)?(\w+)", ended.stdout)
        return ended.returncode, dict(found)

    def test_are_skipped_by_name(self) -> None:
        self.assertEqual((0, {name: "Skipped" for name in NEED_TOOLS}), self.ends())

    def test_fail_in_ci(self) -> None:
        status, ends = self.ends(CI="true")
        self.assertNotEqual(0, status)
        self.assertEqual({name: "Failed" for name in NEED_TOOLS}, ends)


class TestsInABrowser(unittest.TestCase):
    def test_are_skipped_without_chromium_and_fail_in_ci(self) -> None:
        for name in ("admin_browser_test.py", "load_page_test.py"):
            with self.subTest(name):
                command = (sys.executable, "-B", TESTS / "e2e" / name, "signalbox", "writer")
                self.assertEqual(77, run(*command, PATH="").returncode)
                self.assertEqual(1, run(*command, PATH="", CI="true").returncode)


if __name__ == "__main__":
    CMAKE, CTEST = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
