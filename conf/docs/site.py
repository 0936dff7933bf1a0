#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the website of the documents. The website works without a network.

    documents and the files they link to ──────▶ build/docs/pages ─┐
    requirements.txt ─▶ build/docs/venv, by version and hash ──────┴▶ mkdocs --strict ─▶ build/docs/site

conf/virtual_environment.py makes the environment. Exit status: 0 the website is built, 1 a document
is wrong (a broken link, a missing anchor) or a page loads from a network, 2 the packages cannot be
installed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
REQUIREMENTS = HERE / "requirements.txt"
sys.path.append(str(CHECKOUT / "conf"))
import virtual_environment  # noqa: E402  (the line above adds its folder)

FIRST = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")


def links_of(text: str) -> list[str]:
    """The relative links of a page, without their anchors. Code is not searched for links."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]*`", "", text)
    return [link for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text) if "://" not in link]


def pages() -> list[Path]:
    """The pages in FIRST, all pages of docs/, and the files that these pages link to. Links to
    missing files are skipped here, because mkdocs reports them."""
    waiting = [Path(name) for name in FIRST]
    waiting += [path.relative_to(CHECKOUT) for path in sorted((CHECKOUT / "docs").rglob("*.md"))]
    found: dict[Path, None] = {}
    while waiting:
        page = waiting.pop()
        if page in found or not (CHECKOUT / page).is_file():
            continue
        found[page] = None
        if page.suffix != ".md":
            continue
        for link in links_of((CHECKOUT / page).read_text(encoding="utf-8")):
            target = (CHECKOUT / page.parent / link).resolve()
            if target.is_relative_to(CHECKOUT):
                waiting.append(target.relative_to(CHECKOUT))
    return sorted(found)


def lay_out(folder: Path) -> int:
    shutil.rmtree(folder, ignore_errors=True)
    all_pages = pages()
    for page in all_pages:
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(CHECKOUT / page, folder / page)
    shutil.copyfile(HERE / "iframe-worker.js", folder / "iframe-worker.js")
    return len(all_pages)


def loaded_from_a_network(site: Path) -> Iterator[str]:
    """Findings: addresses on other hosts that a browser would load to show a page."""
    loads = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")
    imports = re.compile(r"(?:@import|url\()\s*[\"']?((?:https?:)?//[^\"')]+)")
    for page in sorted(site.rglob("*.html")):
        for address in loads.findall(page.read_text(encoding="utf-8")):
            yield f"{page.relative_to(site)} loads {address}"
    for sheet in sorted(site.rglob("*.css")):
        for address in imports.findall(sheet.read_text(encoding="utf-8")):
            yield f"{sheet.relative_to(site)} loads {address}"


def main() -> int:
    argparse.ArgumentParser(description="Builds the site of the documents into build/docs/site.").parse_args()
    build = CHECKOUT / "build" / "docs"
    build.mkdir(parents=True, exist_ok=True)
    reason = virtual_environment.set_up(build / "venv", REQUIREMENTS)
    if reason is not None:
        print(f"docs: the packages of {REQUIREMENTS.name} cannot be installed: {reason}", file=sys.stderr)
        return 2
    count = lay_out(build / "pages")
    mkdocs = [build / "venv" / "bin" / "python", "-m", "mkdocs", "build", "--strict", "--clean",
              "--config-file", HERE / "mkdocs.yml"]  # With --quiet, --strict would miss warnings.
    if subprocess.run(mkdocs, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode != 0:
        print("docs: the site is not built: mend the documents that are named above", file=sys.stderr)
        return 1
    loads = list(loaded_from_a_network(build / "site"))
    for load in loads:
        print(f"docs: {load}; the site must work without a network", file=sys.stderr)
    if loads:
        return 1
    print(f"docs: {count} files, open {(build / 'site' / 'index.html').relative_to(CHECKOUT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
