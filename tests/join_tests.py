#!/usr/bin/env python3
"""Joins test files to one that is compiled in half their time: tests/join_tests.py OUTPUT SOURCE...

Files of tests use the same short names in their unnamed namespaces. Each such namespace is put into one that is
named after its file, so that the names of two files cannot clash. Messages of the compiler and of GoogleTest name
the lines of the sources."""

import pathlib
import re
import sys

OPENING = re.compile(r"^namespace \{$", re.M)
CLOSING = re.compile(r"^\}  // namespace$", re.M)  # as clang-format writes it
OPENED_AGAIN = re.compile(r"^[^}\s]", re.M)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def joined(path, number):
    text = path.read_text()
    opened, closed = len(OPENING.findall(text)), len(CLOSING.findall(text))
    if opened != closed:
        sys.exit(f"join_tests: {path}: {opened} lines `namespace {{` and {closed} lines `}}  // namespace`; "
                 "each unnamed namespace needs both, as clang-format writes them")
    name = f"{path.stem}_{number}"
    text = OPENING.sub(f"namespace {name} {{ namespace {{", text)

    def closed_again(match):
        # What comes after it in the file may use what is in it.
        is_used = OPENED_AGAIN.search(match.string, match.end())
        return "}}" + (f" using namespace {name};" if is_used else "")

    text = CLOSING.sub(closed_again, text)

    def beside(match):
        header = path.parent / match[1]
        return f'#include "{header}"' if header.exists() else match[0]

    return f'#line 1 "{path}"\n{INCLUDE.sub(beside, text)}'


def main():
    output, *sources = map(pathlib.Path, sys.argv[1:])
    output.write_text("\n".join(joined(source, number) for number, source in enumerate(sources)))


if __name__ == "__main__":
    main()
