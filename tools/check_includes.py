#!/usr/bin/env python3
"""Checks who includes whom (CONTRIBUTING.md), where `asm` and `getenv` may stand, and that folders stay small.

Exit status 1 on a breach. Every rule is one row of ALLOWED: a folder of src/ and the folders its files
may include. The longest matching folder wins, so `arch/fragments` has rules of its own inside `arch`.
Whatever the rows allow, the folders of src/ may not include each other in a circle, and no folder of
src/, include/ or tests/ may have more than MOST_ENTRIES entries.
"""

import argparse
import collections
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent
PUBLIC = "tilewright"  # include/tilewright, which may include nothing of src/

MOST_ENTRIES = 40
# Folders still to be divided: how many entries they have now. A smaller number is a breach as well, so
# that a row can only shrink; delete it at MOST_ENTRIES.
LARGE_FOLDERS = {}
# Includes still to be turned round, by (folder, folder that it includes): how many there are now. They
# are left out when circles are looked for.
BACKWARD_INCLUDES = {}
# Folders of plain data, one file per case, which grow with the number of cases.
DATA_FOLDERS = {
    "tests/ptx": "generated text tests, one per instruction",
    "tests/ptx/bad": "programs that a checker must refuse, one per kind of finding",
    "tests/ptx/good": "their twins that it must accept",
}

# What kernels and their parts may include besides their own family.
DEVICE = ["base", "formats", "layout", "arch", "arch/fragments", "ptx", "tile"]
# family of kernels, a folder of src/kernels -> other families whose parts it uses
FAMILIES = {
    "attention": [],
    "attention_sm100": ["attention"],
    "exchange": [],
    "linear": [],
    "model": ["exchange"],
    "moe": ["linear", "quantize"],
    "quantize": [],
    "sparse_attention": ["quantize"],
}
KERNELS = [f"kernels/{family}" for family in FAMILIES]
# Host code reads contracts: headers of kernels that are plain data, without device code behind them.
DEVICE_CODE = ("ptx", "tile")


def simulator_rows():
    """The rooms of the simulator from the ground up: each with what it may include besides GROUND."""
    ground = [PUBLIC, "base", "formats", "arch", "sim/host"]
    model, parse, tensor, memory = "sim/model", "sim/parse", "sim/tensor", "sim/memory"
    state, event, execution, lowering = "sim/state", "sim/event", "sim/exec", "sim/compile"
    facts = [model, parse, tensor, "sim/async"]  # values and rules that know of no warp
    seen = [*facts, state, event]                # all that an observer sees
    insn = [*seen, memory, execution, lowering, "sim/insn"]
    objects = ["sim/driver/abi", "sim/driver/objects"]
    rows = {
        "sim/host": [], model: [], parse: [], tensor: [], "sim/async": [],
        state: facts,
        event: [*facts, state],
        memory: seen,
        execution: [*seen, memory],
        lowering: [model, parse, state, execution],
        "sim/insn": insn,
        "sim/insn/scalar": insn,
        "sim/insn/control": insn,
        "sim/insn/memory": insn,
        "sim/insn/async": [*insn, "sim/insn/memory"],
        "sim/insn/tensor": [*insn, "sim/insn/memory", "sim/insn/async"],
        "sim/check/init": seen,
        "sim/check/sync": seen,
        "sim/check/order": [*seen, "sim/check/sync"],
        "sim/check/tensor": [*seen, "sim/check/order"],
        "sim/check": [*seen, "sim/check/init", "sim/check/order", "sim/check/sync", "sim/check/tensor"],
        "sim/report": seen,
        "sim/time": [*seen, "sim/report"],
        "sim/trace": [*seen, "sim/insn/tensor"],  # the operands of tcgen05.mma
        "sim": [*seen, memory, execution, lowering, "sim/check", "sim/check/order", "sim/report", "sim/time"],
        "sim/driver/abi": [],
        "sim/driver/objects": ["sim", event, "sim/driver/abi"],
        "sim/driver/module": [*objects, parse],
        "sim/driver/memory": [*objects, "sim/async"],
        "sim/driver/stream": [*objects, "sim/driver/module"],
        "sim/driver/device": objects,
        "sim/runtime": ["sim/driver/abi"],
    }
    return {room: ground + others for room, others in rows.items()}


# folder of the including file -> folders it may include (its own folder is always allowed)
ALLOWED = {
    "base": [PUBLIC],
    "tokenizer": [PUBLIC, "base"],
    "layout": [PUBLIC, "base"],
    "formats": [PUBLIC, "base"],
    "arch": [PUBLIC, "base", "formats"],
    "arch/fragments": [PUBLIC, "base", "formats", "arch", "layout"],
    "ptx": ["base", "formats", "layout", "arch", "arch/fragments"],
    "tile": ["base", "formats", "layout", "arch", "arch/fragments", "ptx"],
    **{f"kernels/{family}": DEVICE + [f"kernels/{other}" for other in others]
       for family, others in FAMILIES.items()},
    "reference": [PUBLIC, "base", "formats"],
    **simulator_rows(),
    "device": [PUBLIC, "base"],
    "ops": [PUBLIC, "base", "formats", "arch", *KERNELS, "device"],
    "ops/c_api": [PUBLIC, "base", "layout", "formats", "arch/fragments", "device", "ops"],
    "comm": [PUBLIC, "base"],  # ranks: what they exchange, how they find each other
    "comm/peers": [PUBLIC, "base", "comm"],  # what they exchange by kernels of ours
    "model": [PUBLIC, "base", "formats", "arch", *KERNELS, "comm", "comm/peers"],
    "model/checkpoint": [PUBLIC, "base", "formats", "model"],
    # The plain model that kernels are compared with: made of references, and nothing else may be.
    "model/float64": [PUBLIC, "base", "formats", "reference", "model"],
    "model/text": [PUBLIC, "base", "formats", "reference", "model", "model/checkpoint", "model/float64"],
    # The model and the tool use the operators as any program does: by the public headers. Operands, exact
    # results and what is compared with them, for the tool, its benchmarks and their tests:
    "report": [PUBLIC, "base", "layout"],  # terminals, tables, plots, pages
    "verify": [PUBLIC, "base", "layout", "formats", "arch", "reference", "sim", "model", "report"],
    "bench": [PUBLIC, "base", "formats", "arch", "sim", "comm", "comm/peers", "model", "model/checkpoint",
              "model/text", "report", "verify"],
    "cli": [PUBLIC, "base", "layout", "formats", "arch", "arch/fragments", "reference", "sim",
            "comm", "model", "model/checkpoint", "model/float64", "model/text", "report", "verify", "bench"],
}
# Single files that may include a folder that their room may not, each with what they do there.
EXCEPTIONS = {
    ("cli/info/info.cpp", "device"): "tells of every driver library and its GPUs, those that cannot be opened too",
    ("cli/sim/exec.cpp", "device"): "names the file of the simulator's driver, for another program to load",
    ("cli/tool/library_kernels.cpp", "device"): "gives the driver code of these two the library's kernels",
}
# The public headers are what a user sees: standard library and each other, no CUDA, nothing of src/.
CUDA_HEADER = re.compile(r"^(cuda|cudnn|cublas|nccl|curand|crt/|cooperative_groups|mma\.h)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
ASM = re.compile(r"\basm\b\s*(volatile)?\s*[({]")


def rule_for(path):
    """The row of ALLOWED for a file given relative to src/."""
    if path.parts[0] == "sim":  # each of its folders has a row of its own
        return str(path.parent) if str(path.parent) in ALLOWED else None
    folders = [str(p) for p in path.parents]
    return next((f for f in folders if f in ALLOWED), None)


def folder_of(include):
    """Longest folder of ALLOWED (or the public folder) that the included path lies in."""
    for parent in pathlib.PurePosixPath(include).parents:
        if str(parent) in ALLOWED or str(parent) == PUBLIC:
            return str(parent)
    return None


def device_code_behind(root, included, seen=None):
    """A header of device code that `included` reaches, or None."""
    seen = seen if seen is not None else set()
    seen.add(included)
    file = root / "src" / included
    if not file.exists():
        return None
    for name in QUOTED.findall(file.read_text(errors="replace")):
        if name.split("/")[0] in DEVICE_CODE:
            return name
        if name not in seen and (behind := device_code_behind(root, name, seen)):
            return behind
    return None


def check_file(root, file):
    path = file.relative_to(root / "src")
    rule = rule_for(path)
    if rule is None:
        if len(path.parts) > 1:
            yield 1, f"folder {path.parent}/ has no row in tools/check_includes.py; add one"
        return
    allowed = ALLOWED[rule]
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        if ASM.search(line) and not line.lstrip().startswith("//") and path.parts[0] != "ptx":
            yield number, "`asm` outside src/ptx; add a wrapper there"
        if "getenv(" in line and str(path) != "base/env.cpp":
            yield number, "getenv outside src/base/env.cpp; call env_text() or env_int()"
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, included = match.groups()
        if CUDA_HEADER.match(included) and path.parts[0] not in ("ptx", "tile", "kernels"):
            yield number, f"CUDA header {included}; only ptx, tile and kernels may include one"
        if bracket == "<":
            continue
        target = folder_of(included)
        if target is not None and target.startswith("sim/") and path.parts[0] != "sim":
            target = "sim"  # to others it is one room
        if path.parts[0] not in ("kernels", "tile") and included.startswith("kernels/"):
            behind = device_code_behind(root, included)
            if behind:
                yield number, f'"{included}" is device code (it includes {behind}); host code reads contracts'
        if target is None:
            yield number, f'"{included}" is not a path below src/ or include/'
        elif target != rule and target not in allowed and (path.as_posix(), target) not in EXCEPTIONS:
            yield number, f'{rule} may not include "{included}" (allowed: {", ".join(allowed)})'


def check_public(file):
    for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match and (CUDA_HEADER.match(match[2]) or
                      match[1] == '"' and not match[2].startswith("tilewright/")):
            yield number, f"a public header may not include {match[2]}"


def included_folders(root, sources):
    """(folder, folder that a file of it includes) -> where: "src/a/b.h:3"."""
    arrows = collections.defaultdict(list)
    for file in sources:
        folder = str(file.parent.relative_to(root / "src"))
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or match[1] == "<":
                continue
            target = str(pathlib.PurePosixPath(match[2]).parent)
            if target != folder and (root / "src" / target).is_dir():
                arrows[folder, target].append(f"{file.relative_to(root)}:{number}")
    return arrows


def check_exceptions(root, exceptions):
    """Yields a sentence for each exception that no include needs any more."""
    for name, folder in exceptions:
        file = root / "src" / name
        if not file.exists() or not any(i.startswith(f"{folder}/") for i in QUOTED.findall(file.read_text())):
            yield f"src/{name} includes nothing of {folder}/; delete its row in EXCEPTIONS"


def find_circle(arrows):
    """Folders that include each other: [a, b, ..., a], or [] if there is no circle."""
    targets = collections.defaultdict(list)
    for folder, target in sorted(arrows):
        targets[folder].append(target)
    done = set()

    def search(folder, path):
        if folder in path:
            return [*path[path.index(folder):], folder]
        if folder in done:
            return []
        for target in targets[folder]:
            circle = search(target, [*path, folder])
            if circle:
                return circle
        done.add(folder)
        return []

    return next((circle for folder in sorted(targets) if (circle := search(folder, []))), [])


def check_circles(root, sources, backward):
    """Yields a sentence per breach. `backward` as BACKWARD_INCLUDES."""
    arrows = included_folders(root, sources)
    for (folder, target), known in backward.items():
        number = len(arrows.pop((folder, target), ()))
        if number != known:
            remedy = "remove the new ones" if number > known else "lower it" if number else "delete the row"
            yield (f"src/{folder}: {number} includes of {target}/, {known} in BACKWARD_INCLUDES of "
                   f"tools/check_includes.py; {remedy}")
    circle = find_circle(arrows)
    if circle:
        steps = [f"{a}/ includes {b}/ ({arrows[a, b][0]})" for a, b in zip(circle, circle[1:])]
        yield f"folders include each other in a circle: {'; '.join(steps)}"


def check_sizes(root, large, data):
    """Yields a sentence per breach. `large` as LARGE_FOLDERS, `data` as DATA_FOLDERS."""
    for name in (*large, *data):
        if not (root / name).is_dir():
            yield f"{name}: no such folder; delete its row in tools/check_includes.py"
    for top in ("src", "include", "tests"):
        for folder in [root / top, *sorted((root / top).rglob("*"))]:
            if not folder.is_dir() or folder.name == "__pycache__":
                continue
            name = folder.relative_to(root).as_posix()
            number = sum(entry.name != "__pycache__" for entry in folder.iterdir())
            known = large.get(name)
            if known is not None and number < known:
                yield (f"{name}: {number} entries, {known} in LARGE_FOLDERS of tools/check_includes.py; "
                       f"{'delete the row' if number <= MOST_ENTRIES else 'lower it'}")
            elif name not in data and number > (known or MOST_ENTRIES):
                yield f"{name}: {number} entries, at most {known or MOST_ENTRIES}; divide it into folders"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=HERE,
                        type=pathlib.Path, help="root of the repository")
    root = parser.parse_args().root.resolve()
    sources = [f for f in sorted((root / "src").rglob("*"))
               if f.suffix in (".h", ".cpp", ".cu", ".cuh")]
    findings = [(f, n, text) for f in sources for n, text in check_file(root, f)]
    for file in sorted((root / "include").rglob("*.h")):
        findings += [(file, n, text) for n, text in check_public(file)]
    lines = [f"{file.relative_to(root)}:{number}: {text}" for file, number, text in findings]
    is_own = root == HERE  # the exemptions are of this repository
    lines += check_circles(root, sources, BACKWARD_INCLUDES if is_own else {})
    lines += check_exceptions(root, EXCEPTIONS if is_own else {})
    lines += check_sizes(root, LARGE_FOLDERS if is_own else {}, DATA_FOLDERS if is_own else {})
    for line in lines:
        print(line)
    print(f"check_includes: {len(sources)} files, {len(lines)} breaches")
    return 1 if lines or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
