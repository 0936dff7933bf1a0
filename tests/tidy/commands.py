#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command that compiles each source. CMake's compile_commands.json has no row for a source that
is joined with others (decision 156), so a source of a batch gets a row with the batch's command.

  commands.py --database build/debug/compile_commands.json FILE…

prints for each file that the build compiles the Ninja target of its object, or of the object of its
batch, each followed by a NUL."""

import argparse
import json
import os
import re
from pathlib import Path

# The launcher before the compiler: ccache with its settings.
LAUNCHER = re.compile(r"^.*?\bccache ")
BATCH = re.compile(r"/Unity/unity_\d+_cxx\.cxx$")
INCLUDE = re.compile(r'^#include "(.*)"$', re.MULTILINE)
OBJECT = re.compile(r" -o (\S+) ")


def read_commands(database: Path) -> list[dict]:
    """A row for each source: its absolute path (file), its command, the folder in which it runs
    (directory), and the object that Ninja builds (output)."""
    rows = []
    for row in json.loads(database.read_text(encoding="utf-8")):
        command = LAUNCHER.sub("", row["command"])
        file = os.path.normpath(os.path.join(row["directory"], row["file"]))
        sources = [file]
        if BATCH.search(file):
            sources = INCLUDE.findall(Path(file).read_text(encoding="utf-8"))
        for source in sources:
            rows.append({"directory": row["directory"], "file": source, "output": OBJECT.search(command)[1],
                         "command": command.replace(f" -c {row['file']}", f" -c {source}")})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("files", nargs="*", help="absolute paths")
    options = parser.parse_args()
    objects = {row["file"]: row["output"] for row in read_commands(options.database)}
    print("".join(f"{name}\0" for name in dict.fromkeys(objects[file] for file in options.files if file in objects)), end="")


if __name__ == "__main__":
    main()
