#!/usr/bin/env python3
"""Runs the programs of tests/ptx on a GPU and compares what it gives with what the files say.

    python3 tools/run_ptx_on_gpu.py [--target sm_90a] [FILE.ptx ...]

Needs libcuda.so.1 and nothing else. How a file describes its data: tests/sim/insn/ptx_case.h. Exit
status 1 if a result differs.
"""

import argparse
import ctypes
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LANES = 32


def parse_cases(text):
    """[(kernel, inputs, outputs)], each list spread over 32 lanes."""
    cases = []
    for line in text.splitlines():
        if line.startswith("// test: "):
            cases.append((line[9:].strip(), [], []))
        for index, prefix in ((1, "// in: "), (2, "// out: ")):
            if cases and line.startswith(prefix):
                words = [int(w, 0) for w in line[len(prefix):].split()]
                cases[-1][index].append([words[i % len(words)] for i in range(LANES)])
    return cases


class Gpu:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.buffers = [ctypes.c_uint64(), ctypes.c_uint64()]
        for buffer in self.buffers:
            self.call("cuMemAlloc_v2", ctypes.byref(buffer), 1 << 16)

    def call(self, name, *args):
        status = getattr(self.cuda, name)(*args)
        if status != 0:
            raise RuntimeError(f"{name} failed with {status}")

    def load(self, text):
        log = ctypes.create_string_buffer(4096)
        module = ctypes.c_void_p()
        options = (ctypes.c_int * 2)(5, 6)  # error log and its size
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 4096)
        status = self.cuda.cuModuleLoadDataEx(ctypes.byref(module), text.encode(), 2, options, values)
        if status != 0:
            raise RuntimeError(f"cuModuleLoadDataEx failed with {status}: {log.value.decode()}")
        return module

    def run(self, module, kernel, inputs, num_outputs):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        words = [w for row in inputs for w in row] or [0]
        data = (ctypes.c_uint64 * len(words))(*words)
        result = (ctypes.c_uint64 * (LANES * num_outputs))()
        self.call("cuMemcpyHtoD_v2", self.buffers[0], data, ctypes.c_size_t(ctypes.sizeof(data)))
        self.call("cuMemcpyHtoD_v2", self.buffers[1], result, ctypes.c_size_t(ctypes.sizeof(result)))
        params = (ctypes.c_void_p * 2)(*[ctypes.addressof(b) for b in self.buffers])
        self.call("cuLaunchKernel", function, 1, 1, 1, LANES, 1, 1, 0, None, params, None)
        self.call("cuMemcpyDtoH_v2", result, self.buffers[1], ctypes.c_size_t(ctypes.sizeof(result)))
        return list(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a", help="only files for this target")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    files = [pathlib.Path(f) for f in args.files] or sorted((ROOT / "tests" / "ptx").glob("*.ptx"))
    gpu, differing, total = Gpu(), 0, 0
    for path in files:
        text = path.read_text()
        if not re.search(rf"^\.target {args.target}\b", text, re.M):
            continue
        module = gpu.load(text)
        for kernel, inputs, outputs in parse_cases(text):
            got = gpu.run(module, kernel, inputs, len(outputs))
            want = [w for row in outputs for w in row]
            total += 1
            wrong = [i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1]]
            differing += bool(wrong)
            for i in wrong[:3]:
                operands = " ".join(hex(row[i % LANES]) for row in inputs)
                print(f"{path.name} {kernel} result {i // LANES} lane {i % LANES}: {hex(got[i])}, "
                      f"expected {hex(want[i])}; operands {operands}; {len(wrong)} differ")
    print(f"{total} kernels, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
