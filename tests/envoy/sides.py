# SPDX-License-Identifier: Apache-2.0
"""The other processes of the comparison: signalbox_envoy_side, the `signalbox` command, and the
HTTP backends.

    driver ─ JSON lines ─▶ signalbox_envoy_side      driver ─▶ signalbox plan      Backends ─▶ ports

signalbox_envoy_side and the backends end with their `with` blocks."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE = 60


class SideFailed(Exception):
    """A process of ours ended or refused a command. The message has its last output."""


@dataclass(frozen=True)
class Programs:
    envoy: Path
    signalbox: Path
    our_side: Path


class LineProcess:
    """A program that reads lines from its stdin, and writes lines of JSON to its stdout."""

    def __init__(self, argv: list) -> None:
        self._name = Path(str(argv[0])).name
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._errors, text=True, start_new_session=True)

    def __enter__(self) -> "LineProcess":
        return self

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def read(self) -> dict:
        line = self._process.stdout.readline()
        if not line:
            self._process.wait(PATIENCE)
            self._errors.seek(0)
            raise SideFailed(f"{self._name} ended: {self._errors.read().decode(errors='replace').strip()[:2000]}")
        return json.loads(line)

    def write(self, line: str) -> None:
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


class OurSide(LineProcess):
    """signalbox_envoy_side; its commands are in our_side.cpp."""

    def __init__(self, programs: Programs) -> None:
        super().__init__([programs.our_side])
        self._folder = tempfile.TemporaryDirectory(prefix="signalbox-envoy-")

    def __exit__(self, *more) -> None:
        super().__exit__(*more)
        self._folder.cleanup()

    def ask(self, do: str, **arguments) -> dict:
        try:
            self.write(json.dumps({"do": do, **arguments}))
        except BrokenPipeError:
            pass  # read() reports the reason.
        return self.read()

    def start(self, resources: list[dict], transport: str, envoy_cookies: bool = False) -> Path:
        """Starts a runtime with these resources. Returns the file of the resources."""
        path = Path(self._folder.name) / "resources.json"
        path.write_text(json.dumps({"resources": resources}), encoding="utf-8")
        self.ask("start", resources=str(path), transport=transport, envoy_cookies=envoy_cookies)
        return path


class Backends(LineProcess):
    """HTTP backends on these loopback addresses. `ports` has the port of each address."""

    def __init__(self, addresses: list[str]) -> None:
        super().__init__([sys.executable, HERE / "backends.py", *addresses])
        self.ports: dict[str, int] = self.read()


def plan(programs: Programs, resources: Path, cluster: str) -> dict:
    """The output of `signalbox plan` for an aggregate in tiered mode."""
    done = subprocess.run(
        [programs.signalbox, "plan", "--resources", resources, "--cluster", cluster, "--mode", "tiered", "--json"],
        capture_output=True, text=True, check=False, timeout=PATIENCE)
    if done.returncode != 0:
        raise SideFailed(f"signalbox plan --cluster {cluster}: {done.stderr.strip()}")
    return json.loads(done.stdout)
