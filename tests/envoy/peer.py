# SPDX-License-Identifier: Apache-2.0
"""A real Envoy as a child process. One dict configures it, and it listens on free loopback ports.

    configuration (a dict) ─▶ [Envoy] ─▶ admin: clusters, listeners' ports
                                  └────▶ its listeners

Envoy ends with the `with` block. It uses no hot restart, no shared memory and no fixed port, so
nothing remains after the test."""

import http.client
import json
import subprocess
import tempfile
import time
from pathlib import Path

START_SECONDS = 60
POLL_SECONDS = 0.05


class EnvoyFailed(Exception):
    """Envoy refused its configuration, ended, or did not answer in time. The message has the end of
    its log."""


class Envoy:
    def __init__(self, program: Path, static_resources: dict) -> None:
        self._program = program
        self._static_resources = static_resources

    def __enter__(self) -> "Envoy":
        self._folder = tempfile.TemporaryDirectory(prefix="signalbox-envoy-")
        folder = Path(self._folder.name)
        configuration = folder / "envoy.json"
        configuration.write_text(json.dumps({
            "node": {"id": "envoy", "cluster": "envoy"},
            "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
            "static_resources": self._static_resources,
        }), encoding="utf-8")
        address = folder / "admin"
        self._log = open(folder / "log", "w+b")
        self._process = subprocess.Popen(
            # The kernel ends Envoy when this process ends, even by a signal.
            ["setpriv", "--pdeathsig", "KILL", "--", self._program, "--config-path", configuration,
             "--admin-address-path", address, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning",
             "--log-format", "%v"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, cwd=folder, start_new_session=True)
        try:
            host, _, port = self._wait_for(lambda: address.exists() and address.read_text()).rpartition(":")
            self._admin = (host, int(port))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()
        self._folder.cleanup()

    def wait_until_live(self) -> None:
        """Waits until Envoy's clusters are initialised and its listeners accept connections."""
        self._wait_for(self._is_live)

    def admin(self, path: str) -> dict:
        status, body = self._get(path)
        if status != 200:
            raise EnvoyFailed(f"{path}: {status} {body!r}")
        return json.loads(body)

    def listener_ports(self) -> dict[str, int]:
        """The ports of the listeners, by name."""
        statuses = self.admin("/listeners?format=json")["listener_statuses"]
        return {status["name"]: status["local_address"]["socket_address"]["port_value"] for status in statuses}

    def _is_live(self) -> bool:
        try:
            return self._get("/ready")[0] == 200
        except OSError:  # Envoy has ended; _wait_for() reports why.
            return False

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self._admin, timeout=START_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _wait_for(self, question):
        deadline = time.monotonic() + START_SECONDS
        while not (answer := question()):
            if self._process.poll() is not None:
                raise EnvoyFailed(f"Envoy ended with {self._process.returncode}: {self.last_words()}")
            if time.monotonic() > deadline:
                raise EnvoyFailed(f"Envoy does not answer within {START_SECONDS} s: {self.last_words()}")
            time.sleep(POLL_SECONDS)
        return answer

    def last_words(self) -> str:
        self._log.seek(0)
        words = self._log.read().decode(errors="replace")
        # Envoy's error text may contain the whole configuration. The error itself is at the text's
        # beginning or end.
        return words if len(words) <= 4000 else f"{words[:2000]}\n…\n{words[-2000:]}"
