#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares signalbox with a real Envoy in the same situations; each run does one part of this.

    set_up                                           makes a virtual environment with Envoy
    health_states, cookies, health_checks, routes    a module for each part: run(programs) ─▶ complaints

Exit status: 0 no complaints, 1 complaints. If Envoy cannot be installed, the test is skipped, and a
line begins with SKIPPED. With CI=true this is a failure."""

import argparse
import importlib
import os
import sys
from pathlib import Path

from envoy_package import envoy_program, set_up
from sides import Programs

PARTS = ("health_states", "cookies", "health_checks", "routes")


def absolute(path: str) -> Path:
    return Path(path).absolute()


def skip(why: str) -> int:
    if os.environ.get("CI") == "true":
        print(f"envoy: {why}")
        return 1
    print(f"SKIPPED: {why}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=("set_up", *PARTS))
    parser.add_argument("--venv", type=absolute, required=True, help="the virtual environment, made where it is missing")
    parser.add_argument("--signalbox", type=absolute, required=True, help="the command")
    parser.add_argument("--our-side", type=absolute, required=True, help="the program signalbox_envoy_side")
    arguments = parser.parse_args()
    if arguments.part == "set_up":
        wrong = set_up(arguments.venv)
        return skip(wrong) if wrong else 0
    envoy = envoy_program(arguments.venv)
    if envoy is None:
        return skip(f"{arguments.venv} has no Envoy (envoy_set_up makes it)")
    complaints = importlib.import_module(arguments.part).run(Programs(envoy, arguments.signalbox, arguments.our_side))
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
