#!/usr/bin/env python3
"""Checks who includes whom (CONTRIBUTING.md) and where `asm` may stand. Exit status 1 on a breach.

Every rule is one row of ALLOWED: a folder of src/ and the folders its files may include. The longest
matching folder wins, so `arch/fragments` has rules of its own inside `arch`.
"""

import argparse
import pathlib
import re
import sys

PUBLIC = "tilewright"  # include/tilewright, which may include nothing of src/

# What kernels and their parts may include besides their own family.
DEVICE = ["base", "formats", "layout", "arch", "arch/fragments", "ptx", "tile"]
# family of kernels, a folder of src/kernels -> other families whose parts it uses
FAMILIES = {
    "attention": [],
    "attention_sm100": ["attention"],
    "linear": [],
    "model": [],
    "moe": ["quantize"],
    "probe": ["sparse_attention"],
    "quantize": [],
    "sparse_attention": ["quantize"],
}
KERNELS = [f"kernels/{family}" for family in FAMILIES]
# Host code reads contracts: headers of kernels that are plain data, without device code behind them.
DEVICE_CODE = ("ptx", "tile")

# folder of the including file -> folders it may include (its own folder is always allowed)
ALLOWED = {
    "base": [PUBLIC],
    "layout": [PUBLIC, "base"],
    "formats": [PUBLIC, "base"],
    "arch": [PUBLIC, "base", "formats"],
    "arch/fragments": [PUBLIC, "base", "formats", "arch", "layout"],
    "ptx": ["base", "formats", "layout", "arch", "arch/fragments"],
    "tile": ["base", "formats", "layout", "arch", "arch/fragments", "ptx"],
    **{f"kernels/{family}": DEVICE + [f"kernels/{other}" for other in others]
       for family, others in FAMILIES.items()},
    "reference": [PUBLIC, "base", "formats"],
    "sim": [PUBLIC, "base", "formats", "arch"],
    "device": [PUBLIC, "base"],
    "ops": [PUBLIC, "base", "formats", "arch", *KERNELS, "device"],
    "model": [PUBLIC, "base", "formats", "arch", *KERNELS, "device", "ops"],
    # The plain model that kernels are compared with: made of references, and nothing else may be.
    "model/float64": [PUBLIC, "base", "formats", "reference", "model"],
    # Operands, exact results and what is compared with them, for the tool, its benchmarks and their tests.
    "report": [PUBLIC, "base", "layout"],  # terminals, tables, plots, pages
    "verify": [PUBLIC, "base", "layout", "formats", "arch", "reference", "device", "ops", "sim", "model",
               "report"],
    "bench": [PUBLIC, "base", "formats", "arch", "device", "ops", "sim", "report", "verify"],
    "cli": None,  # None: anything
}
# The public headers are what a user sees: standard library and each other, no CUDA, nothing of src/.
CUDA_HEADER = re.compile(r"^(cuda|cudnn|cublas|nccl|curand|crt/|cooperative_groups|mma\.h)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
ASM = re.compile(r"\basm\b\s*(volatile)?\s*[({]")


def rule_for(path):
    """The row of ALLOWED for a file given relative to src/."""
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
            yield 1, f"folder {path.parts[0]}/ has no row in tools/check_includes.py; add one"
        return
    allowed = ALLOWED[rule]
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        if ASM.search(line) and not line.lstrip().startswith("//") and path.parts[0] != "ptx":
            yield number, "`asm` outside src/ptx; add a wrapper there"
        match = INCLUDE.match(line)
        if not match or allowed is None:
            continue
        bracket, included = match.groups()
        if CUDA_HEADER.match(included) and path.parts[0] not in ("ptx", "tile", "kernels"):
            yield number, f"CUDA header {included}; only ptx, tile and kernels may include one"
        if bracket == "<":
            continue
        target = folder_of(included)
        if path.parts[0] not in ("kernels", "tile") and included.startswith("kernels/"):
            behind = device_code_behind(root, included)
            if behind:
                yield number, f'"{included}" is device code (it includes {behind}); host code reads contracts'
        if target is None:
            yield number, f'"{included}" is not a path below src/ or include/'
        elif target != rule and target not in allowed:
            yield number, f'{rule} may not include "{included}" (allowed: {", ".join(allowed)})'


def check_public(file):
    for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match and (CUDA_HEADER.match(match[2]) or
                      match[1] == '"' and not match[2].startswith("tilewright/")):
            yield number, f"a public header may not include {match[2]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent,
                        type=pathlib.Path, help="root of the repository")
    root = parser.parse_args().root.resolve()
    sources = [f for f in sorted((root / "src").rglob("*"))
               if f.suffix in (".h", ".cpp", ".cu", ".cuh")]
    findings = [(f, n, text) for f in sources for n, text in check_file(root, f)]
    for file in sorted((root / "include").rglob("*.h")):
        findings += [(file, n, text) for n, text in check_public(file)]
    for file, number, text in findings:
        print(f"{file.relative_to(root)}:{number}: {text}")
    print(f"check_includes: {len(sources)} files, {len(findings)} breaches")
    return 1 if findings or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
