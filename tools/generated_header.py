"""What the generators of headers have in common: they write their header or compare with it."""

import argparse
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def write_or_check(doc, script, header, text):
    """The main function of a generator. Exit status: 1 if --check finds a header that differs."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--check", action="store_true", help="exit 1 if the header is not up to date")
    args = parser.parse_args()
    path = ROOT / header
    if not args.check:
        path.write_text(text)
    elif path.read_text() != text:
        print(f"{path.name} is not what tools/{pathlib.Path(script).name} writes; run it")
        return 1
    return 0
