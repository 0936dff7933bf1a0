# SPDX-License-Identifier: Apache-2.0
"""Records the metrics of demos and loads, and starts a Prometheus with this history.

    signalbox demo, load ─ /metrics, often ─▶ History ─ OpenMetrics ─▶ promtool ─ blocks ─▶ Prometheus ─ HTTP ─▶ answers

All processes end with their `with` blocks."""

import contextlib
import itertools
import json
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Callable, Iterator

PATIENCE = 120
EVERY = 0.25  # The interval between scrapes and between polls, in seconds.
SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")


class Failed(Exception):
    """A process failed. The message has the end of its output."""


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.read().decode()


class History:
    """The samples of many scrapes, by series. The labels `job` and `instance` are added to each
    series, as Prometheus does."""

    def __init__(self) -> None:
        self._series: dict[str, list[tuple[float, str]]] = {}
        self._lock = threading.Lock()

    def add(self, instance: str, when: float, page: str) -> None:
        for line in page.splitlines():
            if not line or line.startswith("#"):
                continue
            sample = SAMPLE.match(line)
            if sample is None:
                raise Failed(f"/metrics has a line that is no sample: {line}")
            name, labels, value = sample.groups()
            mine = f'job="signalbox",instance="{instance}"' + (f",{labels}" if labels else "")
            with self._lock:
                self._series.setdefault(f"{name}{{{mine}}}", []).append((when, value))

    def value(self, instance: str, metric: str) -> float:
        """The sum of the newest values of the metric's series."""
        return sum(float(samples[-1][1]) for samples in self._of(instance, metric))

    def times_above_0(self, instance: str, metric: str) -> int:
        """The number of the metric's samples above 0."""
        return sum(float(value) > 0 for samples in self._of(instance, metric) for _, value in samples)

    def has_grown(self, instance: str, metric: str) -> bool:
        """Whether a series of the metric was larger at a scrape than at the one before. Only then does
        rate() have a value above 0."""
        return any(float(before[1]) < float(after[1]) for samples in self._of(instance, metric)
                   for before, after in itertools.pairwise(samples))

    def _of(self, instance: str, metric: str) -> list[list[tuple[float, str]]]:
        with self._lock:
            return [list(samples) for series, samples in self._series.items()
                    if series.startswith(f'{metric}{{job="signalbox",instance="{instance}"')]

    def metrics(self) -> set[str]:
        return {series.partition("{")[0] for series in self._series}

    def times(self) -> tuple[float, float]:
        times = [when for samples in self._series.values() for when, _ in samples]
        return min(times), max(times)

    def open_metrics(self) -> str:
        lines = [f"{series} {value} {when:.3f}" for series, samples in self._series.items() for when, value in samples]
        return "\n".join([*lines, "# EOF", ""])


@contextlib.contextmanager
def running(argv: list, **more) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen([str(word) for word in argv], text=True, **more)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
        process.communicate()


def watch(argv: list, instance: str, history: History, enough: Callable[[], bool] = lambda: False) -> None:
    """Runs a demo or a load, and scrapes it until it ends or `enough` is true."""
    with running(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as program:
        url = re.fullmatch(r"metrics on (http://\S+)\n", program.stdout.readline())
        if url is None:
            raise Failed(f"{instance} did not say where its metrics are: {program.communicate()[0][-2000:]}")
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.extend(program.stdout))
        reader.start()
        try:
            while program.poll() is None and not enough():
                with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                    page = fetch(url[1])
                    history.add(instance, time.time(), page)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    program.wait(EVERY)
            ended = program.poll()
            if ended is None:
                program.send_signal(signal.SIGINT)
            elif ended != 0:
                raise Failed(f"{instance} ended with {ended}: {''.join(said)[-2000:]}")
            program.wait(PATIENCE)
        finally:
            if program.poll() is None:
                program.kill()
            reader.join()


class Prometheus:
    """A running Prometheus, asked through its HTTP API."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, path: str, **arguments) -> dict:
        query = urllib.parse.urlencode(arguments)
        try:
            answer = json.loads(fetch(f"{self._url}/api/v1/{path}?{query}"))
        except urllib.error.HTTPError as error:
            answer = json.loads(error.read().decode())
        if answer["status"] != "success":
            raise Failed(f"{arguments}: {answer['error']}")
        return answer["data"]

    def values(self, expr: str, begin: float, end: float, step: float) -> int:
        """The number of values other than NaN that the expression has between the two times."""
        found = self.ask("query_range", query=expr, start=begin, end=end, step=step)["result"]
        return sum(value != "NaN" for series in found for _, value in series["values"])

    def wait_for_rules(self) -> dict[str, str]:
        """Waits until each rule was evaluated. Returns the errors, by rule."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            rules = [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]
            if rules and all(rule["health"] != "unknown" for rule in rules):
                return {rule["name"]: rule.get("lastError", rule["health"]) for rule in rules if rule["health"] != "ok"}
            time.sleep(EVERY)
        raise Failed("Prometheus did not evaluate its rules")


def make_blocks(promtool: Path, history: History, folder: Path) -> None:
    samples = folder / "history.txt"
    samples.write_text(history.open_metrics(), encoding="utf-8")
    done = subprocess.run([promtool, "tsdb", "create-blocks-from", "openmetrics", samples, folder / "data"],
                          capture_output=True, text=True, check=False, timeout=PATIENCE)
    if done.returncode != 0:
        raise Failed(f"promtool: {done.stderr.strip()[-2000:]}")


@contextlib.contextmanager
def prometheus(program: Path, folder: Path, rules: list[Path]) -> Iterator[Prometheus]:
    config, log = folder / "prometheus.yml", folder / "log"
    names = ", ".join(json.dumps(str(path)) for path in rules)
    config.write_text(f"global: {{evaluation_interval: 1s}}\nrule_files: [{names}]\n", encoding="utf-8")
    with log.open("w", encoding="utf-8") as errors, running(
            [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
             "--web.listen-address=127.0.0.1:0"], stdout=errors, stderr=errors) as process:
        yield Prometheus(_url_of(process, log))


def _url_of(process: subprocess.Popen, log: Path) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        text = log.read_text(encoding="utf-8")
        at = re.search(r'msg="Listening on" address=(\S+)', text)
        if at and "Server is ready to receive web requests" in text:
            return f"http://{at[1]}"
        time.sleep(EVERY)
    raise Failed(f"Prometheus did not start: {log.read_text(encoding='utf-8')[-2000:]}")
