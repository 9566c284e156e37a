#!/usr/bin/env python3
"""Writes compile_commands.json at the top of the tree: CMake's entries, and kernels and device headers for clangd.

    cmake --preset dev && cmake --build --preset dev

CMake compiles kernels by commands of its own, which its database does not list. Here every .cu of src/kernels
and every header of src/kernels, src/tile and src/ptx has the flags with which clang reads it as CUDA.
"""

import argparse
import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEVICE_FOLDERS = ("src/kernels", "src/tile", "src/ptx")

# sm_86 is the newest architecture that clang 14 knows; instructions of sm_90 and later stand in asm, which it does
# not look into. As host code, because as device code it refuses what nvcc's --expt-relaxed-constexpr allows. Its
# wrapper of CUDA's headers expects textures as CUDA 12 had them.
DEVICE_FLAGS = ["-x", "cuda", "--cuda-gpu-arch=sm_86", "--cuda-host-only", "-nocudalib", "-std=c++20",
                "-Wno-unknown-cuda-version", "-Wno-unknown-attributes", "-Wno-cuda-compat", "-Xclang",
                "-fcuda-allow-variadic-functions", "-D__CLANG_CUDA_TEXTURE_INTRINSICS_H__",
                "-fsyntax-only"]


def cuda_folder(nvcc):
    """The toolkit that an nvcc belongs to; None without one."""
    nvcc = nvcc or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    path = pathlib.Path(nvcc).resolve()
    return path.parent.parent if path.exists() else None


def device_entries(cuda):
    flags = [*DEVICE_FLAGS, f"--cuda-path={cuda}", f"-I{ROOT / 'src'}", f"-I{ROOT / 'tools/editor'}",
             "-isystem", f"{cuda}/include/cccl"]
    for folder in DEVICE_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cu", ".h"):
                yield {"directory": str(ROOT), "file": str(path), "arguments": ["clang++", *flags, str(path)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database", type=pathlib.Path, help="CMake's compile_commands.json")
    parser.add_argument("--nvcc", help="whose toolkit has the headers (nvcc of the PATH)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "compile_commands.json")
    args = parser.parse_args()
    if not args.database.exists():
        sys.exit(f"compile_commands: {args.database} does not exist; configure first: cmake --preset dev")
    entries = json.loads(args.database.read_text())
    unity = [entry["file"] for entry in entries if "/Unity/unity_" in entry["file"]]
    if unity:
        sys.exit(f"compile_commands: {args.database} lists {len(unity)} files of several sources each; "
                 "expected one entry a source; configure with -DTILEWRIGHT_UNITY=OFF, as preset dev does")
    cuda = cuda_folder(args.nvcc)
    device = list(device_entries(cuda)) if cuda else []
    args.out.write_text(json.dumps(entries + device, indent=1) + "\n")
    note = "" if cuda else "; no nvcc, so none of device code"
    print(f"{args.out}: {len(entries)} files of the build, {len(device)} of device code{note}")


if __name__ == "__main__":
    main()
