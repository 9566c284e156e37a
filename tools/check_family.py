#!/usr/bin/env python3
"""Assembles the PTX of sm_100f kernels for the chips of that family alone, and counts spills.

  tools/check_family.py [--cpu-seconds S] [--seed N] [--ptxas PROGRAM] [BUILD]
  tools/check_family.py --record           assembles what is not in the record yet, and writes it anew

Kernels for Blackwell are shipped for sm_100f, the family of compute capabilities 10.0 and 10.3: one cubin for
both, which the driver loads on either. Their PTX can be assembled for sm_100a and sm_103a too, by who wants an
image for one chip. Does ptxas take it, with neither spills nor a stack frame in a kernel that has none for
sm_100f? BUILD is build/release; it has to be built. Exit status 1 if a kernel spills, or is not assembled.

ptxas takes minutes for all files, and says the same of the same text. So what passed is in a record,
tests/golden/kernels/family.txt: a digest of the release of ptxas and of the PTX without its source lines. Files
that it has are not assembled again; others are. --cpu-seconds limits the processor time of ptxas: files are drawn
by the seed until it is spent, and of those in the record one is always assembled again. ./test does that with 20.
"""

import argparse
import hashlib
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

from embed_kernels import facts

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURES = ("sm_100a", "sm_103a")
RECORD = ROOT / "tests/golden/kernels/family.txt"
# Lines that say where an instruction comes from, and tables for debuggers: no machine code depends on them.
SOURCE_LINES = re.compile(rb"^[ \t]*(?:\.loc[ \t]|\.file[ \t]|//)[^\n]*\n", re.M)


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


def release(ptxas):
    """The line that names the release, which decides about registers: a record of another one says nothing."""
    said = subprocess.run([ptxas, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return next((line for line in said.splitlines() if "release" in line), said.strip())


def digest(ptx, ptxas_release):
    text = SOURCE_LINES.sub(b"", ptx.read_bytes())
    return hashlib.sha256(ptxas_release.encode() + b"\0" + text).hexdigest()[:24]


def read_record(path):
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {line.split()[0] for line in lines if line and not line.startswith("#")}


def write_record(path, digests):
    """digests: file name -> digest"""
    head = ("# What tools/check_family.py has assembled for sm_100a and sm_103a without a finding: digests of\n"
            "# the release of ptxas and of the PTX. `tools/check_family.py --record` writes it.\n")
    path.write_text(head + "".join(f"{digests[name]} {name}\n" for name in sorted(digests)), encoding="utf-8")


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check(ptxas, file, folder):
    """(entries that were assembled, findings) of a file."""
    family, entries, findings = facts(file.with_suffix(".ptxas").read_text()), 0, []
    for architecture in ARCHITECTURES:
        own = assemble(ptxas, file, architecture, folder)
        where = f"{file.name} for {architecture}"
        if isinstance(own, str) or own.keys() != family.keys():
            findings.append(f"{where}: {own if isinstance(own, str) else f'other entries, {sorted(own)}'}")
            continue
        entries += len(own)
        findings += (f"{where}: {text}" for text in worse(own, family))
    return entries, findings


def chosen(files, digests, known, args):
    """(files that nothing is known of, one of the others if there is a limit)"""
    new = [file for file in files if digests[file.name] not in known]
    old = [file for file in files if digests[file.name] in known]
    random.Random(args.seed).shuffle(new)
    again = random.Random(args.seed).sample(old, min(1, len(old))) if args.cpu_seconds else []
    return new, again


def files_of(build):
    # Folders of older builds have files of kernels that are gone.
    return sorted(file for file in build.glob("kernels/**/*.sm_100f.ptx")
                  if file.with_suffix(".ptxas").exists() and source(file.relative_to(build)))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--cpu-seconds", type=float, metavar="S", help="processor time for new files (no limit)")
    parser.add_argument("--record", action="store_true", help="write the record anew")
    parser.add_argument("--record-file", type=pathlib.Path, default=RECORD, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of what is drawn (1)")
    parser.add_argument("--ptxas", default=shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas",
                        metavar="PROGRAM")
    return parser.parse_args()


def main():
    args = parse_arguments()
    files = files_of(args.build)
    if not files or not shutil.which(args.ptxas):
        print(f"check_family: nothing to do: {len(files)} kernels for sm_100f in {args.build}, ptxas {args.ptxas}")
        return 0
    version, known = release(args.ptxas), read_record(args.record_file)
    digests = {file.name: digest(file, version) for file in files}
    new, again = chosen(files, digests, known, args)
    findings, entries, done, begin = [], 0, [], cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        for file in again + new:
            if args.cpu_seconds and cpu_seconds() - begin >= args.cpu_seconds:
                break
            found = check(args.ptxas, file, folder)
            entries += found[0]
            findings += found[1]
            done.append(file)
    if args.record:
        assembled = {file.name for file in done}
        named = {text.split(" for sm_")[0] for text in findings}
        write_record(args.record_file, {name: each for name, each in digests.items()
                                        if name not in named and (each in known or name in assembled)})
    left = len(new) + len(again) - len(done)
    print("\n".join(findings), end="\n" if findings else "")
    print(f"check_family: {len(files)} files: {len(files) - len(new)} in the record, {len(done)} assembled now "
          f"({entries} entries for {' and '.join(ARCHITECTURES)}), {len(findings)} findings"
          + (f"; {left} left, as {args.cpu_seconds:g} s of processor time are spent. They are new: "
             "tools/check_family.py --record" if left else ""))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
