# SPDX-License-Identifier: Apache-2.0
"""The processes of a benchmark: real control plane, real backends, a client for each measurement.

    resources (JSON) ─▶ control plane ─▶ xDS ─▶ signalbox_bench_client ─▶ `signalbox backend` × n

The control plane is `signalbox serve` or signalbox_bench_plane (World.serve_in_turn). Servers
listen on free ports. All processes end at the end of the World's `with` block. If the
driver is killed, the kernel ends them (PR_SET_PDEATHSIG)."""

import json
import os
import select
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

START_SECONDS = 30
CLIENT_SECONDS = 180


class MeasurementFailed(Exception):
    """A process did not do what it should, a call failed, or a number is missing or impossible."""


@dataclass(frozen=True)
class Programs:
    signalbox: Path
    client: Path
    peer_shim: Path
    plane: Path
    backend: Path

    @staticmethod
    def of_build(build: Path) -> "Programs":
        bench = build / "tests" / "bench"
        return Programs(build / "tools" / "signalbox", bench / "signalbox_bench_client",
                        bench / "signalbox_peer_pick_shim.so", bench / "signalbox_bench_plane",
                        bench / "signalbox_bench_backend")


class Process:
    """A program that writes lines of JSON. Its stderr is kept, to be shown if the program fails."""

    def __init__(self, argv: list, environment: Optional[dict] = None) -> None:
        self.argv = [str(word) for word in argv]
        self._errors = tempfile.TemporaryFile()
        # setsid() gives the process another process group than the driver's. So Ctrl-C reaches only
        # the driver, which then ends all processes.
        try:
            self.popen = subprocess.Popen(
                self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                env={**os.environ, **(environment or {})}, start_new_session=True)
        except OSError as error:
            raise MeasurementFailed(f"{self.argv[0]}: {error.strerror}") from None

    def read(self, seconds: float) -> dict:
        """The next line of the program's output, decoded."""
        line = self._read_line(time.monotonic() + seconds)
        try:
            return json.loads(line)
        except ValueError:
            raise MeasurementFailed(f"{self._name()} wrote {line!r} {self.errors()}".rstrip()) from None

    def write_line(self) -> None:
        """Writes an empty line to the program's stdin, which tells the program to go on."""
        try:
            self.popen.stdin.write(b"\n")
            self.popen.stdin.flush()
        except OSError:
            raise MeasurementFailed(f"{self._name()} has ended {self.errors()}".rstrip()) from None

    def finish(self, seconds: float) -> None:
        """Waits for the program's end. Exit statuses other than 0 are errors."""
        try:
            status = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise MeasurementFailed(f"{self._name()} does not end") from None
        if status != 0:
            raise MeasurementFailed(self.errors() or f"{self._name()} ended with {status}")

    def kill(self) -> None:
        self.popen.kill()

    def end(self) -> None:
        self.popen.kill()
        self.popen.wait()
        self.popen.stdout.close()
        try:
            self.popen.stdin.close()
        except OSError:  # The process has not read the last line.
            pass
        self._errors.close()

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()

    def _name(self) -> str:
        return " ".join([Path(self.argv[0]).name, *self.argv[1:2]])

    def _read_line(self, deadline: float) -> bytes:
        descriptor, line = self.popen.stdout.fileno(), b""
        os.set_blocking(descriptor, False)
        while not line.endswith(b"\n"):
            if wait_readable([self], deadline) is None:
                raise MeasurementFailed(f"{self._name()} says nothing. {self.errors()}".rstrip())
            # One byte at a time, because bytes after the line belong to the next read.
            byte = os.read(descriptor, 1)
            if not byte:
                break
            line += byte
        return line


def wait_readable(processes: list[Process], deadline: float) -> Optional[Process]:
    """A process that has written output or has ended. None: none did before the deadline."""
    outputs = {process.popen.stdout: process for process in processes}
    ready = select.select(list(outputs), [], [], max(0.0, deadline - time.monotonic()))[0]
    return outputs[ready[0]] if ready else None


class World:
    """A temporary folder, a control plane, backends, and a client for each measurement."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._temporary = tempfile.TemporaryDirectory(prefix="signalbox-bench-")
        self.folder = Path(self._temporary.name)
        self._processes: list[Process] = []
        self._bootstrap = self.folder / "bootstrap.json"
        self._resources = self.folder / "resources.json"

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_) -> None:
        for process in self._processes:
            process.end()
        self._temporary.cleanup()

    def launch_backend(self, listen: str, cluster: str, *more: object) -> Process:
        """Starts a backend without waiting. The backend is ready when it has written a line."""
        return self._start([self._programs.signalbox, "backend", "--listen", listen, "--name", listen, "--cluster",
                            cluster, "--parent", os.getpid(), *more])

    def start_backend(self, listen: str, cluster: str, *more: object) -> tuple[Process, int]:
        """Starts a backend and waits until it is ready. Returns the process and its port."""
        process = self.launch_backend(listen, cluster, *more)
        return process, int(process.read(START_SECONDS)["address"].rpartition(":")[2])

    def start_loaded_backend(self, listen: str, *options: object) -> int:
        """Starts a backend that reports its load, and waits until it is ready. Returns its port."""
        process = self._start([self._programs.backend, "--listen", listen, *options])
        return int(process.read(START_SECONDS)["address"].rpartition(":")[2])

    def serve(self, resources: list[dict]) -> None:
        """Starts the control plane. Clients that start after this call use it."""
        self._resources.write_text(json.dumps({"resources": resources}), encoding="utf-8")
        # Outgoing connections over loopback come from 127.0.0.1. So they cannot take the port of
        # this address while the control plane is away.
        self._address = "127.0.3.1:0"
        self.start_control_plane()
        self._write_bootstrap(self._address)

    def serve_in_turn(self, worlds: list[list[dict]]) -> Process:
        """Starts a control plane that serves the first list of resources. For each line on its
        stdin it sets the next list (after the last, the first), and answers with the instant and
        the number of requests: see plane.cpp."""
        paths = [self.folder / f"world{number}.json" for number in range(len(worlds))]
        for path, resources in zip(paths, worlds):
            path.write_text(json.dumps({"resources": resources}), encoding="utf-8")
        process = self._start([self._programs.plane, *paths])
        self._write_bootstrap(process.read(START_SECONDS)["address"])
        return process

    def _write_bootstrap(self, address: str) -> None:
        self._bootstrap.write_text(json.dumps({
            "xds_servers": [{"server_uri": address, "channel_creds": [{"type": "insecure"}],
                             "server_features": ["xds_v3"]}],
            "node": {"id": "bench"}}), encoding="utf-8")

    def start_control_plane(self) -> None:
        """Starts the control plane: first on a free port, later on the same port again."""
        self._control_plane = self._start([self._programs.signalbox, "serve", "--resources", self._resources,
                                           "--listen", self._address, "--parent", os.getpid()])
        self._address = self._control_plane.read(START_SECONDS)["address"]

    def kill_control_plane(self) -> None:
        self.end(self._control_plane)

    def start_client(self, side: str, measure: str, **options) -> Process:
        argv = [self._programs.client, "--side", side, "--measure", measure]
        for name, value in options.items():
            argv += [f"--{name.replace('_', '-')}", value]
        environment = {"GRPC_XDS_BOOTSTRAP": str(self._bootstrap)}
        if side == "peer" and measure == "pick":
            environment["LD_PRELOAD"] = str(self._programs.peer_shim)
        return self._start(argv, environment)

    def measure(self, side: str, measure: str, **options) -> dict:
        """Runs a client to its end. Returns what the client has measured."""
        client = self.start_client(side, measure, **options)
        try:
            result = client.read(CLIENT_SECONDS)
            client.finish(START_SECONDS)
        finally:
            self.end(client)
        return result

    def end(self, process: Process) -> None:
        process.end()
        self._processes.remove(process)

    def _start(self, argv: list, environment: Optional[dict] = None) -> Process:
        process = Process(argv, environment)
        self._processes.append(process)
        return process
