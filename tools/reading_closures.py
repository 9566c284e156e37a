#!/usr/bin/env python3
"""What one has to read to know a kernel: lines of our own files that the includes of its .cu reach.

  tools/reading_closures.py [--json] [--lower] [ROOT]

Three numbers a kernel: all lines; without the algebra (src/layout, src/arch/fragments), which states and
proves what a layout is, but is no step of a kernel; and also without the vocabulary (src/ptx), one function an
instruction. The last has a budget: BUDGET lines, more for the families in FAMILY_BUDGETS. A kernel above its
budget stands in EXCEPTIONS with its exact number, which may only fall: if it has, --lower writes the new one,
and leaves out kernels that fit. Exit status 1 if a kernel is above its budget or its exception, or an exception
is out of date.
"""

import argparse
import json
import pathlib
import re
import sys

BUDGET = 2000
FAMILY_BUDGETS = {"attention/decode": 2400, "attention_sm100/decode": 2400,
                  "attention_sm100/pages": 2600, "sparse_attention": 2400}
EXCEPTIONS = pathlib.Path("tests/golden/kernels/reading_closures.json")
ALGEBRA = ("layout/", "arch/fragments/")
VOCABULARY = ("ptx/",)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def included_file(root, name):
    """Path below root of what an #include in quotes names, or None."""
    return next((path for path in (f"src/{name}", f"include/{name}") if (root / path).is_file()), None)


def reach(root, path):
    """Files below root that a file reaches, itself among them."""
    reached, waiting = set(), [path]
    while waiting:
        file = waiting.pop()
        if file in reached:
            continue
        reached.add(file)
        for name in INCLUDE.findall((root / file).read_text()):
            found = included_file(root, name)
            if found is None:
                sys.exit(f'reading_closures: {file} includes "{name}", which is neither in src nor in include')
            waiting.append(found)
    return reached


def measure(root, path):
    """Of a .cu: how many files and lines it reaches, in the three ways of counting."""
    lines = {file: len((root / file).read_text().splitlines()) for file in reach(root, path)}

    def without(*folders):
        prefixes = tuple(f"src/{folder}" for folder in folders)
        return sum(count for file, count in lines.items() if not file.startswith(prefixes))

    return {"files": len(lines), "lines": without("nothing/"), "without_algebra": without(*ALGEBRA),
            "own": without(*ALGEBRA, *VOCABULARY)}


def budget_of(kernel):
    return next((lines for family, lines in FAMILY_BUDGETS.items() if kernel.startswith(family + "/")), BUDGET)


def closures(root):
    """Path below src/kernels without .cu -> its numbers, longest first."""
    kernels = root / "src/kernels"
    found = {}
    for file in sorted(kernels.rglob("*.cu")):
        name = str(file.relative_to(kernels).with_suffix(""))
        found[name] = measure(root, str(file.relative_to(root))) | {"budget": budget_of(name)}
    return dict(sorted(found.items(), key=lambda item: (-item[1]["own"], item[0])))


def read_exceptions(root):
    file = root / EXCEPTIONS
    return json.loads(file.read_text()) if file.exists() else {}


def breaches(found, exceptions):
    """Sentences about what is wrong."""
    for name, numbers in found.items():
        own, budget, agreed = numbers["own"], numbers["budget"], exceptions.get(name)
        if own > (agreed or budget):
            kept = f"its exception is {agreed}" if agreed else f"its budget is {budget}"
            yield (f"{name}: {own} lines must be read, {kept}. Move what it does not need out of the headers it "
                   "includes, or split those")
        elif agreed and own < agreed:
            yield f"{name}: {own} lines must be read, fewer than the {agreed} of its exception: run with --lower"
    for name in exceptions.keys() - found.keys():
        yield f"{name}: has an exception but is no kernel: run with --lower"


def lowered(found, exceptions):
    """The exceptions with numbers that have fallen, without kernels that fit or are gone."""
    now = {name: min(agreed, found[name]["own"]) for name, agreed in exceptions.items() if name in found}
    return {name: now[name] for name in sorted(now) if now[name] > found[name]["budget"]}


def print_table(found, exceptions):
    width = max(map(len, found), default=6)
    print(f"{'kernel':<{width}} {'files':>5} {'lines':>6} {'no algebra':>10} {'no ptx either':>13} {'budget':>6}")
    for name, n in found.items():
        limit = exceptions.get(name, n["budget"])
        print(f"{name:<{width}} {n['files']:>5} {n['lines']:>6} {n['without_algebra']:>10} {n['own']:>13} "
              f"{limit:>6}{' exception' if name in exceptions else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, help="root of the repository",
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--json", action="store_true", help="print one JSON value instead of text")
    parser.add_argument("--lower", action="store_true", help="write exceptions that have fallen")
    args = parser.parse_args()
    root = args.root.resolve()
    found = closures(root)
    if not found:
        sys.exit(f"reading_closures: no kernel below {root}/src/kernels")
    if args.lower:
        (root / EXCEPTIONS).write_text(json.dumps(lowered(found, read_exceptions(root)), indent=1) + "\n")
    exceptions = read_exceptions(root)
    wrong = list(breaches(found, exceptions))
    if args.json:
        print(json.dumps({"kernels": found, "exceptions": exceptions, "breaches": wrong}))
    else:
        print_table(found, exceptions)
        for text in wrong:
            print(text)
        print(f"reading_closures: {len(found)} kernels, {len(exceptions)} exceptions, {len(wrong)} breaches")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
