#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles sources without precompiled headers, each alone: a source includes what it uses.

    cmake: a build of its own ─▶ compile_commands.json ─▶ seed ─▶ N sources ─▶ ninja

Only the project's own sources count; ninja makes the generated ones that these need. Prints `N sources
compile`."""

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Without debug information, because nothing runs what it builds.
SETTINGS = ("-DSIGNALBOX_FAST_BUILD=OFF", "-DSIGNALBOX_BUILD_TESTS=ON", "-DCMAKE_CXX_FLAGS_DEBUG=")


def chosen(commands: list[dict[str, str]], root: Path, count: int, seed: int) -> list[str]:
    """`count` sources of those that the commands compile, drawn by the seed; all if there are fewer.
    What stands below build/ is generated."""
    own = sorted({entry["file"] for entry in commands if not Path(entry["file"]).is_relative_to(root / "build")})
    random.Random(seed).shuffle(own)
    return own[:count]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests/nightly/includes.py", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=sys.maxsize, metavar="N", help="so many sources; by default all")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="which ones; by default 1")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "includes", metavar="FOLDER")
    options = parser.parse_args(arguments)
    subprocess.run(["cmake", "--preset", "debug", "-B", options.build, *SETTINGS], cwd=ROOT, check=True)
    commands = json.loads((options.build / "compile_commands.json").read_text(encoding="utf-8"))
    sources = chosen(commands, ROOT, options.count, options.seed)
    # "^" means what is made of the source.
    if subprocess.run(["ninja", "-C", options.build, "-k", "0", *(f"{source}^" for source in sources)], check=False).returncode != 0:
        return 1
    print(f"{len(sources)} sources compile")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
