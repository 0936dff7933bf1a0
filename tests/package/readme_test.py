#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the code in the documents with the installed package. The blocks of the quick start are
pasted into a shell in an empty folder, the code for embedding is compiled, and the output of each
recipe is compared.

    sh block ─▶ the shell, which ends with the first command that fails        text block ─▶ a line that must come
"""

import os
import re
import socket
import textwrap
import unittest
from pathlib import Path
from typing import NamedTuple

from installed import CHECKOUT, free_ports, installation, outside, run
from shell import Shell


def page(name: str) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


README = page("README.md")
EMBED = page("docs/embed.md")
OPERATE = page("docs/operate.md")
QUICKSTART = page("docs/quickstart.md")
SESSIONS = page("docs/sessions.md")


class Block(NamedTuple):
    language: str
    text: str


def blocks_of(text: str, mark: str) -> list[Block]:
    """The fenced code blocks between the marks, in order."""
    between = re.search(rf"<!-- {mark}: begin -->\n(.*?)<!-- {mark}: end -->", text, re.DOTALL)
    if between is None:
        raise AssertionError(f"nothing is marked {mark}")
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", between[1], re.DOTALL | re.MULTILINE)]


def play(blocks: list[Block], shell: Shell) -> None:
    for block in blocks:
        if block.language == "sh":
            shell.paste(block.text)
        elif block.language == "text":
            shell.expect(block.text)
        else:
            raise AssertionError(f"a reader cannot paste {block.language}:\n{block.text}")


def quick_start(ports: list[int]) -> list[Block]:
    """The blocks of the quick start, with these two ports in place of its own."""
    blocks = blocks_of(QUICKSTART, "quickstart")
    taken = dict(zip(("50051", "50052"), map(str, ports)))
    fresh = [Block(b.language, re.sub("50051|50052", lambda m: taken[m[0]], b.text)) for b in blocks]
    if fresh == blocks:
        raise AssertionError("the quick start has other ports")
    return fresh


def without_chance(table: str) -> list[str]:
    """The lines of a table of `signalbox dump` without ports and ages, which differ in each run."""
    text = re.sub(r"127\.0\.0\.\d+:\d+", "HOST:PORT", table)
    text = re.sub(r"\b\d+[smhd]\b", "AGE", text)
    return [re.sub(" +", " ", line) for line in text.splitlines()]


class ReadmeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = outside()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.prefix = installation()

    def test_the_quick_start_works_by_copy_and_paste(self) -> None:
        fresh = quick_start(free_ports(2))
        self.assertLessEqual({"sh", "text"}, {block.language for block in fresh})
        environment = {"CMAKE_PREFIX_PATH": self.prefix, "CMAKE_BUILD_PARALLEL_LEVEL": 2,
                       "PATH": f"{self.prefix}/bin:{os.environ['PATH']}"}
        folder = self.folder / "quickstart"
        folder.mkdir()
        with Shell(folder, **environment) as shell:
            play(fresh, shell)
        self.refuse_a_taken_port(folder / "work/build/server")

    def refuse_a_taken_port(self, server: Path) -> None:
        with socket.socket() as taken:
            # Sockets share a port if each sets SO_REUSEPORT. The server must not set it.
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assertIn(f"server: cannot listen on 127.0.0.1:{port}: is its port taken?\n",
                          run(server, "a", port, fails=True))

    def test_a_running_demo_can_be_looked_into(self) -> None:
        first, shown, then = blocks_of(OPERATE, "dump")
        self.assertEqual(("sh", "text", "sh"), (first.language, shown.language, then.language))
        folder = self.folder / "dump"
        folder.mkdir()
        with Shell(folder, PATH=f"{self.prefix}/bin:{os.environ['PATH']}") as shell:
            shell.paste(first.text)
            self.assertEqual(*map(without_chance, (shown.text, shell.printed())))
            shell.paste(then.text)
            self.assertIn('"client_status": "ACKED"', shell.printed())

    def test_a_call_is_explained_as_shown(self) -> None:
        self.prints_as_shown("explain")

    def test_what_a_dead_zone_means_is_planned_as_shown(self) -> None:
        self.prints_as_shown("plan")

    def prints_as_shown(self, mark: str) -> None:
        command, shown = blocks_of(OPERATE, mark)
        self.assertEqual(("sh", "text"), (command.language, shown.language))
        folder = self.folder / mark
        (folder / "opt").mkdir(parents=True)
        (folder / "opt/signalbox").symlink_to(self.prefix)  # The quick start's install folder.
        with Shell(folder, PATH=f"{self.prefix}/bin:{os.environ['PATH']}", HOME=folder) as shell:
            shell.paste(command.text)
            self.assertEqual(shown.text, shell.printed())

    def test_the_world_with_sessions_is_valid_and_keeps_them(self) -> None:
        folder = self.folder / "session"
        (folder / "work").mkdir(parents=True)
        yaml, *recipe = (block for block in blocks_of(SESSIONS, "session") if block.language != "cpp")
        (folder / "work/session.yaml").write_text(yaml.text, encoding="utf-8")
        run(self.prefix / "bin/signalbox", "check", folder / "work/session.yaml")
        self.assertEqual(["sh", "text"], [block.language for block in recipe])
        with Shell(folder, PATH=f"{self.prefix}/bin:{os.environ['PATH']}") as shell:
            shell.paste(recipe[0].text)
            self.assertEqual(recipe[1].text, shell.printed())

    def test_the_lines_to_embed_compile(self) -> None:
        cmake, cpp = blocks_of(README, "embed")
        self.assertEqual(("cmake", "cpp"), (cmake.language, cpp.language))
        (http,) = blocks_of(EMBED, "http")
        session, session_over_http = (b.text for b in blocks_of(SESSIONS, "session") if b.language == "cpp")
        folder = self.folder / "embed"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(EMBED_CMAKE + cmake.text + EMBED_STUB, encoding="utf-8")
        (folder / "orders.proto").write_text(EMBED_PROTO, encoding="utf-8")
        parts = {"BODY": cpp.text, "HTTP": http.text, "SESSION": session, "COOKIE": session_over_http}
        includes = [line for text in parts.values() for line in text.splitlines() if line.startswith("#include")]
        self.assertEqual(2, len(includes))
        source = "\n".join(includes) + EMBED_CPP
        for name, text in parts.items():
            lines = (line for line in text.splitlines() if line not in includes)
            source = source.replace(name, textwrap.indent("\n".join(lines), "  "))
        (folder / "my_server.cpp").write_text(source, encoding="utf-8")
        run("protoc", "--cpp_out=.", "--grpc_out=.", f"--plugin=protoc-gen-grpc={which('grpc_cpp_plugin')}",
            "orders.proto", cwd=folder)
        run("cmake", "-G", "Ninja", "-B", "build", cwd=folder, CMAKE_PREFIX_PATH=self.prefix)
        run("cmake", "--build", "build", "-j2", cwd=folder)


class ShellTest(unittest.TestCase):
    """Tests that the test of the quick start can fail."""

    def played(self, text: str) -> None:
        with outside() as folder, Shell(Path(folder), patience=2) as shell:
            play(blocks_of(f"<!-- x: begin -->\n{text}<!-- x: end -->\n", "x"), shell)

    def test_what_is_right_passes(self) -> None:
        self.played("```sh\nx=1\n```\nthen\n```sh\n(echo \"x: $x \") &\n```\n```text\nx: 1\n```\n")

    def test_what_is_broken_fails(self) -> None:
        for text in ("```sh\nfalse\n```\n",
                     "```sh\nfalse\ntrue\n```\n",
                     "```sh\necho b\n```\n```text\na\n```\n",
                     "```sh\necho a\n```\n```sh\necho b\n```\n```text\na\n```\n",
                     "```yaml\na: 1\n```\n"):
            with self.subTest(text=text), self.assertRaises(AssertionError):
                self.played(text)
        with self.assertRaises(AssertionError):
            blocks_of(README, "nothing of this name")


def which(program: str) -> str:
    return run("which", program).strip()


EMBED_CMAKE = """cmake_minimum_required(VERSION 3.25)
project(my_server CXX)
add_executable(my_server my_server.cpp)
"""
EMBED_STUB = """
target_sources(my_server PRIVATE orders.pb.cc orders.grpc.pb.cc)
target_link_libraries(my_server PRIVATE gRPC::grpc++ protobuf::libprotobuf)
target_compile_options(my_server PRIVATE -Wall -Wextra -Wno-unused-parameter)
"""
EMBED_PROTO = """syntax = "proto3";
package orders.v1;
service Orders { rpc Place(PlaceRequest) returns (PlaceReply); }
message PlaceRequest {}
message PlaceReply {}
"""
# A user's server. The test adds the includes and the code of the document to this text.
EMBED_CPP = """
#include <chrono>
#include <string>
#include <grpcpp/grpcpp.h>
#include "orders.grpc.pb.h"

int fail(const absl::Status& status) { return status.ok() ? 0 : 1; }
void send_to(const std::string& address) {}
int http_get(const std::string& address, const std::string& path) { return 200; }
int code_of(int http_status) { return http_status == 200 ? 0 : 2; }

int get(const std::string& path, std::chrono::steady_clock::time_point deadline) {
HTTP
  return status;
}

void log(const absl::Status& status) {}

struct CookieHeader : signalbox::HeaderSource {
  explicit CookieHeader(std::string header) : cookie(std::move(header)) {}
  void each(absl::string_view name, absl::FunctionRef<void(absl::string_view)> visit) const override {
    if (name == "cookie" && !cookie.empty()) visit(cookie);
  }
  std::string cookie;
};

int place(orders::v1::Orders::Stub* stub) {
  orders::v1::PlaceRequest request;
  orders::v1::PlaceReply reply;
SESSION
  return status.ok() ? 0 : 1;
}

void pick(const signalbox::Router* router, signalbox::CookieJar& jar, const std::string& path,
          std::chrono::steady_clock::time_point deadline) {
COOKIE
}

int main() {
  grpc::ClientContext context;
  orders::v1::PlaceRequest request;
  orders::v1::PlaceReply reply;
BODY
}
"""

if __name__ == "__main__":
    unittest.main()
