#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a Python virtual environment from a requirements file that pins versions and hashes.

  virtual_environment.py FOLDER REQUIREMENTS

The environment is made once, and again when the requirements change. It is also made again if its
set-up was interrupted. Exit status: 0 the environment exists, 2 it cannot be made.
"""

import subprocess
import sys
from pathlib import Path
from typing import Optional


def is_complete(venv: Path, requirements: Path) -> bool:
    complete = venv / "complete"
    return complete.is_file() and complete.read_text(encoding="utf-8") == requirements.read_text(encoding="utf-8")


def set_up(venv: Path, requirements: Path) -> Optional[str]:
    """Makes the environment if it is not complete. Returns why it failed; None: success."""
    if is_complete(venv, requirements):
        return None
    commands = (
        [sys.executable, "-m", "venv", "--clear", venv],
        [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
         "--only-binary", ":all:", "--require-hashes", "--requirement", requirements],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()[-2000:]}"
    (venv / "complete").write_text(requirements.read_text(encoding="utf-8"), encoding="utf-8")
    return None


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    wrong = set_up(Path(sys.argv[1]), Path(sys.argv[2]))
    if wrong:
        print(f"run: the packages of {sys.argv[2]} cannot be installed: {wrong}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
