# SPDX-License-Identifier: Apache-2.0
"""Reads from a program or a shared library how it is hardened."""

import re
from pathlib import Path

from installed import run

# What `-DSIGNALBOX_HARDENING=ON` gives a program, and a shared library.
PROTECTIONS = ("position-independent", "read-only relocations", "bound at start", "stack protector", "checked functions",
               "no executable stack")


def protections_of(binary: Path) -> list[str]:
    said = run("readelf", "--wide", "--file-header", "--segments", "--dynamic", binary)
    called = run("nm", "--dynamic", binary)
    found = {
        "position-independent": bool(re.search(r"Type:\s+DYN", said) and re.search(r"FLAGS_1.*\bPIE\b|\(SONAME\)", said)),
        "read-only relocations": bool(re.search(r"^\s+GNU_RELRO\s", said, re.MULTILINE)),
        "bound at start": bool(re.search(r"\((?:FLAGS_1|FLAGS)\).*\b(?:NOW|BIND_NOW)\b", said)),
        "stack protector": bool(re.search(r"\b__stack_chk_fail\b", called)),
        "checked functions": bool(re.search(r"\b__\w+_chk\b", called.replace("__stack_chk_fail", ""))),
        "no executable stack": bool(re.search(r"^\s+GNU_STACK\s.*\sRW\s", said, re.MULTILINE)),
    }
    return [name for name in PROTECTIONS if found[name]]
