#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the versions of libraries that signalbox compiles with: the error texts of
conf/cmake/SignalboxVersions.cmake, FindCAF's reading of a version, and that docs/versions.md, the
checks in headers and the product's code agree."""

import re
import subprocess
import tempfile
import unittest
from fnmatch import fnmatch
from pathlib import Path

from tidy import PRODUCT, strip

CHECKOUT = Path(__file__).resolve().parents[2]
CMAKE = CHECKOUT / "conf/cmake"
SERIES = dict(re.findall(r"^set\(SIGNALBOX_SERIES_(\w+) ([0-9.]+)\)$",
                         (CMAKE / "SignalboxVersions.cmake").read_text(encoding="utf-8"), re.MULTILINE))

# The page's rows with such a word in the first column name all files of the product that use it.
WORDS = (
    "BlockingUnaryCallImpl", "CallHook", "CallOpSetInterface", "CallOpGenericRecvMessage", "CallOpSendMessage",
    "InterceptionHookPoints", "InterceptorBatchMethods", "grpcpp/impl/codegen", "CallbackUnaryHandler",
    "ClientAsyncReaderFactory", "grpc_call_get_peer", "grpc_completion_queue_functor", "inlineable",
    "CreateCustomInsecureChannelFromFd", "StaticDataCertificateProvider", "ExternalCertificateVerifier",
    "CAF_ALLOW_UNSAFE_MESSAGE_TYPE", "CAF_VERSION", "caf::atom", "reacts_to", "anon_send", "delayed_send",
    "set_down_handler", "set_exit_handler", "set_exception_handler", "self->state", "set_current_actor_system",
    "test_coordinator",
    "LogSilencer", "Arena::CreateMessage", "full_name()", "JsonParseOptions", "JsonStringToMessage", "JsonToBinaryString",
    "BinaryToJsonString", "internal::VersionString",
    "RE2::Set", "ErrorPatternTooLarge", "StringPiece", "max_mem",
)


def said_by(script: str) -> str:
    """What cmake prints for a script that calls signalbox_wrong_series."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.cmake"
        path.write_text(f'include("{CMAKE}/SignalboxVersions.cmake")\n{script}', encoding="utf-8")
        return subprocess.run(["cmake", "-P", path], check=True, capture_output=True, text=True).stderr


def wrong_series(name: str, found: str) -> str:
    return said_by(f'signalbox_wrong_series({name} "{found}" text)\nmessage("<${{text}}>")').strip()[1:-1]


class SeriesTest(unittest.TestCase):
    def test_a_version_of_the_series_has_no_error(self) -> None:
        for name, series in SERIES.items():
            for found in (series, f"{series}.0", f"{series}.12"):
                with self.subTest(name=name, found=found):
                    self.assertEqual(wrong_series(name, found), "")

    def test_an_error_says_what_is_needed_what_was_found_and_the_page(self) -> None:
        for found in ("1.5", "1.52.0", "1.510.0", "11.51.0", "2.51.0"):
            with self.subTest(found=found):
                text = wrong_series("gRPC", found)
                self.assertIn(f"signalbox needs gRPC 1.51, found {found}: docs/versions.md", text)

    def test_a_version_that_is_not_known_is_another_one(self) -> None:
        self.assertIn("needs CAF 0.17, found a version without a number", wrong_series("CAF", ""))


class FindCafTest(unittest.TestCase):
    def version(self, headers: dict[str, str]) -> str:
        """The version that FindCAF finds in these headers of CAF."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for path, text in {"actor_system.hpp": "", **headers}.items():
                (folder / "caf" / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / "caf" / path).write_text(text, encoding="utf-8")
            # The target exists already, so FindCAF needs no compiler.
            (folder / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.25)\nproject(caf_version NONE)\n"
                f'list(APPEND CMAKE_MODULE_PATH "{CMAKE}")\nadd_library(CAF::core INTERFACE IMPORTED)\n'
                "find_package(CAF REQUIRED)\nmessage(STATUS \"<${CAF_VERSION}>\")\n", encoding="utf-8")
            done = subprocess.run(
                ["cmake", "-S", folder, "-B", folder / "build", f"-DCAF_INCLUDE_DIR={folder}",
                 f"-DCAF_CORE_LIBRARY={folder}/libcaf_core.so"], check=True, capture_output=True, text=True)
            return re.findall(r"<(.*)>", done.stdout)[0]

    def test_a_number_in_config_hpp(self) -> None:
        self.assertEqual(self.version({"config.hpp": "#define CAF_VERSION 1706\n"}), "0.17.6")
        self.assertEqual(self.version({"config.hpp": "#define CAF_VERSION 1906\n"}), "0.19.6")

    def test_a_text_in_build_config_hpp(self) -> None:
        headers = {"config.hpp": '#include "caf/detail/build_config.hpp"\n',
                   "detail/build_config.hpp": '#define CAF_VERSION 0100\n#define CAF_VERSION_STR "1.1.0"\n'}
        self.assertEqual(self.version(headers), "1.1.0")

    def test_no_version(self) -> None:
        self.assertEqual(self.version({"config.hpp": ""}), "")


class AgreementTest(unittest.TestCase):
    def text(self, path: str) -> str:
        return (CHECKOUT / path).read_text(encoding="utf-8")

    def test_the_page_and_the_headers_name_the_same_series(self) -> None:
        page = self.text("docs/versions.md")
        for name, shown in (("gRPC", "gRPC"), ("CAF", "CAF"), ("Protobuf", "protobuf")):
            with self.subTest(name=name):
                self.assertRegex(page, rf"(?m)^\| \[{shown}\]\([^)]*\) \| {re.escape(SERIES[name])} \|")
        major, minor = SERIES["gRPC"].split(".")
        access = self.text("actors/io/grpc_access.hpp")
        self.assertIn(f"GRPC_CPP_VERSION_MAJOR == {major} && GRPC_CPP_VERSION_MINOR == {minor}", access)
        self.assertIn(f"signalbox needs gRPC {SERIES['gRPC']}, found ", access)
        minor = int(SERIES["CAF"].split(".")[1])
        caf = self.text("actors/protocol/caf_version.hpp")
        self.assertIn(f"CAF_VERSION >= {minor}00 && CAF_VERSION < {minor + 1}00", caf)
        self.assertIn(f"signalbox needs CAF {SERIES['CAF']}, found ", caf)

    def test_every_check_names_the_page(self) -> None:
        for path in ("actors/io/grpc_access.hpp", "actors/protocol/caf_version.hpp",
                     "conf/cmake/SignalboxVersions.cmake", "conf/debian/at_packaging.cmake"):
            with self.subTest(path=path):
                self.assertIn("docs/versions.md", self.text(path))

    def test_the_page_names_files_of_the_checkout(self) -> None:
        named = set(re.findall(r"`((?:actors|channel|conf|lb|metrics|tests|tools|xds)/[\w./]+)`", self.text("docs/versions.md")))
        self.assertGreater(len(named), 20)
        for path in sorted(named):
            with self.subTest(path=path):
                stem = CHECKOUT / path
                self.assertTrue(stem.exists() or list(stem.parent.glob(f"{stem.name}.?pp")), path)

    def test_the_page_names_each_file_that_uses_a_word_of_its_rows(self) -> None:
        rows = [line.split(" | ") for line in self.text("docs/versions.md").splitlines() if line.startswith("| ")]
        files = [path for folder in PRODUCT for path in (CHECKOUT / folder).rglob("*.?pp")]
        codes = {str(path.relative_to(CHECKOUT)): strip(path.read_text(encoding="utf-8"), strings_too=True) for path in files}
        for word in WORDS:
            with self.subTest(word=word):
                users = [path for path, code in codes.items() if re.search(re.escape(word) + r"(?!\w)", code)]
                self.assertTrue(users)
                names = [name for row in rows if word in row[0] for name in re.findall(r"`([^`]+)`", row[1])]
                self.assertEqual([path for path in users if not any(fnmatch(path, name) or path.rsplit(".", 1)[0] == name
                                                                    for name in names)], [])


if __name__ == "__main__":
    unittest.main()
