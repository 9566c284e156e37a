#!/usr/bin/env python3
"""Copies the package of a build to a folder that another machine can import it from: no links, no tool.

    tools/bundle_package.py DIR [--build build/release]     then there: PYTHONPATH=DIR python3 -m tilewright doctor
"""

import argparse
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def copy_libraries(source, target):
    """Each library once, under the name that asks for it."""
    target.mkdir(parents=True)
    shutil.copy(source / "libtilewright.so.0.1", target / "libtilewright.so.0.1")
    shutil.copytree(source / "sim", target / "sim", symlinks=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    args = parser.parse_args()
    package = args.folder / "tilewright"
    shutil.rmtree(package, ignore_errors=True)
    leave = shutil.ignore_patterns("__pycache__", "lib", "bin", "*.so")
    shutil.copytree(ROOT / "python/tilewright", package, ignore=leave)
    shutil.copy(args.build / "python/tilewright/_core.abi3.so", package)
    copy_libraries(args.build / "lib", package / "lib")
    size = sum(path.stat().st_size for path in package.rglob("*") if path.is_file())
    print(f"{package}: {size / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
