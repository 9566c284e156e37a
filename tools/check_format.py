#!/usr/bin/env python3
"""Checks what every file of the tree must keep: size, line length, ASCII, no stray blanks, no paths of a machine,
links of Markdown that lead somewhere, and the formatting of .clang-format where clang-format 14 is installed. Exit
status 1 if something is off.

--fix rewrites what clang-format would change, and breaks paragraphs of Markdown anew that are wider than 100
columns (tools/markdown_width.py).
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

import markdown_links
import markdown_width

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".h", ".c", ".cpp", ".cu"}
TEXT = CODE | {".py", ".cmake", ".sh", ".md", ".txt", ".json", ".yml"}
COLUMNS = {".h": 100, ".c": 100, ".cpp": 100, ".cu": 100, ".py": 115}
LARGEST_BYTES = 1 << 20
LARGE_FOLDERS = ("examples/data/", "examples/models/", "bench/results/", "tests/golden/", "tests/ptx/")
MACHINE_PATH = re.compile(r"(?<![\w./])/(?:home|root|work|Users)/\w")
CLANG_FORMAT_VERSION = "14."


def tracked_files():
    """Files git knows or would add; every file outside a checkout."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    return [f for f in ROOT.rglob("*") if f.is_file() and "build" not in f.relative_to(ROOT).parts]


def check_lines(path):
    is_generated = "clang-format off" in path.read_text(errors="replace")[:200]
    limit = COLUMNS.get(path.suffix)
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if limit and len(line) > limit and not is_generated:
            yield number, f"{len(line)} columns, at most {limit}"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        if path.suffix in CODE and not line.isascii():
            yield number, "characters outside ASCII"
        if MACHINE_PATH.search(line):
            yield number, "a path of somebody's machine"


def check_size(path):
    """Large files stay in every clone for ever: they have their folders."""
    name = path.relative_to(ROOT).as_posix()
    if path.stat().st_size > LARGEST_BYTES and not name.startswith(LARGE_FOLDERS):
        yield 1, f"{path.stat().st_size} bytes, at most {LARGEST_BYTES} outside of {', '.join(LARGE_FOLDERS)}"


def fix_markdown(path):
    text = path.read_text()
    fixed = markdown_width.fixed(text)
    if fixed != text:
        path.write_text(fixed)


def clang_format():
    """Path of the pinned clang-format, or None."""
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and f"version {CLANG_FORMAT_VERSION}" in subprocess.run([path, "--version"], capture_output=True,
                                                                        text=True).stdout:
            return path
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="rewrite the files")
    args = parser.parse_args()
    files = tracked_files()
    for path in files if args.fix else []:
        if path.suffix == ".md":
            fix_markdown(path)
    findings = [f"{f.relative_to(ROOT)}:{number}: {text}" for f in files if f.suffix in TEXT
                for number, text in check_lines(f)]
    findings += [f"{f.relative_to(ROOT)}:{number}: {text}" for f in files for number, text in check_size(f)]
    findings += [f"{f.relative_to(ROOT)}:{number}: {text}" for f in files if f.suffix == ".md"
                 for number, text in (*markdown_width.findings(f.read_text()), *markdown_links.findings(f))]
    code = [f for f in files if f.suffix in CODE]
    tool = clang_format()
    if tool:
        mode = ["-i"] if args.fix else ["--dry-run", "-Werror"]
        done = subprocess.run([tool, *mode, *map(str, code)], capture_output=True, text=True)
        findings += [line for line in done.stderr.splitlines() if "code should be clang-formatted" in line]
    print("\n".join(findings[:40]))
    print(f"check_format: {len(files)} files, {len(findings)} findings" +
          ("" if tool else "; clang-format 14 is not installed, formatting was not checked"))
    return 1 if findings or not code else 0


if __name__ == "__main__":
    sys.exit(main())
