#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the package as a user gets it: installed, moved, and used from a folder outside of the
checkout. One test has the checkout as a subfolder of a project instead."""

import os
import re
import shlex
import shutil
import unittest
from pathlib import Path

from installed import BUILD, CHECKOUT, FIRST_PREFIX, install, outside, results, run, serving_world

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
                self.assertEqual([], [place for place in places if re.search(re.escape(place) + rb"(?![\w-])", content)])

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

    def test_another_grpc_or_protobuf_is_refused_by_pkg_config(self) -> None:
        for package, version, bound in (("grpc++", "1.50.9", ">= 1.51"), ("grpc++", "1.62.0", "< 1.52"),
                                        ("protobuf", "3.20.3", ">= 3.21"), ("protobuf", "22.0", "< 3.22")):
            with self.subTest(package=package, version=version):
                false = self.folder / f"{package} {version}"
                false.mkdir()
                (false / f"{package}.pc").write_text(f"Name: p\nDescription: p\nVersion: {version}\n", encoding="utf-8")
                answer = run("pkg-config", "--static", "--libs", "signalbox", fails=True,
                             PKG_CONFIG_PATH=f"{false}:{self.prefix / 'lib/pkgconfig'}")
                self.assertIn(f"Package '{package}' has version '{version}', required version is '{bound}'", answer)

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
        for name in ("lb/pick/router.hpp", "messages/ids.hpp", "messages/pick.hpp"):
            trap = source / "own" / name
            trap.parent.mkdir(parents=True, exist_ok=True)
            trap.write_text("#error included by signalbox\n", encoding="utf-8")
        self.configure(source)
        run("cmake", "--build", source / "build", "-j2")
        by_hand = self.build_by_hand(source / "pick.cpp")

        with serving_world(source / "build/server", self.folder / "world.yaml", WORLD) as (port, world):
            self.assertEqual(["hello package"], results(run(source / "build/dropin", **world)))
            self.assertEqual([f"127.0.0.1:{port}"], results(run(source / "build/pick", **world)))
            self.assertEqual([f"127.0.0.1:{port}"], results(run(by_hand, **world)))

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
