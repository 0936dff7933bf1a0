# SPDX-License-Identifier: Apache-2.0
"""The processes of S13, S14 and S16 to S18: real control planes, backends and clients.

    resources ─▶ `signalbox serve` ─▶ xDS ─▶ signalbox_nightly_client ─▶ `signalbox backend` × n
                                               ▲ faults: shim.cpp, prlimit, signals

All processes end with the World's `with` block. If the driver is killed, the kernel ends them
(PR_SET_PDEATHSIG)."""

import argparse
import contextlib
import http.client
import json
import mmap
import os
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Callable, Iterator, NamedTuple, Optional

PATIENCE = 120.0  # The longest wait for a condition, in seconds: far more than any machine needs.
ANSWER_SECONDS = 60.0
STILL_SERVED = "the last good one is still served"  # `signalbox serve`, of a wrong file.
WARM_UP = 0.25  # The part of the time that does not count for memory.
LEAST_OF_RATE = 0.95  # The part of the calls that a client must have sent.
LOOK_EVERY = 0.02  # The interval of looks at a condition, in seconds.
SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
ROUTER = {"name": "router",
          "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}
MANAGER = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


class Failed(Exception):
    """A gate is not met, or a process did not do what it should."""


def check(holds: bool, why: str) -> None:
    if not holds:
        raise Failed(why)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def eventually(holds: Callable[[], bool], why: str, seconds: float = PATIENCE) -> None:
    """Looks until `holds()`. The limit is generous, because only broken code should reach it."""
    deadline = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < deadline, f"not within {seconds:.0f} s: {why}")
        time.sleep(LOOK_EVERY)


class Programs(NamedTuple):
    signalbox: Path
    client: Path
    plane: Path
    shim: Path

    @staticmethod
    def of_build(build: Path) -> "Programs":
        nightly = build / "tests" / "nightly"
        return Programs(build / "tools" / "signalbox", nightly / "signalbox_nightly_client",
                        nightly / "signalbox_nightly_plane", nightly / "signalbox_nightly_shim.so")


class Process:
    """A program that writes lines of JSON to stdout, and reads lines from stdin."""

    def __init__(self, argv: list, errors: Path, environment: Optional[dict[str, str]] = None,
                 stderr: Optional[str] = None, limits: Optional[dict[int, int]] = None) -> None:
        """`stderr`: the file of stderr; by default `errors`. `limits`: limits of setrlimit."""
        self.argv = [str(word) for word in argv]
        self.name = " ".join([Path(self.argv[0]).name, *self.argv[1:2]])
        self._errors = errors

        def set_limits() -> None:
            for which, number in (limits or {}).items():
                resource.setrlimit(which, (number, resource.getrlimit(which)[1]))

        with open(stderr or errors, "wb") as file:
            # The process has a process group of its own, so Ctrl-C reaches only the driver.
            try:
                self.popen = subprocess.Popen(
                    self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file,
                    env={**os.environ, **(environment or {})}, start_new_session=True,
                    preexec_fn=set_limits if limits else None)
            except OSError as error:
                raise Failed(f"{self.argv[0]}: {error.strerror}; has the target signalbox_nightly been built?") from None
        self.pid = self.popen.pid
        self._text = b""

    def read(self, seconds: float = ANSWER_SECONDS) -> dict:
        """The next line, decoded."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._text:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Failed(f"{self.name} says nothing for {seconds:.0f} s. {self.errors()}")
            if select.select([self.popen.stdout], [], [], left)[0]:
                some = os.read(self.popen.stdout.fileno(), 1 << 16)
                if not some:
                    raise Failed(f"{self.name} has ended{self._how_ended()}. {self.errors()}")
                self._text += some
        line, _, self._text = self._text.partition(b"\n")
        answer = json.loads(line)
        check("error" not in answer, f"{self.name}: {answer.get('error')}")
        return answer

    def write(self, line: str) -> None:
        try:
            self.popen.stdin.write(line.encode() + b"\n")
            self.popen.stdin.flush()
        except OSError:
            raise Failed(f"{self.name} has ended{self._how_ended()}. {self.errors()}") from None

    def ask(self, line: str, seconds: float = ANSWER_SECONDS) -> dict:
        self.write(line)
        return self.read(seconds)

    def is_alive(self) -> bool:
        return self.popen.poll() is None

    def terminate(self) -> int:
        """SIGTERM. Returns the exit status."""
        self.popen.send_signal(signal.SIGTERM)
        try:
            return self.popen.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} does not end after SIGTERM") from None

    def end(self) -> None:
        self.popen.kill()
        self.popen.wait()
        self.popen.stdout.close()
        with contextlib.suppress(OSError):
            self.popen.stdin.close()

    def errors(self) -> str:
        """The end of the process's stderr."""
        return self._errors.read_text(encoding="utf-8", errors="replace")[-2000:].strip() if self._errors.exists() else ""

    def all_errors(self) -> str:
        return self._errors.read_text(encoding="utf-8", errors="replace")

    def _how_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.popen.wait(5)
            return f" by signal {signal.Signals(-status).name}" if status < 0 else f" with status {status}"
        return ""


class Client(Process):
    """signalbox_nightly_client: its calls, and its admin pages."""

    def begin(self) -> "Client":
        self.admin = self.read()["admin"]
        self.begun = time.monotonic()
        return self

    def counts(self) -> dict:
        return self.ask("counts")

    def page(self, path: str) -> tuple[int, str]:
        host, _, port = self.admin.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=ANSWER_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def is_ready(self) -> bool:
        return self.page("/ready")[0] == 200

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the metric's series that have these labels."""
        return total(self.page("/metrics")[1], name, **labels)

    def has_answers(self, more: int, of: str = "") -> Callable[[], bool]:
        """Whether so many more calls have been answered since now, by a backend of this name."""
        def answered() -> int:
            counts = self.counts()
            return counts["backends"].get(of, 0) if of else counts["ok"]

        wanted = answered() + more
        return lambda: answered() >= wanted

    def finish(self) -> dict:
        """SIGTERM. Returns the last counts."""
        self.popen.send_signal(signal.SIGTERM)
        counts = self.read()
        try:
            status = self.popen.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} does not end after its last call") from None
        check(status == 0, f"{self.name} ended with {status}. {self.errors()}")
        return counts


def total(page: str, name: str, **labels: str) -> float:
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(float(value) for metric, found, value in SAMPLE.findall(page)
               if metric == name and all(one in found for one in wanted))


def none_lost(counts: dict, what: str) -> None:
    check(counts["lost"] == 0, f"{what}: {counts['lost']} calls of {counts['sent']} were lost: {counts['failed']}")
    check(counts["left_out"] == 0, f"{what}: {counts['left_out']} calls were not sent, because too many were in flight")


def rate_held(counts: dict, rate: int, seconds: float) -> None:
    check(counts["sent"] >= LEAST_OF_RATE * rate * seconds,
          f"{counts['sent']:,} calls in {seconds:.1f} s are too few for {rate:,} a second")


class Faults:
    """The file through which the driver gives orders to shim.cpp, which has the same fields."""

    FIELDS = ("clock_offset_ns", "most_bytes", "live_bytes", "refused", "lookups")
    ADDRESS_BYTES = 64

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(8 * len(self.FIELDS) + self.ADDRESS_BYTES))
        self._file = path.open("r+b")
        self._map = mmap.mmap(self._file.fileno(), 0)

    def get(self, field: str) -> int:
        return struct.unpack_from("<q", self._map, 8 * self.FIELDS.index(field))[0]

    def set(self, field: str, number: int) -> None:
        struct.pack_into("<q", self._map, 8 * self.FIELDS.index(field), number)

    def set_address(self, text: str) -> None:
        self._map[8 * len(self.FIELDS):] = text.encode().ljust(self.ADDRESS_BYTES, b"\0")

    def close(self) -> None:
        self._map.close()
        self._file.close()


class World:
    """A temporary folder, and the processes that were started in it."""

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self._folder = tempfile.TemporaryDirectory(prefix="signalbox-nightly-")
        self.folder = Path(self._folder.name)
        self._processes: list[Process] = []
        self._faults: list[Faults] = []
        self._number = 0

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_) -> None:
        for process in self._processes:
            process.end()
        for faults in self._faults:
            faults.close()
        self._folder.cleanup()

    def new_path(self, name: str) -> Path:
        self._number += 1
        return self.folder / f"{self._number}-{name}"

    def start(self, argv: list, kind: type = Process, **more) -> Process:
        process = kind(argv, self.new_path("stderr"), **more)
        self._processes.append(process)
        return process

    def end(self, process: Process) -> None:
        process.end()
        self._processes.remove(process)

    def backend(self, name: str, listen: str = "127.0.0.1:0", cluster: str = "orders") -> tuple[Process, str]:
        """Starts a backend. Returns it and its address."""
        process = self.start([self.programs.signalbox, "backend", "--listen", listen, "--name", name, "--cluster",
                              cluster, "--parent", os.getpid(), "--at-once", 10_000])
        return process, process.read()["address"]

    def serve(self, resources: Path, listen: str = "127.0.0.1:0") -> tuple[Process, str]:
        """Starts a control plane. Returns it and its address."""
        process = self.start([self.programs.signalbox, "serve", "--resources", resources, "--listen", listen, "--parent",
                              os.getpid()])
        return process, process.read()["address"]

    def bootstrap(self, server: str = "", resources: Optional[Path] = None) -> Path:
        """A bootstrap that names a control plane, or a file of resources."""
        path = self.new_path("bootstrap.json")
        source = {"signalbox.resources": str(resources)} if resources else {
            "xds_servers": [{"server_uri": server, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}]}
        path.write_text(json.dumps({**source, "node": {"id": "nightly"}}), encoding="utf-8")
        return path

    def faults(self) -> Faults:
        faults = Faults(self.new_path("faults"))
        self._faults.append(faults)
        return faults

    def client(self, bootstrap: Path, *more, targets: tuple[str, ...] = ("xds:///orders",), faults: Optional[Faults] = None,
               **how) -> Client:
        environment = {"LD_PRELOAD": str(self.programs.shim), "SIGNALBOX_NIGHTLY_FAULTS": str(faults.path)} if faults else {}
        named = [word for target in targets for word in ("--target", target)]
        client = self.start([self.programs.client, "--bootstrap", bootstrap, *named, *more], Client,
                            environment=environment, **how)
        return client.begin()


def replace_text(path: Path, text: str) -> None:
    """As deployments do it: a reader sees the old file or the new one."""
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def listener(name: str, cluster: str, route: Optional[dict] = None, filters: tuple[dict, ...] = ()) -> dict:
    return {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": name, "api_listener": {"api_listener": {
        "@type": MANAGER, "http_filters": [*filters, ROUTER],
        "route_config": {"virtual_hosts": [{"domains": ["*"], "routes": [
            {"match": {"prefix": ""}, "route": {"cluster": cluster, **(route or {})}}]}]}}}}


def cluster(name: str, **more) -> dict:
    return {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": name, "type": "EDS",
            "eds_cluster_config": {"eds_config": {"self": {}}}, **more}


def endpoints(name: str, addresses: list[str], draining: frozenset[str] = frozenset()) -> dict:
    def endpoint(address: str) -> dict:
        host, _, port = address.rpartition(":")
        return {"endpoint": {"address": {"socket_address": {"address": host, "port_value": int(port)}}},
                "health_status": "DRAINING" if address in draining else "HEALTHY"}

    return {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": name,
            "endpoints": [{"locality": {}, "load_balancing_weight": 1,
                           "lb_endpoints": [endpoint(address) for address in addresses]}]}


def serve_wrong_file(plane: Process, path: Path) -> None:
    """Makes the resources wrong, and waits until the control plane has seen it."""
    def complaints() -> int:
        return plane.all_errors().count(STILL_SERVED)

    before = complaints()
    replace_text(path, '{"resources": [{}]}')
    eventually(lambda: complaints() > before, "signalbox serve says that the file is wrong")


def write_resources(path: Path, *resources: dict) -> None:
    replace_text(path, json.dumps({"resources": list(resources)}))


def connected_to(port: int) -> set[int]:
    """The addresses with this port to which a connection is established, as numbers. Only ends of
    clients count: their own port differs."""
    found = set()
    files = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    for file in filter(Path.exists, files):
        for line in file.read_text(encoding="ascii").splitlines()[1:]:
            _, _, remote, state = line.split(maxsplit=4)[:4]
            address, _, remote_port = remote.rpartition(":")
            if state == "01" and int(remote_port, 16) == port:
                # The last four bytes of an address, IPv6 or not, in the order of this machine.
                found.add(int.from_bytes(bytes.fromhex(address[-8:]), sys.byteorder))
    return found


def is_connected_to(address: str) -> bool:
    """Whether a connection to this "ip:port" is established."""
    host, _, port = address.rpartition(":")
    return int(ip_address(host)) in connected_to(int(port))


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def threads_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def open_descriptors(pid: int) -> set[int]:
    return {int(name) for name in os.listdir(f"/proc/{pid}/fd")}


def after_warm_up(memory: list[tuple[float, float]], seconds: float) -> list[tuple[float, float]]:
    """`memory`: seconds and bytes. `seconds`: all that was sampled."""
    return [sample for sample in memory if sample[0] >= WARM_UP * seconds]


def slope(samples: list[tuple[float, float]]) -> float:
    """The slope of the line of least squares."""
    mean_x = sum(x for x, _ in samples) / len(samples)
    mean_y = sum(y for _, y in samples) / len(samples)
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    return sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0


def lowest_free_descriptor(pid: int) -> int:
    open_now = open_descriptors(pid)
    return next(number for number in range(len(open_now) + 1) if number not in open_now)


@contextlib.contextmanager
def few_files(pid: int) -> Iterator[None]:
    """The process can open no descriptor meanwhile."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free_descriptor(pid), before[1]))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def allow_files(number: int) -> None:
    """Raises this process's limit of open files, which its children inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= number:
        return
    if hard < number:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))
            return
    check(hard >= number, f"the part needs {number} open files in a process, and the limit is {hard} (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))


def positive(text: str) -> int:
    """The type of options that are counts."""
    if not re.fullmatch(r"[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"expected a positive number, got '{text}'")
    return int(text)


def run_part(body: Callable[[], str], prog: str) -> int:
    """Prints what body() returns. A gate that is not met is exit status 1."""
    try:
        print(body(), flush=True)
        return 0
    except Failed as failed:
        print(f"{prog}: {failed}", file=sys.stderr)
        return 1
