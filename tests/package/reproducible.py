#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./run reproducible: builds the last commit twice, in two folders, and compares all bytes.

    git archive HEAD ─▶ build/reproducible/a       ─▶ preset package, cpack ─┐
                     └▶ build/reproducible/b/again ─▶ the same, in another ──┴▶ equal, or the files that differ
                                                      time zone, language, umask

Both builds have the same SOURCE_DATE_EPOCH, and neither uses ccache. They also link libsignalbox.so,
the only optimised and hardened one of the tests, and compare its symbols with the commit's list."""

import argparse
import difflib
import os
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "build/reproducible"
# The folder of each build, and its surroundings.
BUILDS = (("a", {"TZ": "UTC", "LC_ALL": "C"}, 0o022), ("b/again", {"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}, 0o077))
SHARED = "libsignalbox.so.*.*.*"
PRODUCTS = ("**/*.a", "tools/signalbox", SHARED)


def say(text: str) -> None:
    print(f"reproducible: {text}", file=sys.stderr, flush=True)


def git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", ROOT, *words], check=True, stdout=subprocess.PIPE).stdout


def build(folder: Path, commit: str, surroundings: dict[str, str], umask: int, targets: list[str]) -> Path:
    """Builds the commit in the folder. Returns the folder of its products."""
    folder.mkdir(parents=True)
    subprocess.run(["tar", "--extract", "--directory", folder], input=git("archive", commit), check=True)
    environment = {"DEBFULLNAME": "A", "DEBEMAIL": "a@signalbox.org", **os.environ, **surroundings,
                   "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct", commit).decode().strip()}

    def run(*words: str) -> None:
        subprocess.run(words, cwd=folder, env=environment, umask=umask, check=True, stdout=sys.stderr)

    revision = git("rev-parse", "--short", commit).decode().strip()
    run("cmake", "--preset", "package", "-DSIGNALBOX_CCACHE=OFF", f"-DSIGNALBOX_REVISION={revision}")
    run("cmake", "--build", "--preset", "package", "--target", *(targets or ["all", "signalbox_shared"]))
    made = folder / "build/package"
    if not targets:
        run("sh", "-c", f"umask 022 && cd '{made}' && cpack -G DEB -B '{made}'")  # As `./run package` does.
    return made


def products_of(made: Path, targets: list[str]) -> dict[str, Path]:
    patterns = PRODUCTS if targets else ("*.deb", SHARED)
    return {path.relative_to(made).as_posix(): path for pattern in patterns for path in sorted(made.glob(pattern))}


def differing(first: Path, second: Path) -> list[str]:
    """What differs within two packages: the names of files."""
    if first.suffix != ".deb":
        return []
    trees = []
    for package in (first, second):
        tree = package.with_suffix(".tree")
        subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
        trees.append({path.relative_to(tree).as_posix(): path for path in tree.rglob("*")})

    def content(path: Path | None) -> tuple:
        return (None,) if path is None else (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")

    return sorted(name for name in {**trees[0], **trees[1]} if content(trees[0].get(name)) != content(trees[1].get(name)))


def compare(first: dict[str, Path], second: dict[str, Path]) -> int:
    """Prints a line for each product. Returns how many differ."""
    wrong = 0
    for name in sorted({*first, *second}):
        if name not in first or name not in second:
            print(f"only one build made {name}")
            wrong += 1
        elif first[name].read_bytes() == second[name].read_bytes():
            print(f"equal: {name}, {first[name].stat().st_size:,} bytes")
        else:
            print("\n  ".join([f"DIFFERS: {name}", *differing(first[name], second[name])]))
            wrong += 1
    return wrong


def misnamed(folder: Path, library: Path) -> int:
    """Prints where the library's symbols differ from the list of the commit in the folder. Returns
    how many do."""
    shared = folder / "conf/shared"
    said = subprocess.run([sys.executable, "-B", shared / "exports.py", "list", library], check=True, stdout=subprocess.PIPE, text=True)
    listed = (shared / "signalbox.symbols").read_text(encoding="utf-8")
    lines = list(difflib.unified_diff(listed.splitlines(), said.stdout.splitlines(), "signalbox.symbols", library.name, n=0, lineterm=""))
    print("\n  ".join([f"DIFFERS: the symbols of {library.name}", *lines]) if lines else f"equal: the symbols of {library.name}")
    return sum(not line.startswith(("---", "+++", "@@")) for line in lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run reproducible", description="Builds twice and compares all bytes.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="by default the packages")
    targets = parser.parse_args(arguments).targets
    shutil.rmtree(BASE, ignore_errors=True)
    found = []
    commit = git("rev-parse", "HEAD").decode().strip()
    try:
        for folder, surroundings, umask in BUILDS:
            say(f"the build in {folder}")
            found.append(products_of(build(BASE / folder, commit, surroundings, umask, targets), targets))
        wrong = sum(misnamed(BASE / BUILDS[0][0], path) for name, path in found[0].items() if fnmatch(name, SHARED))
    except subprocess.CalledProcessError as error:
        say(f"FAILED: {error}")
        return 1
    if not found[0]:
        say("these targets make no archive and no program")
        return 2
    wrong += compare(*found)
    if wrong == 0:
        shutil.rmtree(BASE)
    else:
        say(f"both builds are in {BASE}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
