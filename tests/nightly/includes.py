#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles sources without precompiled headers, each alone: a source includes what it uses.

    cmake: a build of its own ─▶ compile_commands.json ─▶ seed ─▶ N sources ─▶ their commands
                                                       └▶ ninja: the generated sources and headers

Only the project's own sources count. Ninja would build the libraries of a source's target first, so
the commands run without it. Prints `N sources compile`."""

import argparse
import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Without debug information, because nothing runs what it builds.
SETTINGS = ("-DSIGNALBOX_FAST_BUILD=OFF", "-DSIGNALBOX_BUILD_TESTS=ON", "-DCMAKE_CXX_FLAGS_DEBUG=")


def is_generated(file: str, root: Path) -> bool:
    return Path(file).is_relative_to(root / "build")


def chosen(commands: list[dict[str, str]], root: Path, count: int, seed: int) -> list[str]:
    """`count` sources of those that the commands compile, drawn by the seed; all if there are fewer."""
    own = sorted({entry["file"] for entry in commands if not is_generated(entry["file"], root)})
    random.Random(seed).shuffle(own)
    return own[:count]


def compiles(entry: dict[str, str]) -> bool:
    """Without the object, which nothing needs."""
    answer = subprocess.run(["sh", "-c", f"{entry['command']} -fsyntax-only"], cwd=entry["directory"], text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(f"{entry['file']}: {'compiles' if answer.returncode == 0 else 'does not compile'}\n{answer.stdout}", end="", flush=True)
    return answer.returncode == 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests/nightly/includes.py", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=sys.maxsize, metavar="N", help="so many sources; by default all")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="which ones; by default 1")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "includes", metavar="FOLDER")
    options = parser.parse_args(arguments)
    subprocess.run(["cmake", "--preset", "debug", "-B", options.build, *SETTINGS], cwd=ROOT, check=True)
    commands = json.loads((options.build / "compile_commands.json").read_text(encoding="utf-8"))
    generated = sorted({entry["file"] for entry in commands if is_generated(entry["file"], ROOT)})
    subprocess.run(["ninja", "-C", options.build, *generated], check=True)
    of_source = {entry["file"]: entry for entry in commands}
    sources = chosen(commands, ROOT, options.count, options.seed)
    with ThreadPoolExecutor(os.cpu_count()) as compilers:
        if not all(list(compilers.map(compiles, (of_source[source] for source in sources)))):
            return 1
    print(f"{len(sources)} sources compile")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
