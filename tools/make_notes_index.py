#!/usr/bin/env python3
"""Writes docs/notes/README.md: the notes by date, each with its title.

    tools/make_notes_index.py [--check]

--check writes nothing; exit status 1 if the index differs from the notes.
"""

import argparse
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs/notes"


def index():
    lines = ["# Notes", "",
             "What was decided and why, what was predicted and what came, what was tried and dropped. A note",
             "is true on its date; where a later one differs, the later one counts. Made by",
             "`tools/make_notes_index.py`.", "",
             "| date | note |", "|---|---|"]
    for path in sorted(FOLDER.glob("20*.md"), reverse=True):
        title = re.sub(r"^[#\s]*(\d{4}-\d\d-\d\d: )?", "", path.read_text().splitlines()[0]).replace("|", "/")
        lines.append(f"| {path.name[:10]} | [{title}]({path.name}) |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say whether it differs")
    args = parser.parse_args()
    path, text = FOLDER / "README.md", index()
    if path.exists() and path.read_text() == text:
        return 0
    if args.check:
        print("docs/notes/README.md is not the index of the notes; run tools/make_notes_index.py")
        return 1
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
