#!/usr/bin/env python3
"""The library as others get it: installed into an empty prefix, found by CMake and pkg-config, linked and run.

Needs build/release (./test builds it first). Programs run on the simulated H200 that is installed beside the
library.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TILEWRIGHT_BUILD", ROOT / "build/release"))
HEADERS = ROOT / "include/tilewright"
NO_KERNEL = 77  # examples/example.h
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def environment(**more):
    """Without anything that could lead to the tree."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH", "CMAKE_PREFIX_PATH",
                            "PKG_CONFIG_PATH", "TILEWRIGHT_SIM_LIBRARY")}
    return kept | {"TILEWRIGHT_DEVICE": "sim:h200"} | more


def has_kernels():
    cache = (BUILD / "CMakeCache.txt").read_text()
    return "TILEWRIGHT_KERNELS:BOOL=ON" in cache


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        for component in ("library", "headers", "simulator", "tool"):
            cls.run_command(["cmake", "--install", BUILD, "--prefix", cls.prefix, "--component",
                             component])
        cls.library = next(cls.prefix.glob("lib*/**/libtilewright.so"))
        shutil.copytree(ROOT / "examples/consumer", cls.folder / "consumer")

    @classmethod
    def run_command(cls, command, **more):
        done = subprocess.run([str(part) for part in command], cwd=cls.folder, env=environment(**more),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            line = shlex.join(map(str, command))
            raise AssertionError(f"{line} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def run_program(self, program):
        if not has_kernels():
            self.skipTest("built without kernels")
        return self.run_command([program])

    def pkg_config(self, *what):
        folder = self.library.parent / "pkgconfig"
        return shlex.split(self.run_command(["pkg-config", *what, "tilewright"], PKG_CONFIG_PATH=folder))

    def compile(self, source, compiler, *options):
        program = self.folder / source.name.replace(".", "_")
        self.run_command([compiler, *WARNINGS, "-O1", *options, source, "-o", program,
                          *self.pkg_config("--cflags", "--libs"), f"-Wl,-rpath,{self.library.parent}", "-lm"])
        return program

    def test_cmake_finds_it_and_the_consumer_runs(self):
        build = self.folder / "consumer/build"
        self.run_command(["cmake", "-S", self.folder / "consumer", "-B", build,
                          f"-DCMAKE_PREFIX_PATH={self.prefix}"])
        self.run_command(["cmake", "--build", build])
        for file in build.rglob("*"):
            if file.is_file():
                self.assertNotIn(str(ROOT).encode(), file.read_bytes(), f"{file} names the tree")
        self.assertIn("every element of out is 0.5", self.run_program(build / "attention"))

    def test_errors_cross_the_library(self):
        program = self.compile(self.folder / "consumer/attention.cpp", "c++", "-std=c++20")
        with self.assertRaisesRegex(AssertionError, "ended with 1:\n.*no-such-device"):
            self.run_command([program], TILEWRIGHT_DEVICE="no-such-device")

    def test_cmake_refuses_another_minor_version(self):
        text = (self.folder / "consumer/CMakeLists.txt").read_text().replace("tilewright 0.1", "tilewright 0.2")
        other = self.folder / "other"
        shutil.copytree(self.folder / "consumer", other, ignore=shutil.ignore_patterns("build"))
        (other / "CMakeLists.txt").write_text(text)
        with self.assertRaisesRegex(AssertionError, 'compatible with requested version "0.2"'):
            self.run_command(["cmake", "-S", other, "-B", other / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}"])

    def test_pkg_config_describes_it(self):
        self.assertEqual(self.pkg_config("--modversion"), ["0.1.0"])
        program = self.compile(self.folder / "consumer/attention.cpp", "c++", "-std=c++20")
        self.assertIn("every element of out is 0.5", self.run_program(program))

    def test_examples_compile_and_are_right_under_all_checks(self):
        sources = sorted((ROOT / "examples").glob("*.c")) + sorted((ROOT / "examples").glob("*.cpp"))
        self.assertGreaterEqual(len(sources), 6)
        for source in sources:
            is_c = source.suffix == ".c"
            program = self.compile(source, "cc" if is_c else "c++", "-std=c99" if is_c else "-std=c++20")
            if not has_kernels():
                continue
            for device in ("sim:h200", "sim:b200"):
                with self.subTest(source.name, device=device):
                    checked = environment(TILEWRIGHT_DEVICE=device, TILEWRIGHT_SIM_CHECK="all")
                    found = subprocess.run([program], env=checked, stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, text=True)
                    if device != "sim:h200" and found.returncode == NO_KERNEL:
                        continue
                    self.assertEqual(found.returncode, 0, found.stdout)
                    self.assertIn("largest error", found.stdout)

    def test_the_installed_tool_runs(self):
        self.assertIn("sim:h200", self.run_command([self.prefix / "bin/tilewright", "info"]))

    def test_nothing_installed_names_the_tree(self):
        texts = [f for f in self.prefix.rglob("*") if f.suffix in (".cmake", ".pc", ".h", ".py")]
        self.assertGreater(len(texts), 25)
        for file in texts:
            self.assertNotIn(str(ROOT), file.read_text(), str(file))
        for file in [self.library, self.prefix / "bin/tilewright", *self.prefix.rglob("libcud*")]:
            paths = re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", self.run_command(["readelf", "-d", file]))
            self.assertTrue(all(path.startswith("$ORIGIN") for path in paths), f"{file}: {paths}")

    def test_the_library_has_a_version(self):
        dynamic = self.run_command(["readelf", "-d", self.library])
        self.assertIn("[libtilewright.so.0.1]", dynamic)
        self.assertEqual(os.readlink(self.library.parent / "libtilewright.so.0.1"), "libtilewright.so.0.1.0")


class Exports(unittest.TestCase):
    """What the library shows is what the public headers declare."""

    def setUp(self):
        listing = subprocess.run(["nm", "-DC", "--defined-only", BUILD / "lib/libtilewright.so"],
                                 stdout=subprocess.PIPE, check=True, text=True).stdout
        self.symbols = {line.split(" ", 2)[2] for line in listing.splitlines()}
        text = "".join(header.read_text() for header in HEADERS.glob("*.h"))
        self.text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)

    def test_every_c_function_and_no_other(self):
        declared = set(re.findall(r"^TW_API\b[^;(]*?\b(tw_\w+)\s*\(", self.text, re.M))
        self.assertGreater(len(declared), 100)
        self.assertEqual(declared, {name for name in self.symbols if name.startswith("tw_")})

    def test_cpp_names_are_public(self):
        words = set(re.findall(r"\w+", self.text)) - {"State", "Internal"}
        shown = {name for name in self.symbols if not name.startswith("tw_")}
        self.assertGreater(len(shown), 100)
        for name in shown:
            plain = re.sub(r"^(typeinfo|typeinfo name|vtable) for ", "", name)
            plain = re.sub(r"std::shared_ptr<tilewright::\w+::\w+ const>", "", plain)  # private constructors
            scope = re.match(r"tilewright::([\w:~=]+)", plain)
            self.assertIsNotNone(scope, name)
            self.assertNotIn("tilewright::device::", plain)
            for word in re.findall(r"\w+", scope[1]) + re.findall(r"tilewright::(\w+)", plain):
                self.assertTrue(word in words, f"{name} is exported, but no public header says {word}")

    def test_every_class_is_there(self):
        for name in re.findall(r"^class (\w+) ", self.text, re.M):
            self.assertTrue(any(f"tilewright::{name}" in symbol for symbol in self.symbols), name)

    def test_the_tool_has_no_operators_of_its_own(self):
        listing = subprocess.run(["nm", "-C", BUILD / "bin/tilewright"], stdout=subprocess.PIPE, check=True,
                                 text=True).stdout.splitlines()
        self.assertGreater(len(listing), 1000)
        self.assertEqual([line for line in listing if "tilewright::ops::" in line], [])
        for name in ("Attention::run(", "Moe::run(", "complete("):
            self.assertTrue(any(f" U tilewright::{name}" in line for line in listing), name)


if __name__ == "__main__":
    unittest.main()
