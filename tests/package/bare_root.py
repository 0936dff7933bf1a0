#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the Debian packages into a bare Debian, and plays the quick start there.

    apt's sources of this machine ─▶ mmdebstrap ─▶ a root folder with the essential packages
    *.deb ─▶ apt-get install in it ─▶ the command, the quick start, protections
          ─▶ the last stage of the Containerfile ─▶ another gRPC: errors

Usage: bare_root.py [--root FOLDER] [PACKAGE...]

PACKAGE: by default those that `./run package` has made in build/package. FOLDER: an empty or a new
folder for the root, which is removed at the end; by default below build/. It needs 2 GB.

The root has the release of this machine, because the packages depend on the series of its
libraries. Needs root, mmdebstrap, and the network that apt uses.

Exit status: 0 the quick start passed, 1 something failed, 2 it cannot be run here."""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from elf import PROTECTIONS, protections_of
from installed import CHECKOUT, free_ports
from readme_test import play, quick_start
from shell import Shell

# The packages of a reader of the quick start. libsignalbox-dev brings the libraries and protoc.
READERS = "g++,cmake,ninja-build,man-db"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# A process in the root, with processes, mounts and a /proc of its own: all end with it.
ENTER = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
         'mount -t proc proc "$0/proc" && exec chroot "$0" sh -c \'cd /trial/work && exec "$@"\' sh "$@"')


def refuse(text: str) -> None:
    print(f"bare_root: {text}", file=sys.stderr)
    sys.exit(2)


def say(text: str) -> None:
    print(f"bare_root: {text}", file=sys.stderr, flush=True)


def check(holds: bool, text: str) -> None:
    if not holds:
        raise AssertionError(text)


def sources() -> str:
    """apt's sources of this machine that are Debian's own."""
    said = subprocess.run(["apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
                           "Created-By: Packages", "Origin: Debian"], check=True, capture_output=True, text=True).stdout
    if not said:
        refuse("apt knows no source of Debian's packages: run apt-get update")
    return said


def release() -> str:
    fields = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines() if "=" in line)
    return fields["VERSION_CODENAME"].strip('"')


def make(root: Path, packages: list[Path]) -> None:
    """The packages are installed by apt-get, as a user does: it finds what they depend on."""
    hooks = [f"copy-in {shlex.join(map(str, packages))} /srv",
             f'chroot "$1" apt-get install --yes --no-install-recommends {" ".join(f"/srv/{p.name}" for p in packages)}']
    subprocess.run(["mmdebstrap", "--mode=root", "--variant=minbase", f"--include={READERS}",
                    '--aptopt=Acquire::Languages "none"', *(f"--customize-hook={hook}" for hook in hooks), release(), root, "-"],
                   input=sources(), text=True, check=True, stdout=sys.stderr)


def inside(root: Path, *words: str) -> subprocess.CompletedProcess:
    (root / "trial/work").mkdir(parents=True, exist_ok=True)
    return subprocess.run([*ENTER, root, *words], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={"PATH": PATH, "LC_ALL": "C.UTF-8"})


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage of the Containerfile: "RUN" and its text."""
    text = (CHECKOUT / "conf/container/Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
    found: list[list[tuple[str, str]]] = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            word, said = line.split(" ", 1)
            if word == "FROM":
                found.append([])
            found[-1].append((word, said))
    return found


def the_command(root: Path) -> None:
    said = inside(root, "signalbox", "version")
    check(said.returncode == 0 and said.stdout.startswith("signalbox "), f"signalbox version: {said}")
    said = inside(root, "man", "signalbox-explain")
    check(said.returncode == 0 and "signalbox-explain" in said.stdout, f"man signalbox-explain: {said}")


def the_quick_start(root: Path) -> None:
    with Shell(root / "trial", enter=(*ENTER, root), seen_as=Path("/trial"), PATH=PATH, HOME="/root") as shell:
        play(quick_start(free_ports(2)), shell)


def protections(root: Path) -> None:
    found = protections_of(root / "usr/bin/signalbox")
    check(found == list(PROTECTIONS), f"the command has only: {', '.join(found)}")


def the_container(root: Path) -> None:
    """Runs the commands of the Containerfile's last stage, then its entry point as its user."""
    last = dict(stages()[-1])
    said = inside(root, "sh", "-c", f"dpkg --remove signalbox-tools && {last['RUN']}")
    check(said.returncode == 0, f"the Containerfile's last RUN: {said}")
    said = inside(root, "runuser", "-u", last["USER"], "--", *json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"]))
    check(said.returncode == 0 and "Usage:" in said.stdout, f"the container's entry point: {said}")


def another_grpc(root: Path) -> None:
    """apt and the loader refuse a machine with another series of gRPC."""
    made = root / "trial/grpc"
    (made / "DEBIAN").mkdir(parents=True)
    architecture = inside(root, "dpkg", "--print-architecture").stdout.strip()
    (made / "DEBIAN/control").write_text(f"Package: libgrpc++-dev\nVersion: 1.62.0-1\nArchitecture: {architecture}\n"
                                         "Maintainer: a <a@b>\nDescription: another gRPC\n", encoding="utf-8")
    said = inside(root, "sh", "-c", "dpkg --remove libsignalbox-dev && dpkg-deb --build /trial/grpc /trial/grpc.deb && "
                  "dpkg --install /trial/grpc.deb && apt-get install --simulate /srv/libsignalbox-dev_*.deb")
    check(said.returncode == 100 and "libsignalbox-dev : Depends: libgrpc++-dev (< 1.52~)" in said.stdout, str(said))
    said = inside(root, "sh", "-c", "dpkg --force-depends --remove 'libgrpc++1.51' && signalbox version")
    check(said.returncode == 127 and "libgrpc++.so.1.51: cannot open shared object file" in said.stderr, str(said))


STEPS = (the_command, the_quick_start, protections, the_container, another_grpc)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bare_root.py", description="Installs the packages into a bare Debian.")
    parser.add_argument("packages", nargs="*", type=Path, metavar="PACKAGE")
    parser.add_argument("--root", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    options.packages = [package.resolve() for package in options.packages or (CHECKOUT / "build/package").glob("*.deb")]
    if os.geteuid() != 0:
        refuse("a root folder with devices needs root")
    if shutil.which("mmdebstrap") is None:
        refuse("there is no mmdebstrap: install it")
    if len(options.packages) != 2 or not all(package.is_file() for package in options.packages):
        refuse("there are not two packages: run ./run package")
    if options.root is not None and options.root.exists() and any(options.root.iterdir()):
        refuse(f"{options.root} is not empty")
    return options


def main() -> None:
    options = arguments()
    root = options.root or Path(tempfile.mkdtemp(prefix="bare_root.", dir=CHECKOUT / "build"))
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)
    failed = 0
    try:
        say("a bare root, and the packages in it")
        make(root.resolve(), options.packages)
        for step in STEPS:
            say(step.__name__.replace("_", " "))
            try:
                step(root.resolve())
            except AssertionError as error:
                failed += 1
                say(f"FAILED: {error}")
    except subprocess.CalledProcessError as error:
        failed += 1
        say(f"FAILED: {error}")
    finally:
        shutil.rmtree(root)
    print(f"{len(STEPS)} steps in a bare {release()}, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
