# SPDX-License-Identifier: Apache-2.0
"""Helpers of the package tests: they install the build tree, move it, and run programs."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SIGNALBOX_BUILD", CHECKOUT / "build" / "debug")).resolve()
FIRST_PREFIX = Path("/opt/first-prefix")  # No document contains this path.
PATIENCE = 300  # Seconds. Only a broken program takes so long.


def run(*argv: object, cwd: Path | None = None, fails: bool = False, **environment: object) -> str:
    """Runs a program to its end. Returns its output. The program must succeed, or, with `fails`,
    fail."""
    env = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    answer = subprocess.run([str(a) for a in argv], cwd=cwd, env=env, text=True, timeout=PATIENCE, check=False,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if (answer.returncode != 0) != fails:
        raise AssertionError(f"{' '.join(map(str, argv))}: status {answer.returncode}\n{answer.stdout}")
    return answer.stdout


def outside() -> tempfile.TemporaryDirectory:
    """A temporary folder outside of the checkout. A space in its name tests the quoting of
    paths."""
    return tempfile.TemporaryDirectory(prefix="signalbox package ")


def install(folder: Path) -> Path:
    """Installs for a prefix with DESTDIR, then moves the installation. Returns the new prefix. The
    move shows that the package is relocatable."""
    stage = folder / "stage"
    run("cmake", "--install", BUILD, "--prefix", FIRST_PREFIX, DESTDIR=stage)
    if [p.name for p in stage.iterdir()] != ["opt"]:
        raise AssertionError(f"DESTDIR holds more than the prefix: {list(stage.iterdir())}")
    prefix = folder / "moved prefix"
    shutil.move(stage / FIRST_PREFIX.relative_to("/"), prefix)
    shutil.rmtree(stage)
    return prefix
