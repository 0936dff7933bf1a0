#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a library of signalbox and a program twice, in two folders, with the options of the
Debian packages. Both builds must have the same bytes. The program and a shared library must have
all protections. `./run reproducible` compares the whole packages."""

import json
import shutil
import unittest
from pathlib import Path

from elf import PROTECTIONS, protections_of
from installed import CHECKOUT, outside, run

# A project with the settings of signalbox's own, but with three targets only.
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(two_builds VERSION 1.2.3 LANGUAGES C CXX)
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_SOURCE_DIR}/conf/cmake")
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(SignalboxTargets)
include(SignalboxPrecompiled)
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
signalbox_precompiled(core absl::strings absl::status absl::statusor absl::function_ref absl::hash absl::flat_hash_map)
add_subdirectory(messages)
add_executable(program program.cpp)
target_link_libraries(program PRIVATE signalbox::messages)
add_library(shared SHARED program.cpp)
target_link_libraries(shared PRIVATE signalbox::messages)
"""
# It copies its name with a function and into an array that are checked.
PROGRAM = """
#include <cstdio>
#include <cstring>

#include "messages/connectivity.hpp"

int main(int, char** argv) {
  char name[200];
  std::memcpy(name, argv[0], std::strlen(argv[0]) + 1);
  std::puts(name);
  std::puts(std::string(signalbox::to_string(signalbox::ConnectivityState::kReady)).c_str());
  std::puts(__FILE__);
}
"""
PRODUCTS = ("messages/libsignalbox_messages.a", "program", "libshared.so")


def build(folder: Path, **environment: str) -> Path:
    """ccache is left out, because it would give both builds the same objects."""
    preset = next(p for p in json.loads((CHECKOUT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
                  if p["name"] == "package")
    folder.mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
    (folder / "program.cpp").write_text(PROGRAM, encoding="utf-8")
    for name in ("messages", "conf"):
        shutil.copytree(CHECKOUT / name, folder / name)
    options = [f"-D{name}={value}" for name, value in preset["cacheVariables"].items() if name.startswith("SIGNALBOX_")]
    run("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release", "-DSIGNALBOX_CCACHE=OFF",
        *options, **environment)
    run("cmake", "--build", folder / "build", "-j2", **environment)
    return folder / "build"


class TwoBuildsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = outside()
        cls.addClassCleanup(folder.cleanup)
        root = Path(folder.name)
        cls.first = build(root / "a", TZ="UTC", LC_ALL="C")
        cls.second = build(root / "another folder/with a longer name", TZ="Asia/Tokyo", LC_ALL="C.UTF-8")

    def test_two_folders_build_the_same_bytes(self) -> None:
        for product in PRODUCTS:
            with self.subTest(product=product):
                self.assertEqual((self.first / product).read_bytes(), (self.second / product).read_bytes())

    def test_a_program_and_a_shared_library_have_all_protections(self) -> None:
        for product in ("program", "libshared.so"):
            with self.subTest(product=product):
                self.assertEqual(list(PROTECTIONS), protections_of(self.first / product))

    def test_a_missing_protection_is_found(self) -> None:
        source, weak = self.first / "weak.cpp", self.first / "weak"
        source.write_text("int main() { return 0; }\n", encoding="utf-8")
        for kind, found in ((["-no-pie"], []), (["-shared", "-fPIC", "-Wl,-soname,weak"], ["position-independent"])):
            with self.subTest(kind=kind):
                run("g++", *kind, "-Wl,-z,norelro", "-Wl,-z,lazy", "-z", "execstack", source, "-o", weak)
                self.assertEqual(found, protections_of(weak))


if __name__ == "__main__":
    unittest.main()
