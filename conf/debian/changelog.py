#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes Debian's changelog from CHANGELOG.md. The changes of [Unreleased] and those of the packaged
version are in one package, so they are one entry. Each other version with a date has its own entry.

    ## [0.1.0] - 2026-11-26          signalbox (0.1.0-0upstream1) unstable; urgency=medium
    ### Added                 ─▶       [ Added ]
    - A [page](docs/x.md).             * A page.

Usage: changelog.py CHANGELOG VERSION REVISION MAINTAINER SECONDS-SINCE-1970"""

import re
import sys
import textwrap
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import NamedTuple

HEADING = re.compile(r"^## \[([^\]]+)\](?: - (.+))?$", re.MULTILINE)


class Version(NamedTuple):
    name: str
    date: datetime | None  # Unset before the release.
    text: str


def versions_of(text: str) -> list[Version]:
    """The versions of CHANGELOG.md, the newest first."""
    found = list(HEADING.finditer(text))
    ends = [heading.start() for heading in found[1:]] + [len(text)]
    versions = []
    for heading, end in zip(found, ends):
        said = re.fullmatch(r"\d{4}-\d\d-\d\d", heading[2] or "")
        date = datetime.strptime(said[0], "%Y-%m-%d").replace(tzinfo=timezone.utc) if said else None
        versions.append(Version(heading[1], date, text[heading.end():end]))
    return versions


def items_of(text: str) -> list[str]:
    """The lines of an entry: headings in brackets, each above its items."""
    lines: list[str] = []
    for block in re.split(r"\n(?=- |### )|\n\n", text):
        flat = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(block.split()))
        if flat.startswith("### "):
            lines += ["", f"  [ {flat[4:]} ]"]
        elif flat.startswith("- "):
            lines += textwrap.wrap(flat[2:], 80, initial_indent="  * ", subsequent_indent="    ",
                                   break_long_words=False, break_on_hyphens=False)
    return lines


def entry(version: str, items: list[str], maintainer: str, date: datetime) -> str:
    body = "\n".join(items).strip("\n")
    return f"signalbox ({version}) unstable; urgency=medium\n\n{body}\n\n -- {maintainer}  {format_datetime(date)}\n"


def changelog(text: str, version: str, revision: str, maintainer: str, built: datetime) -> str:
    versions = versions_of(text)
    newest = [v for v in versions if v.name in ("Unreleased", version)]
    if not any(v.name == version for v in newest):
        raise SystemExit(f"changelog.py: there is no version {version} in the changelog; "
                         f"there are: {', '.join(v.name for v in versions)}")
    entries = [entry(f"{version}-{revision}", [line for v in newest for line in items_of(v.text)], maintainer, built)]
    for old in versions:
        if old not in newest and old.date is not None:
            entries.append(entry(f"{old.name}-{revision}", items_of(old.text), maintainer, old.date))
    return "\n".join(entries)


def main() -> None:
    file, version, revision, maintainer, seconds = sys.argv[1:]
    built = datetime.fromtimestamp(int(seconds), timezone.utc)
    sys.stdout.write(changelog(Path(file).read_text(encoding="utf-8"), version, revision, maintainer, built))


if __name__ == "__main__":
    main()
