#!/usr/bin/env python3
"""Writes the C interface from its description, tools/c_api/*.txt: the header, what stands between it and C++, the
table and the stubs of the Python package, and the test that finds every member again. --check only compares
(./test uses it), and looks whether programs compiled with the previous header still run.

--older PATH writes a header in which every struct lacks its last 8 bytes, as an older version could have been:
tests/ops compiles a C program with it.
"""

import argparse
import pathlib
import sys

from c_api import agreement, extension, glue, header, members_test, stubs
from c_api.description import Description, DescriptionError, Struct

ROOT = pathlib.Path(__file__).resolve().parent.parent
PREVIOUS = ROOT / "tests/golden/c_api/previous/tilewright/tilewright.h"
THIN = ("cache", "decode", "hyper_connection", "indexer", "prepare")


def outputs(description):
    """path -> text of all that is made."""
    made = {"include/tilewright/tilewright.h": header.write(description),
            "src/ops/c_api/convert/all.h": glue.write_all(description),
            "src/ops/c_api/handles.h": glue.write_handles(description),
            "python/core/table.c": extension.write(description),
            "python/tilewright/_core.pyi": stubs.write(description)}
    for name in description.families():
        made[f"src/ops/c_api/convert/{name}.h"] = glue.write_convert(description, name)
        made[f"src/ops/c_api/operators/{name}.cpp"] = glue.write_operators(description, name)
        if any(item.cpp for item in description.of(Struct, name)):
            made[f"tests/ops/c_api/members/{name}.h"] = members_test.write_changes(description, name)
            made[f"tests/ops/c_api/members/{name}_test.cpp"] = members_test.write(description, name)
    for name in THIN:
        made[f"include/tilewright/tilewright_{name}.h"] = header.THIN
    return {ROOT / path: text for path, text in made.items()}


def write_older(description, path):
    for struct in description.structs.values():
        agreement.drop_last(description, struct)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header.write(description))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if something differs")
    parser.add_argument("--older", metavar="PATH", type=pathlib.Path, help="write an older header alone")
    args = parser.parse_args()
    try:
        description = Description()
        if args.older:
            write_older(description, args.older)
            return 0
        made = outputs(description)
        findings = [*agreement.with_cpp(description, ROOT / "include/tilewright"),
                    *agreement.with_previous(made[ROOT / "include/tilewright/tilewright.h"], PREVIOUS)]
    except DescriptionError as error:
        sys.exit(f"make_c_api: {error}")
    for path, text in made.items():
        if args.check and (not path.exists() or path.read_text() != text):
            findings.append(f"{path.relative_to(ROOT)} is not what tools/make_c_api.py writes; run it")
        elif not args.check:
            path.write_text(text)
    print("\n".join(findings) if findings else f"make_c_api: {len(made)} files")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
