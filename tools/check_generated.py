#!/usr/bin/env python3
"""Compares generated files with what their generators write now. Exit status 1 if one differs or is missing.

    tools/check_generated.py [NAME...]     ptx, rates, golden; all of them without a name

Generators run in a copy of the tools, so that the tree stays as it is. Those that need what Debian does not
install by default are skipped where it is missing, a line for each.
"""

import argparse
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Generator:
    """A program of tools/ with its arguments, the files it writes, and the Python modules it needs."""

    def __init__(self, script, arguments, outputs, modules=()):
        self.script, self.arguments, self.outputs, self.modules = script, arguments, outputs, modules

    def missing(self):
        return [name for name in self.modules if importlib.util.find_spec(name) is None]


def logs_named_in(header):
    """The logs that a table of rates says it was made from, and the options."""
    found = re.findall(r"^// (?:(bench/results/\S+\.json)|    (--\S+) (\S+))$", (ROOT / header).read_text(), re.M)
    return [word for words in found for word in words if word]


def generators(name):
    if name == "ptx":
        scripts = sorted((ROOT / "tools/ptx").glob("make_ptx_*tests.py"))
        return [Generator(f"ptx/{script.name}", [],
                          [f"tests/ptx/{path.name}" for path in made_by(f"ptx/{script.name}")])
                for script in scripts]
    if name == "rates":
        return [Generator(f"make_{family}_rates.py", logs_named_in(f"src/ops/{family}/rates.h"),
                          [f"src/ops/{family}/rates.h"]) for family in ("attention", "linear")]
    return [Generator("golden/make_format_golden.py", ["--check"], [], ["numpy", "ml_dtypes"]),
            Generator("golden/make_reference_golden.py", ["--check"], [], ["numpy"])]


def made_by(script):
    """Files of tests/ptx whose first line says so."""
    return [path for path in sorted((ROOT / "tests/ptx").glob("*.ptx"))
            if f"made by tools/{script}," in path.read_text().splitlines()[0]]


def without_generator():
    """Files of tests/ptx that no generator writes: their first line names none that there is."""
    known = {path for script in (ROOT / "tools/ptx").glob("make_ptx_*tests.py")
             for path in made_by(f"ptx/{script.name}")}
    return [path for path in sorted((ROOT / "tests/ptx").glob("*.ptx")) if path not in known]


def shadow(folder, generator):
    """A tree with the tools, the files that the generator adds to, and what it reads or compares with."""
    shutil.copytree(ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "bench").symlink_to(ROOT / "bench")
    (folder / "tests/ptx").mkdir(parents=True)
    (folder / "tests/golden").symlink_to(ROOT / "tests/golden")
    for name in generator.outputs:
        if name.startswith("src/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def check(generator):
    """What is wrong, a line each."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shadow(folder, generator)
        command = [sys.executable, f"tools/{generator.script}", *generator.arguments]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode != 0:
            return [f"tools/{generator.script} ended with status {done.returncode}:",
                    *done.stdout.splitlines()[-10:]]
        remedy = f"run tools/{' '.join([generator.script, *generator.arguments])} and look at what changed"
        wrong = []
        for output in generator.outputs:
            if not (folder / output).exists():
                wrong.append(f"{output}: tools/{generator.script} does not write it any more; remove it")
            elif (folder / output).read_bytes() != (ROOT / output).read_bytes():
                wrong.append(f"{output}: not what its generator writes; {remedy}")
        for path in sorted((folder / "tests/ptx").glob("*.ptx")):
            if f"tests/ptx/{path.name}" not in generator.outputs:
                wrong.append(f"tests/ptx/{path.name}: missing, or not by its first line made by this; {remedy}")
        return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="ptx, rates or golden; all of them without")
    names = parser.parse_args().names or ["ptx", "rates", "golden"]
    unknown = [name for name in names if name not in ("ptx", "rates", "golden")]
    if unknown:
        parser.error(f"no group {unknown[0]}; there are ptx, rates and golden")
    wrong, skipped, num_checked = [], [], 0
    for name in names:
        for generator in generators(name):
            missing = generator.missing()
            if missing:
                skipped.append(f"tools/{generator.script} (needs {', '.join(missing)})")
                continue
            num_checked += 1
            wrong += check(generator)
    if "ptx" in names:
        wrong += [f"{path.relative_to(ROOT)}: its first line names no generator of tools/"
                  for path in without_generator()]
    print("\n".join(wrong[:40]))
    print(f"check_generated: {num_checked} generators, {len(wrong)} findings")
    for text in skipped:
        print(f"skipped: {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
