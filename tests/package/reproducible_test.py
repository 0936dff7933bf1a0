#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `./run reproducible` can fail, and says which file or symbol differs."""

import contextlib
import io
import shutil
import unittest
from pathlib import Path
from unittest import mock

import reproducible
from installed import CHECKOUT, outside, run


class ReproducibleTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = outside()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def package(self, build: str, text: str) -> dict[str, Path]:
        tree = self.folder / build / "tree"
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text("Package: p\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: p\n",
                                             encoding="utf-8")
        (tree / "usr").mkdir()
        (tree / "usr/same").write_text("same", encoding="utf-8")
        (tree / "usr/file").write_text(text, encoding="utf-8")
        deb = self.folder / build / "p_1_all.deb"
        run("dpkg-deb", "--root-owner-group", "--build", "-Zgzip", tree, deb, SOURCE_DATE_EPOCH=1)
        return {deb.name: deb}

    def compared(self, first: dict[str, Path], second: dict[str, Path]) -> tuple[int, str]:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            return reproducible.compare(first, second), said.getvalue()

    def test_equal_packages_are_equal(self) -> None:
        wrong, said = self.compared(self.package("a", "x"), self.package("b", "x"))
        self.assertEqual(0, wrong)
        self.assertRegex(said, r"^equal: p_1_all\.deb, \d+ bytes\n$")

    def test_the_file_that_differs_is_named(self) -> None:
        wrong, said = self.compared(self.package("a", "x"), self.package("b", "y"))
        self.assertEqual((1, "DIFFERS: p_1_all.deb\n  usr/file\n"), (wrong, said))

    def test_what_only_one_build_made_is_named(self) -> None:
        self.assertEqual((1, "only one build made p_1_all.deb\n"), self.compared(self.package("a", "x"), {}))

    def test_a_symbol_that_is_not_in_the_list_is_named(self) -> None:
        listed = self.library(self.folder / "listed", "void listed() {}")
        for source, status, said in (
                ("void listed() {}", 0, "equal: the symbols of libsignalbox.so.1.2.3\nequal: libsignalbox.so.1.2.3, "),
                ("void listed() {} void added() {}", 1, "  +added()\n"),
                ("void other() {}", 1, "  -listed()\n  +other()\n")):
            def build(folder: Path, *_: object, source: str = source) -> Path:
                shutil.copytree(CHECKOUT / "conf/shared", folder / "conf/shared")
                run("python3", "-B", folder / "conf/shared/exports.py", "renew", listed)
                return self.library(folder, source).parent

            with self.subTest(source=source), contextlib.redirect_stdout(io.StringIO()) as printed, \
                    mock.patch.multiple(reproducible, BASE=self.folder / "base", build=build, git=lambda *_: b"", say=lambda _: None):
                self.assertEqual(status, reproducible.main([]))
                self.assertIn(said, printed.getvalue())

    def library(self, folder: Path, source: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        file, made = self.folder / "source.cpp", folder / "libsignalbox.so.1.2.3"
        file.write_text(source, encoding="utf-8")
        run("g++", "-shared", "-fPIC", "-nostdlib", file, "-o", made)
        return made


if __name__ == "__main__":
    unittest.main()
