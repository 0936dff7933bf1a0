#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the installed examples. Each is built alone, by the build line of all READMEs. The other
lines of its README are pasted into a shell, in a copy of its folder.

    indented block, `after COMMAND` ─▶ the shell        `prints LINE` ─▶ a line that must come
"""

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Iterator

from collector import Collector, attributes, events
from installed import PATIENCE, free_ports, installation, outside, results, run, serving, world_of
from odd_server import OddServer
from shell import Shell

HERE = Path(__file__).resolve().parent
MOST_LINES = 150  # Of C++ in an example, without blank lines and comments.
MOST_README_LINES = 10  # Of an example's README, without blank lines.
PROGRAMS = {"admin": "server", "custom_policy": "pick", "failover": "failover", "http": "http_client",
            "opentelemetry": "traced_call", "sessions": "session"}
BUILD_LINE = "    cmake -G Ninja -B build && cmake --build build\n"
PORTS = ("50050", "50051", "50052", "9901", "4318")  # Of all READMEs and resources.
# gRPC's mapping of HTTP statuses to codes.
CODES = {"OK": (201,), "INTERNAL": (400,), "UNAUTHENTICATED": (401,), "PERMISSION_DENIED": (403,), "UNIMPLEMENTED": (404,),
         "UNAVAILABLE": (429, 502, 503, 504), "UNKNOWN": (409, 500)}
STEP = re.compile(r"((?:^    .*\n)+)|\bafter\s+`([^`]+)`|\bprints\s+`([^`]+)`", re.MULTILINE | re.IGNORECASE)

# The shop: a cluster of two priorities serves orders. Another cluster serves all other paths. It
# also serves orders with the header `vip`, which the example never sends.
SHOP = """
resources:
  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: shop
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        route_config:
          virtual_hosts:
            - name: shop
              domains: ["*"]
              routes:
                - {match: {prefix: /orders/, headers: [{name: vip, present_match: true}]}, route: {cluster: pages}}
                - {match: {prefix: /orders/}, route: {cluster: orders}}
                - {match: {prefix: ""}, route: {cluster: pages}}
        http_filters:
          - name: sessions
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession
              session_state:
                name: cookie
                typed_config:
                  "@type": type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState
                  cookie: {name: shopper, path: /orders}
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
"""
SHOP_CLUSTER = """
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: CLUSTER
    type: EDS
    eds_cluster_config: {eds_config: {self: {}}}
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: CLUSTER
    endpoints:
"""
SHOP_ENDPOINT = """
      - locality: {zone: zPRIORITY}
        priority: PRIORITY
        load_balancing_weight: 1
        lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: PORT}}}}]
"""


def shop(**clusters: list[int]) -> str:
    """The shop's resources with these clusters. Each port of a cluster is a priority, the first one
    the highest."""
    text = SHOP
    for name, ports in clusters.items():
        text += SHOP_CLUSTER.replace("CLUSTER", name)
        for priority, port in enumerate(ports):
            text += SHOP_ENDPOINT.replace("PRIORITY", str(priority)).replace("PORT", str(port))
    return text


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def port_of(address: str) -> str:
    return address.rpartition(":")[2]


def resources_of(world: dict[str, str]) -> Path:
    return Path(json.loads(world["GRPC_XDS_BOOTSTRAP_CONFIG"])["signalbox.resources"])


def count_of(printed: str, metric: str) -> float:
    """The sum of the metric's series, which may be given with labels: `name{a="b"`."""
    return sum(float(line.rpartition(" ")[2]) for line in printed.splitlines() if line.startswith(metric))


def with_ports(text: str, ports: dict[str, str]) -> str:
    return re.sub("|".join(PORTS), lambda found: ports.get(found[0], found[0]), text)


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = outside()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.prefix = installation()
        cls.installed = cls.prefix / "share/doc/signalbox/examples"
        with ThreadPoolExecutor(2) as builders:
            list(builders.map(cls.build, PROGRAMS))
        cls.dead_ports = dict(zip(PORTS, map(str, free_ports(len(PORTS)))))
        # These programs wait ten seconds for their backends, beside the other tests.
        path = "/signalbox.demo.v1.Orders/Place"
        collector = f"http://127.0.0.1:{cls.dead_ports['4318']}"
        cls.lonely = {name: cls.start_alone(name, *arguments) for name, *arguments in (
            ("custom_policy", path), ("failover",), ("http",), ("opentelemetry", collector, "xds:///orders", path),
            ("sessions",))}
        cls.refused = cls.start_alone("custom_policy", path, change=("reserved: 1", "reserved: 0"))

    @classmethod
    def build(cls, name: str) -> None:
        shutil.copytree(cls.installed / name, cls.folder / name)
        run("sh", "-c", BUILD_LINE, cwd=cls.folder / name, CMAKE_PREFIX_PATH=cls.prefix, CMAKE_BUILD_PARALLEL_LEVEL=1)

    @classmethod
    def program(cls, example: str, name: str | None = None) -> Path:
        return cls.folder / example / "build" / (name or PROGRAMS[example])

    @classmethod
    def world(cls, example: str, ports: dict[str, str], change: tuple[str, str] = ("", "")) -> dict[str, str]:
        """The environment of the example with these ports, and with a change of its resources."""
        text = with_ports(text_of(cls.installed / example / "resources.yaml"), ports)
        file = cls.folder / f"{example}.{len(list(cls.folder.glob('*.yaml')))}.yaml"
        file.write_text(text.replace(*change), encoding="utf-8")
        return world_of(file)

    @classmethod
    def start_alone(cls, name: str, *arguments: str, change: tuple[str, str] = ("", "")) -> subprocess.Popen:
        """Starts the example without its backends. Its stdin is a path."""
        process = subprocess.Popen([cls.program(name), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, **cls.world(name, cls.dead_ports, change)})
        process.stdin.write("/orders/7\n")
        process.stdin.close()
        process.stdin = None  # Nothing for communicate() to close.
        for cleanup in (process.stdout.close, process.wait, process.kill):  # The last runs first.
            cls.addClassCleanup(cleanup)
        return process

    @contextlib.contextmanager
    def backend_process(self, *enter: object, **environment: str) -> Iterator[tuple[subprocess.Popen, str]]:
        """A running backend and its address. `enter`: the program that runs the backend."""
        with serving(*enter, self.prefix / "bin/signalbox", "backend", "--cluster", "orders", "--name", "a",
                     "--listen", "127.0.0.1:0", **environment) as process:
            yield process, json.loads(process.stdout.readline())["address"]

    @contextlib.contextmanager
    def backend(self, *enter: object, **environment: str) -> Iterator[str]:
        with self.backend_process(*enter, **environment) as (_, address):
            yield address

    # --- what is there ---------------------------------------------------------------------------

    def test_each_example_is_small_and_listed(self) -> None:
        listed = re.findall(r"^\| \[(\w+)\]\(\1/README.md\) \|", text_of(self.installed / "README.md"), re.MULTILINE)
        self.assertEqual(set(PROGRAMS), set(listed))
        self.assertEqual(set(PROGRAMS), {path.name for path in self.installed.iterdir() if path.is_dir()})
        for name in PROGRAMS:
            lines = [line for file in (self.installed / name).glob("*.[ch]pp") for line in text_of(file).splitlines()]
            self.assertLessEqual(sum(not re.fullmatch(r"\s*(//.*)?", line) for line in lines), MOST_LINES, name)
            readme = text_of(self.installed / name / "README.md").splitlines()
            self.assertLessEqual(sum(map(bool, readme)), MOST_README_LINES, name)

    # --- the READMEs -----------------------------------------------------------------------------

    def paste_readme(self, name: str) -> None:
        ports = dict(zip(PORTS, map(str, free_ports(len(PORTS)))))
        work = self.folder / "pasted" / name / "work"
        shutil.copytree(self.installed / name, work)
        for file in work.glob("*.yaml"):
            file.write_text(with_ports(text_of(file), ports), encoding="utf-8")
        (work / "build").symlink_to(self.program(name).parent)  # Made by the same line.
        readme = text_of(work / "README.md")
        before = {file: file.read_bytes() for file in work.iterdir() if file.is_file()}
        self.assertEqual(1, readme.count(BUILD_LINE))
        steps = [found.groups() for found in STEP.finditer(with_ports(readme.replace(BUILD_LINE, ""), ports))]
        self.assertGreater(sum(printed is not None for _, _, printed in steps), 0)
        with Shell(work.parent, PATH=f"{self.prefix}/bin:{os.environ['PATH']}") as shell:
            for block, command, printed in steps:
                if printed is not None:
                    shell.expect(printed)
                for line in (block or command or "").splitlines():
                    shell.paste(line)
                    # A reader waits until a backend runs.
                    for address in re.findall(r"signalbox backend --listen (\S+)", line):
                        shell.until(lambda said=f'"address":"{address}"': said in shell.printed(), line)
        # A reader may run the example again.
        self.assertEqual(before, {file: file.read_bytes() for file in before})

    def test_the_readmes_work_by_copy_and_paste(self) -> None:
        for name in PROGRAMS:
            with self.subTest(example=name):
                self.paste_readme(name)

    # --- what is missing -------------------------------------------------------------------------

    def test_without_backends_each_says_so(self) -> None:
        for name, process in self.lonely.items():
            said, _ = process.communicate(timeout=PATIENCE)
            with self.subTest(example=name):
                self.assertEqual(1, process.returncode, said)
                missing = {"http": "503 no backend in time: ", "custom_policy": "no endpoint: "}.get(name, "DEADLINE_EXCEEDED: ")
                self.assertIn(missing, said)
                if name == "opentelemetry":
                    self.assertIn("the collector has not taken spans", said)

    def test_without_a_bootstrap_each_names_its_variable(self) -> None:
        arguments = {"admin": ["127.0.0.1:0", "127.0.0.1:0"], "custom_policy": ["/a/b"],
                     "opentelemetry": ["http://127.0.0.1:1", "xds:///a", "/a/b"]}
        for name in PROGRAMS:
            with self.subTest(example=name):
                said = run(self.program(name), *arguments.get(name, []), fails=True,
                           GRPC_XDS_BOOTSTRAP="", GRPC_XDS_BOOTSTRAP_CONFIG="")
                self.assertRegex(said, rf"\A{PROGRAMS[name]}: .*GRPC_XDS_BOOTSTRAP")

    def test_wrong_arguments_get_the_usage(self) -> None:
        for name, *arguments in (("admin",), ("custom_policy",), ("opentelemetry",),
                                 ("opentelemetry", "ftp://a:1", "xds:///a", "/a/b"),
                                 *(("opentelemetry", f"http://127.0.0.1{end}", "xds:///a", "/a/b") for end in (
                                     "", ":", ":1/", ":1/v1/traces", ":65536", ":99999999999")),
                                 ("opentelemetry", "http://127.0.0.1:1", "xds:///a", "")):
            with self.subTest(example=name, arguments=arguments):
                said = run("sh", "-c", '"$0" "$@"; test $? -eq 2', self.program(name), *arguments)
                self.assertRegex(said, r"\Ausage: ")

    def test_wrong_policies_are_refused_by_name(self) -> None:
        said, _ = self.refused.communicate(timeout=PATIENCE)
        self.assertEqual(1, self.refused.returncode, said)
        self.assertIn("reserved: must be 1 to 1000, found 0", said)

    def test_the_collector_ends_without_a_traceback(self) -> None:
        collector = self.installed / "opentelemetry" / "collector.py"
        with serving("sh", "-c", 'exec "$0" "$@" 2>&1', sys.executable, collector, "0") as process:
            port = process.stdout.readline().rstrip("\n").rpartition(":")[2]
            said = run(sys.executable, collector, port, fails=True)
            self.assertRegex(said, rf"\Acollector.py: port {port}: .*\n\Z")
            process.send_signal(signal.SIGINT)
            self.assertEqual("", process.stdout.read())
            self.assertEqual(0, process.wait(PATIENCE))

    # --- more than the READMEs show --------------------------------------------------------------

    def test_failover_keeps_the_second_priority_connected(self) -> None:
        with self.backend() as first, socket.create_server(("127.0.0.1", 0)) as second:
            second.settimeout(PATIENCE)
            ports = {"50051": port_of(first), "50052": str(second.getsockname()[1])}
            with serving(self.program("failover"), **self.world("failover", ports)) as client:
                self.assertEqual("calls go to a\n", client.stdout.readline())
                second.accept()[0].close()

    def test_failover_loses_no_call_that_its_backend_had(self) -> None:
        place, report = self.folder / "place", self.folder / "failover.json"
        place.write_bytes(b"\x10\xc0\x9a\x0c")  # A PlaceRequest with a work_us of 200,000.
        with self.backend_process() as (killed, first), self.backend() as second:
            world = self.world("failover", {"50051": port_of(first), "50052": port_of(second)})
            with serving("sh", "-c", 'exec "$0" "$@" 2>&1', self.prefix / "bin/signalbox", "load", "--resources",
                         resources_of(world), "--target", "xds:///orders", "--call", "signalbox.demo.v1.Orders/Place",
                         "--data-file", place, "--arrivals", "even", "--rate", "50", "--duration", "4s", "--timeout", "60s",
                         "--max-lateness", "60s", "--json", report) as load:
                while not load.stdout.readline().lstrip().startswith("2 s"):  # A line comes each second.
                    self.assertIsNone(load.poll())
                killed.kill()
                said, _ = load.communicate(timeout=PATIENCE)
                self.assertEqual(0, load.returncode, said)
        self.assertEqual(["0"], list(json.loads(text_of(report))["sides"][0]["codes"]))

    def test_custom_policy_keeps_the_first_endpoints_for_slow_calls(self) -> None:
        with self.backend() as a, self.backend() as b, self.backend() as c:
            endpoint = "          - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: PORT}}}\n"
            second, third = (endpoint.replace("PORT", port_of(address)) for address in (b, c))
            world = self.world("custom_policy", {"50051": port_of(a), "50052": port_of(b)}, (second, second + third))
            slow, other = "/reports.v1.Reports/Year", "/orders.v1.Orders/Place"
            said = results(run(self.program("custom_policy"), *[slow, other] * 3, **world))
            self.assertEqual([f"{slow} goes to {a}"] * 3, said[::2])
            self.assertLessEqual(set(said[1::2]), {f"{other} goes to {address}" for address in (b, c)})
            for reserved in (2, 3):  # All calls share two endpoints.
                world = self.world("custom_policy", {"50051": port_of(a), "50052": port_of(b)},
                                   ("reserved: 1", f"reserved: {reserved}"))
                said = results(run(self.program("custom_policy"), slow, other, **world))
                self.assertLessEqual(set(said), {f"{path} goes to {address}" for path in (slow, other) for address in (a, b)})

    def test_custom_policy_takes_a_new_configuration(self) -> None:
        """The only endpoint of other calls is dead, until it is replaced. Then no call is slow any
        more."""
        slow, other = "/reports.v1.Reports/Year", "/orders.v1.Orders/Place"
        with self.backend() as a, self.backend() as b:
            world = self.world("custom_policy", {**self.dead_ports, "50051": port_of(a)})
            resources = resources_of(world)
            with serving(self.program("custom_policy"), slow, other, slow, **world) as pick:
                self.assertEqual(f"{slow} goes to {a}\n", pick.stdout.readline())
                text = text_of(resources).replace(f"port_value: {self.dead_ports['50052']}", f"port_value: {port_of(b)}")
                new = resources.with_suffix(".new")
                new.write_text(text.replace("slow: /reports.", "slow: /other."), encoding="utf-8")
                new.replace(resources)
                self.assertEqual(f"{other} goes to {b}\n{slow} goes to {b}\n", pick.stdout.read())
                self.assertEqual(0, pick.wait(PATIENCE))

    def test_admin_serves_orders_and_the_admin_services(self) -> None:
        port, admin_port = free_ports(2)
        with self.backend() as endpoint:
            ports = {"50050": str(port), "50051": port_of(endpoint)}
            world = self.world("admin", ports)
            addresses = [f"127.0.0.1:{port}", f"127.0.0.1:{admin_port}"]
            with serving(self.program("admin"), *addresses, **world) as server:
                self.assertEqual(f"serving {addresses[0]}, admin pages on {addresses[1]}\n", server.stdout.readline())
                resources = resources_of(world)
                for method in ("signalbox.demo.v1.Orders/Place", "grpc.health.v1.Health/Check",
                               "grpc.channelz.v1.Channelz/GetTopChannels",
                               "envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus"):
                    with self.subTest(method=method):
                        self.assertEqual(["0"], self.codes_of(method, resources))
                said = run(self.program("admin"), addresses[0], "127.0.0.1:0", fails=True, **world)
                self.assertIn(f"server: {addresses[0]}: UNAVAILABLE: cannot listen", said)
                said = run(self.program("admin"), "127.0.0.1:0", addresses[1], fails=True, **world)
                self.assertIn("server: the admin pages: ", said)
                server.send_signal(signal.SIGTERM)
                self.assertEqual("stopped\n", server.stdout.read())
                self.assertEqual(0, server.wait(PATIENCE))

    def test_admin_stops_while_a_call_has_no_answer(self) -> None:
        """The backend is stopped. Its call ends with the server's."""
        with self.backend_process() as (stopped, endpoint):
            world = self.world("admin", {"50051": port_of(endpoint)})
            with serving(self.program("admin"), "127.0.0.1:0", "127.0.0.1:0", **world) as server:
                found = re.fullmatch(r"serving (\S+:[1-9]\d*), admin pages on (\S+)\n", server.stdout.readline())
                address, pages = found.groups()
                self.until(f"http://{pages}/ready", lambda said: "LIVE" in said)
                stopped.send_signal(signal.SIGSTOP)
                callers = self.world("admin", {"50050": port_of(address)})
                with serving(self.prefix / "bin/signalbox", "load", "--resources", resources_of(callers), "--target",
                             "xds:///front", "--call", "signalbox.demo.v1.Orders/Place", "--timeout", "600s",
                             "--duration", "600s", "--quiet"):
                    self.until(f"http://{pages}/metrics", lambda said: count_of(said, "signalbox_rpcs_active{") > 0)
                    server.send_signal(signal.SIGINT)
                    self.assertEqual(0, server.wait(PATIENCE))
                    self.assertEqual("stopped\n", server.stdout.read())

    def until(self, page: str, holds: Callable[[str], bool]) -> None:
        """Waits until this holds for the page's text."""
        deadline = time.monotonic() + PATIENCE
        said = ""
        while not holds(said):
            self.assertLess(time.monotonic(), deadline, f"{page}: {said}")
            time.sleep(0.05)
            with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(page, timeout=PATIENCE) as answer:
                said = answer.read().decode()

    def test_admin_without_a_backend_is_not_ready(self) -> None:
        port, admin_port = free_ports(2)
        world = self.world("admin", {**self.dead_ports, "50050": str(port)})
        with serving(self.program("admin"), f"127.0.0.1:{port}", f"127.0.0.1:{admin_port}", **world) as server:
            self.assertIn("serving", server.stdout.readline())
            resources = resources_of(world)
            self.assertEqual(["14"], self.codes_of("signalbox.demo.v1.Orders/Place", resources))
            said = run(self.prefix / "bin/signalbox", "ready", "--admin", f"127.0.0.1:{admin_port}", fails=True)
            self.assertIn("not ready", said)

    def codes_of(self, method: str, resources: Path) -> list[str]:
        """The status codes of calls to the example's server."""
        report = self.folder / "load.json"
        run(self.prefix / "bin/signalbox", "load", "--resources", resources, "--target", "xds:///front", "--call", method,
            "--arrivals", "even", "--rate", "20", "--duration", "0.5s", "--max-lateness", "60s", "--quiet", "--json", report)
        return list(json.loads(text_of(report))["sides"][0]["codes"])

    def test_opentelemetry_sends_the_spans_of_calls(self) -> None:
        """Checks the spans of a call that succeeds, and of a call that fails, as the example sends
        them to a collector (gRFCs A72, A121), and the header by which a server knows them."""
        traced_call = self.program("opentelemetry", "traced_call")
        headers = self.folder / "headers"  # gRPC's own log of what the backend receives.
        logged = {"LOG": str(headers), "GRPC_TRACE": "chttp2_hpack_parser", "GRPC_VERBOSITY": "debug"}
        with Collector() as collector, self.backend("sh", "-c", 'exec "$0" "$@" 2> "$LOG"', **logged) as endpoint:
            world = self.world("opentelemetry", {"50051": port_of(endpoint)})
            method = "signalbox.demo.v1.Orders/Place"
            self.assertEqual(["OK"], results(run(traced_call, collector.url, "xds:///orders", f"/{method}", **world)))
            [call] = [s for s in collector.spans if s["name"] == f"Sent.{method}"]
            [attempt] = [s for s in collector.spans if s["name"] == f"Attempt.{method}"]
            delays = [s for s in collector.spans if s["name"] == "Delay"]
            self.assertEqual(len(collector.spans), 2 + len(delays))
            self.assertEqual([f"00-{call['traceId']}-{attempt['spanId']}-01"],
                             re.findall(r" traceparent: (\S+)", text_of(headers)))
            self.assertEqual("", call["parentSpanId"])
            self.assertEqual(call["spanId"], attempt["parentSpanId"])
            self.assertEqual({"previous-rpc-attempts": 0, "transparent-retry": False, "server.address": endpoint},
                             attributes(attempt))
            # A new process has neither a configuration nor a connection.
            types = {"resolving": call, "connecting": attempt, "p0:connecting": attempt}
            for delay in delays:
                self.assertEqual(types[attributes(delay)["grpc.delay_type"]]["spanId"], delay["parentSpanId"])
                self.assertEqual({"Delay triggered"}, set(events(delay)))
                self.assertTrue(all(attributes(event)["grpc.delay_reason"] for event in delay["events"]))
            self.assertIn("Delayed LB pick complete", events(attempt))
            resolved = [d for d in delays if d["parentSpanId"] == call["spanId"]]
            self.assertEqual(["Delayed name resolution complete"] * len(resolved), events(call))
            for span in collector.spans:
                self.assertEqual(call["traceId"], span["traceId"])
                self.assertNotIn("status", span)
                began, ended = (int(span[f"{what}TimeUnixNano"]) for what in ("start", "end"))
                self.assertLessEqual(int(call["startTimeUnixNano"]), began)
                self.assertLessEqual(began, ended)
                self.assertLessEqual(ended, int(call["endTimeUnixNano"]))
                self.assertLess(abs(time.time() - ended / 1e9), 3600)
            self.assertEqual(len(collector.spans), len({span["spanId"] for span in collector.spans}))

            collector.spans.clear()
            run(traced_call, collector.url, "xds:///orders", "/signalbox.demo.v1.Orders/Missing", fails=True, **world)
            ends = {span["name"]: span["status"]["code"] for span in collector.spans if "status" in span}
            self.assertEqual({"Sent.signalbox.demo.v1.Orders/Missing": 2, "Attempt.signalbox.demo.v1.Orders/Missing": 2}, ends)

    def test_opentelemetry_says_why_no_spans_were_taken(self) -> None:
        traced_call = self.program("opentelemetry", "traced_call")
        with self.backend() as endpoint, contextlib.ExitStack() as stack:
            def said_with(port: int) -> str:
                world = self.world("opentelemetry", {"50051": port_of(endpoint)})
                said = run(traced_call, f"http://127.0.0.1:{port}", "xds:///orders", "/signalbox.demo.v1.Orders/Place", **world)
                self.assertIn("OK", results(said))
                return said

            no_collector = stack.enter_context(serving(sys.executable, HERE / "http_server.py", "a"))
            self.assertIn("the collector has not taken spans: 501\n", said_with(int(no_collector.stdout.readline())))
            # This server's queue of connections is full. An attempt to connect lasts until the
            # client's limit.
            full = stack.enter_context(socket.socket())
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            for _ in range(3):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(full.getsockname())
            self.assertRegex(said_with(full.getsockname()[1]), r"the collector has not taken spans: \D")

    def test_opentelemetry_sends_text_that_is_no_utf8(self) -> None:
        with Collector() as collector, self.backend() as endpoint:
            run("sh", "-c", 'exec "$0" "$@" "$(printf "/a/\\377")"', self.program("opentelemetry"), collector.url, "xds:///orders",
                fails=True, **self.world("opentelemetry", {"50051": port_of(endpoint)}))
            self.assertIn("Sent.a/\ufffd", [span["name"] for span in collector.spans])

    def test_http_requests_end_in_time_and_say_why(self) -> None:
        """The odd server sends no whole response. The other server has accepted a connection, and
        refuses new ones."""
        client = self.program("http", "http_client")
        with OddServer() as odd, socket.create_server(("127.0.0.1", 0)) as refusing:
            file = self.folder / "odd.yaml"
            text = shop(orders=[odd.port], pages=[refusing.getsockname()[1]])
            limit = "max_stream_duration: {max_stream_duration: 2s}"
            file.write_text(re.sub(r"route: {(.*)}}", rf"route: {{\1, {limit}}}}}", text), encoding="utf-8")
            with serving("sh", "-c", 'exec "$0" 2>&1', client, **world_of(file)) as process:
                refusing.settimeout(PATIENCE)
                with refusing.accept()[0]:
                    refusing.close()
                    ways = ("closed", "garbage", "cut", "late", "trickle")
                    lines = [*(f"/orders/{way}" for way in ways), "", "orders/7", "/imprint"]
                    said, _ = process.communicate("\n".join(lines) + "\n", timeout=PATIENCE)
                self.assertEqual(1, process.returncode, said)
            answers = [line for line in said.splitlines() if not line.startswith("signalbox")]
            for way, answer in zip(ways, answers):
                with self.subTest(way=way):
                    self.assertRegex(answer, r"\A0 no response: .")
            refused = 'http_client: a path begins with "/", this one does not: '
            last = "503 no backend in time: no attempt to connect succeeded"
            self.assertEqual([refused, f"{refused}orders/7", last], answers[len(ways):])
            self.assertEqual(5, count_of(said, "signalbox_rpcs_started_total{"), said)
            self.assertEqual(5, count_of(said, "signalbox_rpcs_completed_total{"), said)
            self.assertRegex(said, r'(?m)^signalbox_calls_total\{.*"UNAVAILABLE".*\} 6$')

    def test_http_requests_follow_routes_priorities_and_sessions(self) -> None:
        client = self.program("http", "http_client")
        with contextlib.ExitStack() as stack:
            def start(name: str, port: int = 0) -> tuple[subprocess.Popen, int]:
                process = stack.enter_context(serving(sys.executable, HERE / "http_server.py", name, port))
                return process, int(process.stdout.readline())

            first, first_port = start("first")
            _, second_port = start("second")
            _, pages_port = start("pages")
            file = self.folder / "shop.yaml"
            file.write_text(shop(orders=[first_port, second_port], pages=[pages_port]), encoding="utf-8")
            shopper, visitor = (stack.enter_context(serving(client, **world_of(file))) for _ in range(2))

            def ask(process: subprocess.Popen, *lines: str) -> str:
                process.stdin.write("\n".join(lines) + "\n")
                process.stdin.flush()
                return process.stdout.readline().rstrip("\n")

            def get(path: str) -> str:
                return ask(shopper, path)

            self.assertEqual("200 first /orders/7", get("/orders/7"))
            self.assertEqual("200 pages /imprint", get("/imprint"))
            self.assertEqual("503 first /orders/status/503", get("/orders/status/503"))
            for statuses in CODES.values():
                for status in statuses:
                    self.assertEqual(f"{status} pages /status/{status}", get(f"/status/{status}"))
            cookie = base64.b64encode(f"127.0.0.1:{first_port};orders".encode()).decode()
            self.assertEqual(f"200 first /orders/cookies seen=yes; shopper={cookie}", get("/orders/cookies"))
            self.assertEqual("200 pages /cookies ", get("/cookies"))
            first.kill()
            first.wait()
            self.assertEqual("200 second /orders/7", get("/orders/7"))
            start("first", first_port)
            # The client connects to "first" again only after a back-off of a second or two.
            while ask(visitor, "new", "/orders/8") != "200 first /orders/8":
                self.assertIsNone(visitor.poll())
            cookie = base64.b64encode(f"127.0.0.1:{second_port};orders".encode()).decode()
            self.assertEqual(f"200 second /orders/cookies seen=yes; shopper={cookie}", get("/orders/cookies"))
            shopper.stdin.close()
            counted = shopper.stdout.read()
            self.assertEqual(0, shopper.wait(PATIENCE))
            completed = "signalbox_rpcs_completed_total"
            self.assertEqual(count_of(counted, "signalbox_rpcs_started_total{"), count_of(counted, f"{completed}{{"))
            for code, statuses in CODES.items():
                pages = sum(count_of(line, completed) for line in counted.splitlines() if f'"pages",code="{code}"' in line)
                self.assertEqual(len(statuses) + 2 * (code == "OK"), pages, counted)
            self.assertRegex(counted, r'(?m)^signalbox_rpcs_completed_total\{.*cluster="orders".*"UNAVAILABLE".*\} 1$')


if __name__ == "__main__":
    unittest.main()
