# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share: the built tree, installed and then moved; and programs run to their end."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SIGNALBOX_BUILD", CHECKOUT / "build" / "debug")).resolve()
PATIENCE = 300  # Seconds. Only a broken program takes so long.


def run(*argv: object, cwd: Path | None = None, fails: bool = False, **environment: object) -> str:
    """Everything it printed. It must succeed, or with `fails` must not."""
    env = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    answer = subprocess.run([str(a) for a in argv], cwd=cwd, env=env, text=True, timeout=PATIENCE, check=False,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if (answer.returncode != 0) != fails:
        raise AssertionError(f"{' '.join(map(str, argv))}: status {answer.returncode}\n{answer.stdout}")
    return answer.stdout


def outside() -> tempfile.TemporaryDirectory:
    """A folder that is no part of the checkout; its name holds a space."""
    return tempfile.TemporaryDirectory(prefix="signalbox package ")


def install(folder: Path) -> Path:
    """Installs for one prefix by way of DESTDIR, then moves the whole: the new prefix."""
    stage = folder / "stage"
    run("cmake", "--install", BUILD, "--prefix", "/opt/signalbox", DESTDIR=stage)
    if [p.name for p in stage.iterdir()] != ["opt"]:
        raise AssertionError(f"DESTDIR holds more than the prefix: {list(stage.iterdir())}")
    prefix = folder / "moved prefix"
    shutil.move(stage / "opt" / "signalbox", prefix)
    shutil.rmtree(stage)
    return prefix
