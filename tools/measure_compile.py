#!/usr/bin/env python3
"""Measures how long the kernels of a family take to compile: processor time of nvcc (to PTX) and ptxas for each
file, one after the other, so that load on the machine hardly matters. Writes a log for make_attention_readme.py.

    tools/measure_compile.py --out bench/results/COMPILE.json [--folder attention] [--nvcc NVCC]
"""

import argparse
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def flags():
    """Those of the build, from cmake/kernels.cmake."""
    text = (ROOT / "cmake/kernels.cmake").read_text()
    words = re.search(r"set\(TILEWRIGHT_NVCC_FLAGS ([^)]*)\)", text)[1]
    return words.replace("${PROJECT_SOURCE_DIR}", str(ROOT)).split()


def run(command):
    """User and system seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, 2)


def measure(path, nvcc, ptxas, folder):
    target = re.search(r"^// targets: (\w+)", path.read_text(), re.M)[1]
    ptx = folder / (path.stem + ".ptx")
    begin = time.monotonic()
    nvcc_s = run([nvcc, *flags(), f"-arch={target}", "-ptx", str(path), "-o", str(ptx)])
    ptxas_s = run([ptxas, f"-arch={target}", str(ptx), "-o", str(folder / (path.stem + ".cubin"))])
    return {"file": path.stem, "target": target, "nvcc_s": nvcc_s, "ptxas_s": ptxas_s,
            "elapsed_s": round(time.monotonic() - begin, 2), "ptx_bytes": ptx.stat().st_size}


def processor():
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--folder", default="attention")
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    args = parser.parse_args()
    if not pathlib.Path(args.nvcc).exists():
        sys.exit(f"measure_compile: {args.nvcc} does not exist")
    ptxas = str(pathlib.Path(args.nvcc).with_name("ptxas"))
    version = subprocess.run([args.nvcc, "--version"], stdout=subprocess.PIPE, text=True).stdout
    log = {"schema": 1, "kind": "compile", "folder": args.folder, "processor": processor(),
           "toolkit": re.search(r"V([\d.]+)", version)[1], "load_before": os.getloadavg()[0],
           "started": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
           "flags": [word.replace(str(ROOT), ".") for word in flags()], "files": []}
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted((ROOT / "src/kernels" / args.folder).rglob("*.cu")):
            log["files"].append(measure(path, args.nvcc, ptxas, pathlib.Path(folder)))
            entry = log["files"][-1]
            print(f"{path.stem:<22} nvcc {entry['nvcc_s']:>7.1f} s  ptxas {entry['ptxas_s']:>7.1f} s", flush=True)
    total = sum(entry["nvcc_s"] + entry["ptxas_s"] for entry in log["files"])
    log["load_after"] = os.getloadavg()[0]
    args.out.write_text(json.dumps(log, indent=1) + "\n")
    print(f"{total:.0f} s of processor time")


if __name__ == "__main__":
    main()
