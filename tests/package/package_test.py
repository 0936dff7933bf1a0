#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the package as a user gets it: installed, moved, and used from a folder outside of the
checkout. One test has the checkout as a subfolder of a project instead."""

import base64
import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Iterator

from collector import Collector, attributes, events
from installed import BUILD, CHECKOUT, FIRST_PREFIX, PATIENCE, install, outside, run

HERE = Path(__file__).resolve().parent
WORLD = """
resources:
  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: hello
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        route_config:
          virtual_hosts: [{name: hello, domains: ["*"], routes: [{match: {prefix: ""}, route: {cluster: hello}}]}]
        http_filters:
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: hello
    type: EDS
    eds_cluster_config: {eds_config: {self: {}}}
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: hello
    endpoints:
      - locality: {}
        load_balancing_weight: 1
        lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: PORT}}}}]
"""

# The shop: a cluster of two priorities serves orders. Another cluster serves all other paths.
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


def world_of(file: Path) -> dict[str, str]:
    """The environment of a client that gets its resources from this file."""
    bootstrap = {"signalbox.resources": str(file), "node": {"id": "consumer"}}
    return {"GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap), "GRPC_XDS_BOOTSTRAP": ""}


def results(printed: str) -> list[str]:
    """A program's output lines without signalbox's notices, which run() mixes with them."""
    return [line for line in printed.splitlines() if not line.startswith("signalbox: notice: ")]


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = outside()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.prefix = install(cls.folder)
        cls.headers = next((cls.prefix / "include").iterdir())

    def project(self, name: str, text: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        text = f"cmake_minimum_required(VERSION 3.16)\nproject({name} CXX)\n{text}"
        (folder / "CMakeLists.txt").write_text(text, encoding="utf-8")
        return folder

    def configure(self, source: Path, **more: bool) -> str:
        return run("cmake", "-G", "Ninja", "-S", source, "-B", source / "build", CMAKE_PREFIX_PATH=self.prefix, **more)

    # --- what is there ---------------------------------------------------------------------------

    def test_public_headers_and_what_they_include_are_installed_and_nothing_else(self) -> None:
        self.assertEqual([self.headers], list((self.prefix / "include").iterdir()))
        self.assertEqual(["signalbox"], [p.name for p in self.headers.iterdir()])
        installed = {p.relative_to(self.headers).as_posix() for p in self.headers.rglob("*.hpp")}
        public = {f"signalbox/{p.name}" for p in (CHECKOUT / "channel/include/signalbox").iterdir()}
        wanted, waiting = set(public), list(public)
        while waiting:
            text = (self.headers / waiting.pop()).read_text(encoding="utf-8")
            for header in re.findall(r'^#include "(signalbox/[^"]+)"', text, re.MULTILINE):
                if header not in wanted:
                    wanted.add(header)
                    waiting.append(header)
        self.assertEqual(wanted, installed)

    def test_each_header_compiles_alone_and_without_a_warning(self) -> None:
        flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++", f"-I{self.headers}"]
        for header in sorted(self.headers.rglob("*.hpp")):
            with self.subTest(header=header.relative_to(self.headers)):
                alone = self.folder / "alone.cpp"
                alone.write_text(f'#include "{header.relative_to(self.headers)}"\n', encoding="utf-8")
                run("g++", *flags, alone)

    def test_no_file_knows_where_it_was_built_or_installed(self) -> None:
        places = [os.fsencode(p) for p in (CHECKOUT, BUILD, FIRST_PREFIX)]
        for file in sorted(p for p in self.prefix.rglob("*") if p.is_file()):
            with self.subTest(file=file.relative_to(self.prefix)):
                if file.suffix == ".a" or file.parent.name == "bin":
                    plain = self.folder / "without debug information"
                    run("objcopy", "--strip-debug", file, plain)
                    file = plain
                content = file.read_bytes()
                self.assertEqual([], [place for place in places if place in content])

    def test_documents_and_examples_are_installed(self) -> None:
        documents = self.prefix / "share/doc/signalbox"
        for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", "conf/README.md", "docs/README.md",
                     "docs/configure.md", "docs/operate.md", "docs/decisions/README.md"):
            self.assertTrue((documents / name).is_file(), name)
        for name in (
            "bootstrap.example.json",
            "bootstrap.file.example.json",
            "demo/resources.yaml",
            "quickstart/resources.yaml",
        ):
            run(self.prefix / "bin/signalbox", "check", documents / "conf" / name)

    def test_links_of_installed_documents_lead_to_installed_files(self) -> None:
        documents = self.prefix / "share/doc/signalbox"
        seen = 0
        for page in sorted(documents.rglob("*.md")):
            text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
            for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
                if "://" not in link:
                    seen += 1
                    with self.subTest(page=page.name, link=link):
                        self.assertTrue((page.parent / link).is_file())
        self.assertGreater(seen, 10)

    # --- a project finds the package -------------------------------------------------------------

    def test_an_unknown_component_is_named(self) -> None:
        project = self.project("component", "find_package(signalbox CONFIG REQUIRED COMPONENTS channel teapot)")
        answer = self.configure(project, fails=True)
        self.assertRegex(answer, r"signalbox has no component 'teapot'\.\s+There are:\s+channel\s+command")

    def test_an_unknown_component_that_is_optional_is_not_found(self) -> None:
        self.configure(self.project("optional", """
            find_package(signalbox CONFIG REQUIRED COMPONENTS command OPTIONAL_COMPONENTS teapot)
            if(signalbox_teapot_FOUND OR NOT signalbox_command_FOUND OR TARGET signalbox::channel)
              message(FATAL_ERROR "found: teapot ${signalbox_teapot_FOUND}, command ${signalbox_command_FOUND}")
            endif()"""))

    def test_another_version_is_refused(self) -> None:
        for version in ("0.2", "1.0", "0.0.9"):
            with self.subTest(version=version):
                name = "version_" + version.replace(".", "_")
                project = self.project(name, f"find_package(signalbox {version} CONFIG REQUIRED)")
                answer = self.configure(project, fails=True)
                self.assertRegex(answer, rf'requested\s+version\s+"{re.escape(version)}"')

    def test_another_grpc_is_refused(self) -> None:
        project = self.project("grpc_version", """
            set(gRPC_DIR "${CMAKE_CURRENT_SOURCE_DIR}/grpc")
            find_package(signalbox CONFIG REQUIRED)""")
        (project / "grpc").mkdir()
        (project / "grpc/gRPCConfig.cmake").write_text("", encoding="utf-8")
        (project / "grpc/gRPCConfigVersion.cmake").write_text('set(PACKAGE_VERSION "1.62.0")\n', encoding="utf-8")
        answer = " ".join(self.configure(project, fails=True).split())
        self.assertIn("signalbox needs gRPC 1.51, found 1.62.0: docs/versions.md", answer)

    def test_a_project_that_has_us_as_a_subfolder_does_not_install_us(self) -> None:
        project = self.project("subfolder", "set(SIGNALBOX_BUILD_TESTS OFF)\nadd_subdirectory(signalbox)")
        (project / "signalbox").symlink_to(CHECKOUT)
        self.configure(project)
        run("cmake", "--install", project / "build", "--prefix", project / "prefix")
        self.assertFalse((project / "prefix").exists())

    # --- a project uses the package --------------------------------------------------------------

    def test_consumers_call_and_pick(self) -> None:
        source = self.folder / "consumer"
        shutil.copytree(HERE / "consumer", source)
        shutil.copytree(self.prefix / "share/doc/signalbox/examples/opentelemetry", source / "opentelemetry")
        for name in ("lb/pick/router.hpp", "messages/ids.hpp", "messages/pick.hpp"):
            trap = source / "own" / name
            trap.parent.mkdir(parents=True, exist_ok=True)
            trap.write_text("#error included by signalbox\n", encoding="utf-8")
        self.configure(source)
        run("cmake", "--build", source / "build", "-j2")
        by_hand = self.build_by_hand(source / "pick.cpp")

        with self.serving(source / "build/server") as server:
            port = int(server.stdout.readline())
            file = self.folder / "world.yaml"
            file.write_text(WORLD.replace("PORT", str(port)), encoding="utf-8")
            world = world_of(file)
            self.assertEqual(["hello package"], results(run(source / "build/dropin", **world)))
            self.assertEqual([f"127.0.0.1:{port}"], results(run(source / "build/pick", **world)))
            self.assertEqual([f"127.0.0.1:{port}"], results(run(by_hand, **world)))
            self.collect_spans(source / "build/opentelemetry/traced_call", f"127.0.0.1:{port}", world)

        self.shop_over_http(source / "build/http_client")

    def collect_spans(self, traced_call: Path, endpoint: str, world: dict[str, str]) -> None:
        """Checks the spans of a call that succeeds, and of a call that fails, as the example sends
        them to a collector (gRFCs A72, A121)."""
        with Collector() as collector:
            method = "consumer.v1.Hello/Greet"
            self.assertEqual(["OK"], results(run(traced_call, collector.url, "xds:///hello", f"/{method}", **world)))
            [call] = [s for s in collector.spans if s["name"] == f"Sent.{method}"]
            [attempt] = [s for s in collector.spans if s["name"] == f"Attempt.{method}"]
            delays = [s for s in collector.spans if s["name"] == "Delay"]
            self.assertEqual(len(collector.spans), 2 + len(delays))
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
            run(traced_call, collector.url, "xds:///hello", "/consumer.v1.Hello/Missing", fails=True, **world)
            ends = {span["name"]: span["status"]["code"] for span in collector.spans if "status" in span}
            self.assertEqual({"Sent.consumer.v1.Hello/Missing": 2, "Attempt.consumer.v1.Hello/Missing": 2}, ends)

    def shop_over_http(self, client: Path) -> None:
        with contextlib.ExitStack() as stack:
            def start(name: str, port: int = 0) -> tuple[subprocess.Popen, int]:
                process = stack.enter_context(self.serving(sys.executable, HERE / "http_server.py", name, port))
                return process, int(process.stdout.readline())

            first, first_port = start("first")
            _, second_port = start("second")
            _, pages_port = start("pages")
            file = self.folder / "shop.yaml"
            file.write_text(shop(orders=[first_port, second_port], pages=[pages_port]), encoding="utf-8")
            shopper, visitor = (stack.enter_context(self.serving(client, **world_of(file))) for _ in range(2))

            def ask(process: subprocess.Popen, *lines: str) -> str:
                process.stdin.write("\n".join(lines) + "\n")
                process.stdin.flush()
                return process.stdout.readline().rstrip("\n")

            def get(path: str) -> str:
                return ask(shopper, path)

            self.assertEqual("200 first /orders/7", get("/orders/7"))
            self.assertEqual("200 pages /imprint", get("/imprint"))
            self.assertEqual("503 first /orders/busy", get("/orders/busy"))
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
            self.assertRegex(counted, r'(?m)^signalbox_rpcs_completed_total\{.*cluster="pages".*code="OK".*\} 2$')
            self.assertRegex(counted, r'(?m)^signalbox_rpcs_completed_total\{.*cluster="orders".*"UNAVAILABLE".*\} 1$')

    @contextlib.contextmanager
    def serving(self, *argv: object, **environment: str) -> Iterator[subprocess.Popen]:
        with subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, **environment}) as process:
            try:
                yield process
            finally:
                process.kill()

    def build_by_hand(self, source: Path) -> Path:
        """Compiles with g++ and the flags of pkg-config, which quotes the space in the prefix."""
        def ask(*what: str) -> str:
            return run("pkg-config", *what, "signalbox", PKG_CONFIG_PATH=self.prefix / "lib/pkgconfig")

        self.assertEqual(self.version(), ask("--modversion").strip())
        flags = shlex.split(ask("--cflags", "--static", "--libs"))
        run("g++", "-std=c++20", source, "-o", self.folder / "by_hand", *flags)
        return self.folder / "by_hand"

    def version(self) -> str:
        return run(self.prefix / "bin/signalbox", "version").split()[1]


if __name__ == "__main__":
    unittest.main()
