#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on the named sources, one process for each core. A source that has passed is
skipped until its result could change: until its preprocessed text with comments, its flags, the
checks or the tool differ.

  clang_tidy.py --root CHECKOUT --database build/debug/compile_commands.json [--tool CLANG-TIDY] FILE…
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from commands import read_commands

# Options for GCC's precompiled headers, which clang cannot read.
PCH = re.compile(r' -Winvalid-pch| -include ("[^"]*cmake_pch\.hxx"|\S*cmake_pch\.hxx)')
# clang must not warn of options that only GCC knows.
GCC_ONLY = ("--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unused-command-line-argument")


def commands_of(database: Path, root: Path) -> dict:
    """The compile command of each source, by its path in the checkout."""
    return {os.path.relpath(entry["file"], root): {**entry, "command": PCH.sub("", entry["command"])}
            for entry in read_commands(database)}


def key_of(entry: dict, checks: bytes) -> str:
    """A hash of everything that determines clang-tidy's result for this source. Empty: none."""
    words = shlex.split(entry["command"])
    output = words.index("-o")
    words = [word for word in words[:output] + words[output + 2:] if word not in ("-c", "-MD")]
    if "-MF" in words:
        words = [word for i, word in enumerate(words)
                 if word not in ("-MF", "-MT") and words[i - 1] not in ("-MF", "-MT")]
    text = subprocess.run([*words, "-E", "-C"], cwd=entry["directory"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    if text.returncode != 0:
        return ""  # The source cannot be preprocessed. clang-tidy will print the errors.
    return hashlib.sha256(b"\0".join([checks, shlex.join(words).encode(), text.stdout])).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--tool", default="clang-tidy")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    root = options.root.resolve()
    folder = options.database.resolve().parent / "tidy"
    passed = folder / "passed"
    passed.mkdir(parents=True, exist_ok=True)
    commands = commands_of(options.database, root)
    (folder / "compile_commands.json").write_text(json.dumps(list(commands.values())), encoding="utf-8")
    version = subprocess.run([options.tool, "--version"], stdout=subprocess.PIPE, check=True).stdout
    checks = version + (root / ".clang-tidy").read_bytes()

    def check(name: str) -> str:
        """Runs clang-tidy on one source. Returns 'passed', 'kept' (it passed before), the text of
        clang-tidy's warnings, or '' if the build does not compile the source."""
        if name not in commands:
            return ""
        key = key_of(commands[name], checks)
        if key and (passed / key).exists():
            return "kept"
        answer = subprocess.run(
            [options.tool, "-p", str(folder), "--quiet", *GCC_ONLY, name], cwd=root,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if answer.returncode != 0:
            return answer.stdout or answer.stderr
        if key:
            (passed / key).touch()
        return "passed"

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        answers = list(pool.map(check, options.files))
    failures = [answer for answer in answers if answer not in ("", "kept", "passed")]
    for failure in failures:
        print(failure)
    print(f"clang-tidy: {answers.count('passed')} passed, {answers.count('kept')} as before, "
          f"{answers.count('')} not built, {len(failures)} failed", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
