"""What the generators of tests/golden have in common: they write their files or compare with them."""

import argparse
import pathlib


def write_or_compare(doc, script, default_dir, texts, is_same=lambda old, new: old == new):
    """The main function of a generator. `texts` is pairs of a file's name and its text; `is_same` compares what
    stands in a file with it. Exit status: 1 if --check finds a file that differs."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--dir", type=pathlib.Path, default=default_dir)
    parser.add_argument("--check", action="store_true", help="compare with the files, write nothing")
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)
    stale = []
    for name, text in texts:
        path = args.dir / name
        if args.check:
            stale += [] if is_same(path.read_text(), text) else [name]
        else:
            path.write_text(text)
            print(f"{name}: {len(text)} bytes")
    for name in stale:
        print(f"{name} differs from what {pathlib.Path(script).name} makes")
    return 1 if stale else 0
