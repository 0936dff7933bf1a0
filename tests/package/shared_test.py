#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests libsignalbox.so as a user gets it: the symbols that it exports, and programs that link it.
BUILD_SHARED_LIBS makes the installation: a build folder is configured with it, and gets what the
tested build has built. Only reproducible.py links an optimised and hardened one."""

import re
import shutil
import sys
import unittest
from pathlib import Path

from elf import protections_of
from installed import BUILD, CHECKOUT, install, outside, results, run, serving_world
from package_test import HERE, WORLD

sys.path.insert(0, str(CHECKOUT / "conf/shared"))
import exports  # noqa: E402  pylint: disable=wrong-import-position

RENEW = "\nIf this is meant: conf/shared/exports.py renew build/debug/libsignalbox.so"


class SharedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = outside()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        build = cls.folder / "build"
        run("cmake", "-G", "Ninja", "-S", CHECKOUT, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON",
            "-DSIGNALBOX_HARDENING=ON", "-DSIGNALBOX_BUILD_TESTS=OFF")
        cls.commands = run("ninja", "-C", build, "-t", "commands").splitlines()
        # An installation of archives fails: the folder has none.
        for file in (*BUILD.glob("libsignalbox.so*"), BUILD / "tools/signalbox"):
            shutil.copy2(file, build / file.relative_to(BUILD), follow_symlinks=False)
        cls.prefix = install(cls.folder, build)
        cls.library = cls.prefix / "lib/libsignalbox.so"

    def test_a_hardened_build_hardens_it(self) -> None:
        """two_builds_test shows what these options do. The tested build has only those protections
        that the linker gives by default."""
        # `all` links this one shared library.
        [link] = [line for line in self.commands if " -shared " in line]
        self.assertIn("-Wl,-z,relro -Wl,-z,now", link)
        compiled = [line for line in self.commands if " -c " in line]
        self.assertEqual([], [line for line in compiled if "-fstack-protector-strong" not in line or "-D_FORTIFY_SOURCE=2" not in line])
        self.assertLessEqual({"position-independent", "read-only relocations", "no executable stack"},
                             set(protections_of(self.library)))

    def test_it_exports_the_symbols_of_the_list(self) -> None:
        listed = exports.LIST.read_text(encoding="utf-8")
        said = exports.as_list(exports.symbols_of(str(self.library)))
        wanted, found = ({line for line in text.splitlines() if not line.startswith("#")} for text in (listed, said))
        self.assertEqual(([], []), (sorted(wanted - found), sorted(found - wanted)), RENEW)
        self.assertEqual(listed, said, RENEW)

    def test_each_symbol_is_signalboxs_own(self) -> None:
        for symbol in exports.symbols_of(str(self.library)):
            self.assertRegex(symbol, r"^((vtable|typeinfo|typeinfo name|VTT) for |(non-)?virtual thunk to )?signalbox::")

    def test_its_name_has_the_version_that_programs_need(self) -> None:
        version = run(self.prefix / "bin/signalbox", "version").split()[1]
        self.assertEqual(f"libsignalbox.so.{version}", self.library.resolve().name)
        soname = f"libsignalbox.so.{'.'.join(version.split('.')[:2])}"
        self.assertIn(f"Library soname: [{soname}]", run("readelf", "--dynamic", "--wide", self.library))
        self.assertTrue((self.prefix / "lib" / soname).is_symlink())

    def test_consumers_call_and_pick(self) -> None:
        source = self.folder / "consumer"
        shutil.copytree(HERE / "consumer", source)
        run("cmake", "-G", "Ninja", "-S", source, "-B", source / "build", CMAKE_PREFIX_PATH=self.prefix)
        run("cmake", "--build", source / "build", "-j2")
        by_hand = self.build_by_hand(source / "pick.cpp")
        with serving_world(source / "build/server", self.folder / "world.yaml", WORLD) as (port, world):
            self.assertEqual(["hello package"], results(run(source / "build/dropin", **world)))
            for pick in (source / "build/pick", by_hand):
                self.assertEqual([f"127.0.0.1:{port}"], results(run(pick, **world)))
            self.assertEqual([], results(run(source / "build/admin", **world)))
        for program in ("dropin", "pick", "admin"):
            self.links_the_library_alone(source / "build" / program)

    def build_by_hand(self, source: Path) -> Path:
        program = self.folder / "by_hand"
        flags = run("pkg-config", "--cflags", "--libs", "signalbox", PKG_CONFIG_PATH=self.prefix / "lib/pkgconfig")
        run("sh", "-c", f'g++ -std=c++20 "$0" -o "$1" -Wl,-rpath,"$2" {flags.strip()}', source, program, self.prefix / "lib")
        return program

    def links_the_library_alone(self, program: Path) -> None:
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "--dynamic", "--wide", program))
        self.assertIn("libsignalbox.so", "".join(needed))
        self.assertEqual([], [name for name in needed if re.match(r"lib(caf|microhttpd|urcu|yaml|xxhash)", name)])
        # The program and the library must share inline variables: a counter's stripe belongs to one
        # thread alone.
        variables = [line for line in run("nm", "-C", "--defined-only", program).splitlines()
                     if line.endswith(("signalbox::stripe_taken", "signalbox::lb::spare_sessions"))]
        dynamic = run("nm", "-DC", program)
        for variable in variables:
            self.assertIn(variable.split(" ", 2)[2], dynamic)


class ExportsTest(unittest.TestCase):
    """The rule that chooses the symbols, on headers of its own."""

    HEADER = """
        #include "x.hpp"
        namespace signalbox {
        class Hidden;  // void commented();
        enum class Kind { kOne };
        namespace lb { inline constinit thread_local int counter = 0; inline constexpr int kMost = 5; }
        class [[nodiscard]] Router final : public Base<int> {
         public:
          explicit Router(int x) : x_(x) { inner(); }
          ~Router();
          bool operator()(int) const;
          Kind kind(const Hidden&) const;
         private:
          int x_ = 0;
          static std::atomic<int> made;
        };
        bool operator==(const Router&, const Router&);
        absl::string_view to_string(Kind kind);
        inline int twice(int x) { return other(x); }
        }  // namespace signalbox
        """

    def test_what_headers_declare_is_public(self) -> None:
        with outside() as folder:
            header = Path(folder) / "router.hpp"
            header.write_text(self.HEADER, encoding="utf-8")
            scopes = exports.declared([header])
        for kind, symbol in (("T", "signalbox::Router::Router(int)"), ("T", "signalbox::Router::~Router()"),
                             ("T", "signalbox::Router::operator()(int) const"), ("B", "signalbox::Router::made"),
                             ("T", "signalbox::operator==(signalbox::Router const&, signalbox::Router const&)"),
                             ("T", "signalbox::to_string[abi:cxx11](signalbox::Kind)"), ("u", "signalbox::lb::counter"),
                             ("T", "signalbox::Router::kind(signalbox::Hidden const&) const"),
                             ("D", "vtable for signalbox::Router"), ("D", "typeinfo for signalbox::Router"),
                             ("R", "typeinfo name for signalbox::Router")):
            self.assertTrue(exports.is_public(symbol, kind, scopes), symbol)
        for kind, symbol in (("T", "signalbox::inner()"), ("T", "signalbox::other(int)"), ("T", "signalbox::commented()"),
                             ("u", "signalbox::lb::kMost"), ("V", "typeinfo for signalbox::Router"),
                             ("T", "signalbox::to_string(signalbox::Secret)"), ("T", "signalbox::lb::to_string(signalbox::Kind)"),
                             ("B", "signalbox::twice(int)::count"), ("u", "signalbox::twice(int) const &::count"),
                             ("T", "std::vector<signalbox::Router>::clear()"),
                             ("D", "vtable for signalbox::Secret"), ("T", "signalbox::xds::Router::~Router()"),
                             ("D", "descriptor_table_signalbox")):
            self.assertFalse(exports.is_public(symbol, kind, scopes), symbol)

    def test_the_version_of_abseil_is_left_out(self) -> None:
        for name in ("lts_20240722", "debian3"):
            self.assertEqual("f(absl::Status)", exports.VERSIONS.sub("absl::", f"f(absl::{name}::Status)"))

    def test_a_wrong_command_is_refused(self) -> None:
        self.assertIn("There are: map, list, renew", run("python3", "-B", CHECKOUT / "conf/shared/exports.py", "mend", fails=True))


if __name__ == "__main__":
    unittest.main()
