#!/usr/bin/env python3
"""Assembles the PTX of sm_100f kernels for the chips of that family alone, and counts spills.

  tools/check_family.py [--sample N] [--seed S] [--ptxas PROGRAM] [BUILD]

Kernels for Blackwell are shipped for sm_100f, the family of compute capabilities 10.0 and 10.3: one cubin for
both, which the driver loads on either. Their PTX can be assembled for sm_100a and sm_103a too, by who wants an
image for one chip. Does ptxas take it, with neither spills nor a stack frame in a kernel that has none for
sm_100f? BUILD is build/release; it has to be built. --sample takes N files, drawn by the seed. Exit status 1 if a
kernel spills, or is not assembled.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from embed_kernels import facts

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURES = ("sm_100a", "sm_103a")


def assemble(ptxas, ptx, architecture, folder):
    """What ptxas -v says of each entry; an error as text."""
    done = subprocess.run([ptxas, "-v", "-arch", architecture, ptx, "-o", pathlib.Path(folder) / "image.cubin"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return facts(done.stdout) if done.returncode == 0 else done.stdout.strip()


def worse(own, family):
    """Entries that spill, or have a stack, where the family's image has less."""
    for entry, found in own.items():
        for what in ("spill_stores", "spill_loads", "stack"):
            if found[what] > family[entry][what]:
                yield f"{entry}: {found[what]} bytes of {what}, {family[entry][what]} for the family"


def source(ptx):
    """The .cu of build/.../kernels/FAMILY/NAME.sm_100f.ptx, in src or in tests; none if it is gone."""
    return next(ROOT.glob(f"*/{ptx.parent}/{ptx.name.split('.')[0]}.cu"), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--sample", type=int, metavar="N", help="only N files")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the sample (1)")
    parser.add_argument("--ptxas", default=shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas",
                        metavar="PROGRAM")
    args = parser.parse_args()
    # Folders of older builds have files of kernels that are gone.
    files = sorted(file for file in args.build.glob("kernels/**/*.sm_100f.ptx")
                   if file.with_suffix(".ptxas").exists() and source(file.relative_to(args.build)))
    if not files or not shutil.which(args.ptxas):
        print(f"check_family: nothing to do: {len(files)} kernels for sm_100f in {args.build}, ptxas {args.ptxas}")
        return 0
    if args.sample:
        files = random.Random(args.seed).sample(files, min(args.sample, len(files)))
    findings, entries = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            family = facts(file.with_suffix(".ptxas").read_text())
            for architecture in ARCHITECTURES:
                own = assemble(args.ptxas, file, architecture, folder)
                where = f"{file.name} for {architecture}"
                if isinstance(own, str) or own.keys() != family.keys():
                    said = own if isinstance(own, str) else f"other entries, {sorted(own)}"
                    findings.append(f"{where}: {said}")
                    continue
                entries += len(own)
                findings += (f"{where}: {text}" for text in worse(own, family))
    print("\n".join(findings), end="\n" if findings else "")
    print(f"check_family: {len(files)} files, {entries} entries for {' and '.join(ARCHITECTURES)}, "
          f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
