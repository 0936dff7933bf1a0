# SPDX-License-Identifier: Apache-2.0
"""Helpers of the package tests: they install the build tree, move it, and run programs."""

import atexit
import contextlib
import functools
import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator

CHECKOUT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SIGNALBOX_BUILD", CHECKOUT / "build" / "debug")).resolve()
FIRST_PREFIX = Path("/opt/first-prefix")  # No document contains this path.
PATIENCE = 300  # Seconds. Only a broken program takes so long.
GIVEN: set[int] = set()  # The ports that free_ports() has returned.


def run(*argv: object, cwd: Path | None = None, fails: bool = False, **environment: object) -> str:
    """Runs a program to its end. Returns its output. The program must succeed, or, with `fails`,
    fail."""
    env = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    answer = subprocess.run([str(a) for a in argv], cwd=cwd, env=env, text=True, timeout=PATIENCE, check=False,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if (answer.returncode != 0) != fails:
        raise AssertionError(f"{' '.join(map(str, argv))}: status {answer.returncode}\n{answer.stdout}")
    return answer.stdout


def outside() -> tempfile.TemporaryDirectory:
    """A temporary folder outside of the checkout. A space in its name tests the quoting of
    paths."""
    return tempfile.TemporaryDirectory(prefix="signalbox package ")


def install(folder: Path, build: Path = BUILD) -> Path:
    """Installs for a prefix with DESTDIR, then moves the installation. Returns the new prefix. The
    move shows that the package is relocatable."""
    stage = folder / "stage"
    run("cmake", "--install", build, "--prefix", FIRST_PREFIX, DESTDIR=stage)
    if [p.name for p in stage.iterdir()] != ["opt"]:
        raise AssertionError(f"DESTDIR holds more than the prefix: {list(stage.iterdir())}")
    prefix = folder / "moved prefix"
    shutil.move(stage / FIRST_PREFIX.relative_to("/"), prefix)
    shutil.rmtree(stage)
    return prefix


@functools.cache
def installation() -> Path:
    """The prefix of the one installation that all tests of this process share."""
    folder = outside()
    atexit.register(folder.cleanup)
    return install(Path(folder.name))


def world_of(file: Path) -> dict[str, str]:
    """The environment of a client that gets its resources from this file."""
    bootstrap = {"signalbox.resources": str(file), "node": {"id": "consumer"}}
    return {"GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap), "GRPC_XDS_BOOTSTRAP": ""}


def results(printed: str) -> list[str]:
    """A program's output lines without signalbox's notices, which run() mixes with them."""
    return [line for line in printed.splitlines() if not line.startswith("signalbox: notice: ")]


@contextlib.contextmanager
def serving(*argv: object, **environment: str) -> Iterator[subprocess.Popen]:
    """A process that is killed at the end of the `with` block."""
    with subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **environment}) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def serving_world(server: Path, file: Path, world: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The consumers' server, and the resources `world` with its PORT in `file`. Yields the port, and
    the environment of a client."""
    with serving(server) as process:
        port = int(process.stdout.readline())
        file.write_text(world.replace("PORT", str(port)), encoding="utf-8")
        yield port, world_of(file)


def free_ports(count: int) -> list[int]:
    """Free ports outside the range from which the kernel takes a port for port 0 and for outgoing
    connections. Programs that run beside this one take ports only from that range. No port is
    returned twice."""
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split())
    candidates = [port for port in range(10_000, 65_536) if not first <= port <= last]
    free: list[int] = []
    for port in random.sample(candidates, len(candidates)):
        if len(free) == count:
            break
        if port in GIVEN:
            continue
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:  # A program has the port.
            continue
        free.append(port)
    GIVEN.update(free)
    return free
