#!/usr/bin/env python3
"""What a sanitized test program runs without instrumentation: functions of our headers that tests compiled once
(tests/compiled_once.txt) bring along, and no sanitized object of the program has.

    tools/uninstrumented.py NAME [--build build/asan] [--from build/release]      NAME as in NAME_tests

Prints them by object: a unit of several tests, build/release/tests/units, or a test. A test whose subject is among
them leaves compiled_once.txt. Inlined calls are not seen.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def symbols(kinds, *paths):
    """Mangled names of the kinds of nm that the files define."""
    if not paths:
        return set()
    text = subprocess.run(["nm", "--defined-only", *map(str, paths)], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return set(re.findall(rf"^[0-9a-f]+ [{kinds}] (\S+)$", text, re.M))


def demangled(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def once(name):
    lines = (ROOT / "tests/compiled_once.txt").read_text().splitlines()
    return [line for line in lines if line.startswith(f"{name}/")]


def objects_of_once(folder, name):
    """Units of several tests, or objects of single ones where tests are compiled alone."""
    units = sorted((folder / "units").glob(f"{name}_once_*.o"))
    tests = ROOT / "tests"
    return units or [folder / f"{path.relative_to(tests)}.o"
                     for pattern in once(name) for path in sorted(tests.glob(pattern))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/asan")
    parser.add_argument("--from", dest="other", type=pathlib.Path, default=ROOT / "build/release")
    args = parser.parse_args()
    program = f"{args.name}_tests"
    own = [*(args.build / "tests/CMakeFiles" / f"{program}.dir").rglob("*.o"), *args.build.glob("*.a")]
    if not own:
        sys.exit(f"uninstrumented: {args.build} has no {program}; build it, or name another with --build")
    known = symbols("TtWwVv", *own)
    count = 0
    for path in objects_of_once(args.other / "tests/CMakeFiles" / f"{program}.dir", args.name):
        test = path.stem.removesuffix(".cpp")
        found = [text for text in demangled(sorted(symbols("Ww", path) - known))
                 if re.search(r"\btilewright::", text.split("(")[0])]
        count += len(found)
        for text in found:
            print(f"{test}: {text}")
    print(f"uninstrumented: {len(once(args.name))} tests compiled once, {count} functions")


if __name__ == "__main__":
    main()
