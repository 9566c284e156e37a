"""The extension, compiled with the address and undefined-behaviour sanitizers, under random calls.

TILEWRIGHT_FUZZ_SECONDS=300 goes on for longer than the few seconds of ./test; TILEWRIGHT_FUZZ_SEED repeats a run.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import sysconfig

import pytest

import tilewright

ROOT = pathlib.Path(__file__).resolve().parents[2]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]


def compile_package(folder):
    """The package with an extension under the sanitizers; the library is the one of the build."""
    include = sysconfig.get_paths()["include"]
    if not shutil.which("gcc") or not pathlib.Path(include, "Python.h").exists():
        pytest.skip("no gcc, or no headers of Python")
    package, library = folder / "tilewright", pathlib.Path(tilewright.__file__).parent / "lib"
    package.mkdir()
    for path in (ROOT / "python/tilewright").iterdir():
        (package / path.name).symlink_to(path)
    (package / "lib").symlink_to(library.resolve())
    sources = sorted((ROOT / "python/core").glob("*.c"))
    subprocess.run(["gcc", "-std=gnu11", "-shared", "-fPIC", *SANITIZERS, f"-I{include}", f"-I{ROOT}/include",
                    *sources, "-o", package / "_core.abi3.so", f"-L{library}", "-ltilewright",
                    "-Wl,-rpath,$ORIGIN/lib"], check=True)


def runtimes():
    """The sanitizers' runtime, and the C++ library whose exceptions it watches: first in the process."""
    names = ("libasan.so", "libubsan.so", "libstdc++.so")
    found = [subprocess.run(["gcc", f"-print-file-name={name}"], stdout=subprocess.PIPE, text=True,
                            check=True).stdout for name in names]
    return " ".join(path.strip() for path in found)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sanitized")
    compile_package(folder)
    return folder


@pytest.mark.parametrize("what", ["core", "torch"])
def test_random_calls_crash_nothing(what, sanitized):
    if what == "torch":
        pytest.importorskip("torch")
    seconds = os.environ.get("TILEWRIGHT_FUZZ_SECONDS", "8")
    seed = os.environ.get("TILEWRIGHT_FUZZ_SEED", str(random.randrange(1 << 30)))
    environment = {**os.environ, "LD_PRELOAD": runtimes(), "PYTHONPATH": str(sanitized), "PYTHONMALLOC": "malloc",
                   "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "PYTHONFAULTHANDLER": "1"}
    done = subprocess.run([sys.executable, pathlib.Path(__file__).parent / f"fuzz_{what}.py", seconds, seed],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
                          check=False)
    print(done.stdout)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout[-6000:]}"
    calls = int(done.stdout.split(" calls")[0].split()[-1])
    assert calls > (100 if what == "core" else 20)
