#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the Debian packages that cpack makes of this build tree: their files, dependencies, man
pages, changelog and licences, and lintian's findings. Also tests the container's list of files, and
the verdict of bare_root.py."""

import argparse
import contextlib
import gzip
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import bare_root
from installed import BUILD, CHECKOUT, outside, run

sys.path.insert(0, str(CHECKOUT / "conf/debian"))
import changelog  # noqa: E402  pylint: disable=wrong-import-position
import man_pages  # noqa: E402  pylint: disable=wrong-import-position

MAINTAINER = {"DEBFULLNAME": "Ann Packager", "DEBEMAIL": "ann@signalbox.org"}
SECONDS = 1764126000  # 2025-11-26 03:00:00 UTC
DATE = "2025-11-26"
# lintian reports this tag because the test's build tree is configured for another prefix than /usr.
# It does not report the tag for the package of `./run package`.
OF_THE_PREFIX = "pkg-config-unavailable-for-cross-compilation"


def make(folder: Path) -> dict[str, Path]:
    """Makes the packages. Returns their files, by package name. gzip replaces the slower xz,
    because the packages are not kept."""
    run("cpack", "-G", "DEB", "-B", folder, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip", cwd=BUILD,
        SOURCE_DATE_EPOCH=SECONDS, **MAINTAINER)
    shutil.rmtree(folder / "_CPack_Packages")
    return {deb.name.split("_")[0]: deb for deb in folder.glob("*.deb")}


def need(test: unittest.TestCase, tool: str) -> None:
    """Skips the test if there is no such tool. With CI=true the test fails."""
    if shutil.which(tool) is None:
        if os.environ.get("CI"):
            test.fail(f"there is no {tool}: install it")
        print(f"SKIPPED: there is no {tool}; install it", file=sys.stderr)
        test.skipTest(f"there is no {tool}")


class DebianTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = outside()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.debs = make(cls.folder / "made")
        cls.trees = {}
        for package, deb in cls.debs.items():
            cls.trees[package] = cls.folder / package
            run("dpkg-deb", "--raw-extract", deb, cls.trees[package])
        cls.tools, cls.dev = (cls.trees.get(name) for name in ("signalbox-tools", "libsignalbox-dev"))

    def field(self, package: str, name: str) -> str:
        return run("dpkg-deb", "--field", self.debs[package], name).strip()

    def version(self) -> str:
        return run(self.tools / "usr/bin/signalbox", "version").split()[1]

    def test_there_are_two_packages(self) -> None:
        self.assertEqual({"signalbox-tools", "libsignalbox-dev"}, set(self.debs))
        for package in self.debs:
            self.assertEqual(f"{self.version()}-0upstream1", self.field(package, "Version"))
            self.assertEqual("Ann Packager <ann@signalbox.org>", self.field(package, "Maintainer"))
            self.assertRegex(self.field(package, "Description"), r"\A[a-z].{20,70}\n (.+\n)+ \.\n( .+\n?)+\Z")

    def test_the_tools_are_the_command_and_documents(self) -> None:
        files = {p.relative_to(self.tools).as_posix() for p in (self.tools / "usr").rglob("*") if not p.is_dir()}
        pages = {f for f in files if re.fullmatch(r"usr/share/man/man1/signalbox(-[a-z]+)*\.1\.gz", f)}
        self.assertEqual({"usr/bin/signalbox", "usr/share/doc/signalbox-tools/changelog.Debian.gz",
                          "usr/share/doc/signalbox-tools/copyright"}, files - pages)
        self.assertIn("There are no symbols", "There are " + run("nm", self.tools / "usr/bin/signalbox").split(": ")[-1])
        for library in ("libc6", "libstdc++6", "libgrpc++1", "libcaf-core", "libssl3"):
            self.assertRegex(self.field("signalbox-tools", "Depends"), rf"(^|, ){re.escape(library)}[0-9.a-z]* \(")

    def test_what_is_installed_is_in_one_of_the_packages(self) -> None:
        stage = self.folder / "all"
        run("cmake", "--install", BUILD, "--prefix", "/usr", DESTDIR=stage)
        self.addCleanup(shutil.rmtree, stage)
        installed = {p.relative_to(stage) for p in stage.rglob("*") if not p.is_dir()}
        packed = {p.relative_to(tree) for tree in self.trees.values() for p in tree.rglob("*")
                  if p.is_symlink() or not p.is_dir()}
        self.assertEqual(set(), installed - packed)
        added = {p.as_posix() for p in packed - installed if p.parts[0] != "DEBIAN"}
        self.assertEqual(set(), {f for f in added if not re.match(r"usr/share/(man/man1|doc/(signalbox-tools|libsignalbox-dev))/", f)})

    def test_a_program_is_built_against_the_series_of_the_archives(self) -> None:
        relations = self.field("libsignalbox-dev", "Depends").split(", ")
        bounded = {}
        for relation in relations:
            name, sign, version = re.fullmatch(r"(\S+?)(?: \((>=|<<) (\S+)\))?", relation).groups()
            if sign:
                bounded.setdefault(name, []).append(sign)
                here = run("dpkg-query", "-W", "-f", "${Version}", name)
                run("dpkg", "--compare-versions", here, sign, version)
        self.assertEqual({">=", "<<"}, set().union(*bounded.values()))
        self.assertTrue(all(signs == [">=", "<<"] for signs in bounded.values()), bounded)
        self.assertLessEqual({"libgrpc++-dev", "libprotobuf-dev", "libabsl-dev", "libcaf-dev"}, set(bounded))
        text = (CHECKOUT / "conf/packages.txt").read_text(encoding="utf-8")
        build = re.search(r"^# build\n(.*?)^# ", text, re.DOTALL | re.MULTILINE)[1].split()
        self.assertEqual(set(), {relation.split()[0] for relation in relations} - set(build))
        self.assertEqual(f"signalbox-tools (= {self.version()}-0upstream1)", self.field("libsignalbox-dev", "Recommends"))

    def test_a_program_is_built_against_the_version_of_caf(self) -> None:
        here = run("dpkg-query", "-W", "-f", "${Version}", "libcaf-dev")
        major, minor, patch = map(int, re.match(r"(\d+)\.(\d+)\.(\d+)", here).groups())
        self.assertIn(f", libcaf-dev (>= {major}.{minor}.{patch}), libcaf-dev (<< {major}.{minor}.{patch + 1}~), ",
                      f", {self.field('libsignalbox-dev', 'Depends')}, ")

    def test_each_package_has_its_changelog_and_copyright(self) -> None:
        wanted = changelog.items_of((CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8").split("## [", 1)[1])
        for package, tree in self.trees.items():
            documents = tree / "usr/share/doc" / package
            text = gzip.decompress((documents / "changelog.Debian.gz").read_bytes()).decode()
            self.assertEqual([line for line in wanted if line.startswith("  * ")],
                             [line for line in text.splitlines() if line.startswith("  * ")])
            file = self.folder / "changelog"
            file.write_text(text, encoding="utf-8")
            said = run("dpkg-parsechangelog", "-l", file)
            self.assertIn(f"Version: {self.version()}-0upstream1\n", said)
            self.assertIn(f"Timestamp: {SECONDS}\n", said)
            self.assertNotIn("dpkg-parsechangelog: warning", said)
            self.assertEqual((CHECKOUT / "conf/debian/copyright").read_bytes(), (documents / "copyright").read_bytes())

    def test_the_licence_of_a_file_of_others_is_told(self) -> None:
        text = (CHECKOUT / "conf/debian/copyright").read_text(encoding="utf-8")
        folders = {p.parent.relative_to(CHECKOUT).as_posix() for folder in ("actors", "channel", "conf", "lb", "messages",
                   "metrics", "tools", "xds") for p in (CHECKOUT / folder).rglob("LICENSE*")}
        self.assertEqual(folders, {f.removesuffix("/*") for f in re.findall(r"^Files: (\S+/\*)$", text, re.MULTILINE)})
        words = " ".join(text.replace("\n .\n", "\n").split())
        for folder in folders:
            licence = (CHECKOUT / folder / "LICENSE").read_text(encoding="utf-8")
            permission = licence[licence.index("Permission is hereby"):]
            self.assertIn(" ".join(permission.split()), words)
            self.assertIn(re.search(r"\d{4} (.*)", licence)[1], text)

    def test_a_man_page_says_what_the_help_says(self) -> None:
        need(self, "man")
        manual = self.tools / "usr/share/man/man1"
        pages = {page.name.removesuffix(".1.gz"): page for page in manual.iterdir()}
        waiting, seen = [["signalbox"]], set()
        while waiting:
            words = waiting.pop()
            name = "-".join(words)
            seen.add(name)
            text = run(self.tools / "usr/bin/signalbox", *words[1:], "--help")
            told = man_pages.parse(text)
            waiting += [[*words, command] for command, _ in told.groups.get("Subcommands", [])]
            shown = self.rendered(pages[name])
            with self.subTest(page=name):
                self.assertIn(f"{name} - ", shown)
                self.assertIn(DATE, shown)
                # Words are compared, because a man page breaks lines at other places than the help.
                missing = set(text.replace("`", "").split()) - set(shown.split())
                titles = {"Usage:", "Options:", "Positionals:", "Subcommands:", "Examples:", "Example:", "Exit", "status:",
                          "status,", "Try", "COMMAND", "'signalbox", "--help'.", "signalbox:", *"".join(text.partition("Usage")[0]).split()}
                titles |= {command for command, _ in told.groups.get("Subcommands", [])}
                self.assertEqual(set(), missing - titles)
        self.assertEqual(seen, set(pages))

    def rendered(self, page: Path) -> str:
        answer = subprocess.run(["man", "--warnings=w", "-E", "UTF-8", "-l", str(page)], check=True, capture_output=True,
                                text=True, env={**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""})
        self.assertEqual("", answer.stderr)
        return re.sub(".\b", "", answer.stdout)

    def test_the_same_tree_makes_the_same_packages(self) -> None:
        again = make(self.folder / "again")
        for package, deb in self.debs.items():
            self.assertEqual(deb.read_bytes(), again[package].read_bytes(), package)

    def test_lintian_finds_nothing(self) -> None:
        need(self, "lintian")
        said = run("lintian", "--tag-display-limit", "0", "--fail-on", "none", self.debs["signalbox-tools"],
                   self.with_one_archive())
        tags = [line for line in said.splitlines() if re.match(r"[A-Z]: ", line) and OF_THE_PREFIX not in line]
        self.assertEqual([], tags)

    def with_one_archive(self) -> Path:
        """A copy of libsignalbox-dev with only its smallest archive. lintian would take minutes for
        all archives of a debug build."""
        tree = self.folder / "one archive"
        shutil.copytree(self.dev, tree, symlinks=True)
        archives = sorted(tree.rglob("*.a"), key=lambda p: p.stat().st_size)
        for archive in archives[1:]:
            archive.unlink()
        sums = tree / "DEBIAN/md5sums"
        kept = [line for line in sums.read_text(encoding="utf-8").splitlines() if (tree / line.split("  ", 1)[1]).exists()]
        sums.write_text("\n".join(kept) + "\n", encoding="utf-8")
        deb = self.folder / "one" / self.debs["libsignalbox-dev"].name
        deb.parent.mkdir()
        run("dpkg-deb", "--root-owner-group", "--build", "-Zgzip", tree, deb)
        return deb


class MissingToolTest(unittest.TestCase):
    def test_a_missing_tool_skips_a_test_that_needs_it_and_fails_it_in_ci(self) -> None:
        for name in ("test_a_man_page_says_what_the_help_says", "test_lintian_finds_nothing"):
            for ci, wanted in (("true", self.failureException), ("", unittest.SkipTest)):
                with self.subTest(test=name, ci=ci), mock.patch.dict(os.environ, CI=ci), \
                        mock.patch("shutil.which", return_value=None), self.assertRaisesRegex(wanted, "there is no "):
                    getattr(DebianTest(name), name)()


class ContainerTest(unittest.TestCase):
    """bare_root.py runs the last stage. No test has a container engine, which would build both."""

    def test_each_command_exists(self) -> None:
        lines = [said for stage in bare_root.stages() for word, said in stage if word == "RUN"]
        self.assertEqual(len(bare_root.stages()), len(lines))
        for words in (shlex.split(command) for line in lines for command in line.split("&&")):
            with self.subTest(command=words):
                self.assertTrue((CHECKOUT / words[0]).is_file() or shutil.which(words[0], path=bare_root.PATH))
                if words[0] == "./run":
                    run(CHECKOUT / "run", "help", *words[1:])

    def test_the_container_copies_all_that_the_build_reads(self) -> None:
        copied = {file for word, said in bare_root.stages()[0] if word == "COPY" for file in said.split()[:-1]}
        entries = {p.name for p in CHECKOUT.iterdir() if p.name != "build" and not p.name.startswith(".") and p.suffix != ".md"}
        self.assertEqual(entries | {"*.md"}, copied)


class BareRootTest(unittest.TestCase):
    def test_packages_that_are_not_there_are_named(self) -> None:
        said = run(sys.executable, "-B", CHECKOUT / "tests/package/bare_root.py", "a.deb", fails=True)
        self.assertRegex(said, "^bare_root: (there are not two packages: run ./run package|a root folder|there is no mmdebstrap)")

    def played(self, *steps: mock.Mock, make: mock.Mock) -> tuple[int, str]:
        """The exit status and the output of main() with these steps. No root is made."""
        with tempfile.TemporaryDirectory() as folder, io.StringIO() as said:
            options = argparse.Namespace(packages=[], root=Path(folder) / "root")
            with mock.patch.multiple(bare_root, arguments=lambda: options, make=make, release=lambda: "debian", STEPS=steps), \
                    contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
                bare_root.main()
            self.assertFalse(options.root.exists())
            return end.exception.code, said.getvalue()

    def test_steps_that_fail_are_told_and_the_others_are_played(self) -> None:
        passing = mock.Mock(__name__="the_first")
        failing = mock.Mock(__name__="the_second", side_effect=AssertionError("not so"))
        broken = mock.Mock(side_effect=subprocess.CalledProcessError(1, "mmdebstrap"))
        begin = "bare_root: a bare root, and the packages in it\n"
        first, second = "bare_root: the first\n", "bare_root: the second\nbare_root: FAILED: not so\n"
        for steps, make, status, told in (
                ((passing, passing), mock.Mock(), 0, f"{first}{first}2 steps in a bare debian, 0 failed\n"),
                ((failing, passing, failing), mock.Mock(), 1, f"{second}{first}{second}3 steps in a bare debian, 2 failed\n"),
                ((passing,), broken, 1, f"bare_root: FAILED: {broken.side_effect}\n1 steps in a bare debian, 1 failed\n")):
            with self.subTest(told):
                self.assertEqual((status, begin + told), self.played(*steps, make=make))


class ChangelogTest(unittest.TestCase):
    def test_older_versions_are_entries_of_their_own(self) -> None:
        text = ("# Changelog\n\n## [Unreleased]\n\n- New\n  thing.\n\n## [0.2.0] - 2026-02-01\n\n### Added\n\n- A [page](x.md).\n"
                "\n## [0.1.0] - 2026-01-01\n\nWords.\n\n- First.\n")
        built = changelog.datetime.fromtimestamp(SECONDS, changelog.timezone.utc)
        self.assertEqual(
            "signalbox (0.2.0-1) unstable; urgency=medium\n\n  * New thing.\n\n  [ Added ]\n  * A page.\n\n"
            " -- A <a@b>  Wed, 26 Nov 2025 03:00:00 +0000\n\n"
            "signalbox (0.1.0-1) unstable; urgency=medium\n\n  * First.\n\n -- A <a@b>  Thu, 01 Jan 2026 00:00:00 +0000\n",
            changelog.changelog(text, "0.2.0", "1", "A <a@b>", built))
        with self.assertRaisesRegex(SystemExit, "no version 0.3.0"):
            changelog.changelog(text, "0.3.0", "1", "A <a@b>", built)


class ManPageTest(unittest.TestCase):
    HELP = ("Does a thing\nUsage: x [OPTIONS]\n\nOptions:\n  -h,--help                   Help\n  --long-name-of-an-option NUMBER=1\n"
            "                              What it\n                              does\n\n.A `path` with \\.\n  kept   as is\n\n"
            "Exit status: 0 all\nwell.\nTry 'x --help'.\n")

    def test_the_parts_of_a_help_are_found(self) -> None:
        told = man_pages.parse(self.HELP)
        self.assertEqual(("Does a thing", "x [OPTIONS]"), (told.what, told.usage))
        self.assertEqual([("-h,--help", "Help"), ("--long-name-of-an-option NUMBER=1", "What it does")], told.groups["Options"])
        self.assertEqual(3, len(told.paragraphs))

    def test_what_roff_would_read_is_escaped(self) -> None:
        page = man_pages.page_of(["x"], self.HELP, "1", "2026-01-01").splitlines()
        self.assertIn(r"\&.A \fBpath\fR with \e.", page)
        self.assertIn("kept   as is", page)
        self.assertIn(r"\fB\-h,\-\-help\fR", page)


if __name__ == "__main__":
    unittest.main()
