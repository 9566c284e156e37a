#!/usr/bin/env python3
"""Runs the programs of tests/ptx on a GPU and compares what it gives with what the files say.

    python3 tools/ptx/run_ptx_on_gpu.py [--target sm_90a] [FILE.ptx ...]

Needs libcuda.so.1 and nothing else. How a file describes its data: tests/sim/insn/ptx_case.h. Exit
status 1 if a result differs.
"""

import argparse
import ctypes
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANES = 32


def parse_cases(text):
    """Each case is a dictionary; lists are spread over 32 lanes."""
    cases = []
    for line in text.splitlines():
        if line.startswith("// test: "):
            cases.append({"kernel": line[9:].strip(), "in": [], "out": [], "threads": LANES, "cluster": 1,
                          "map": []})
        found = re.match(r"// (in|out|threads|cluster|map): (.*)", line)
        if not cases or not found: continue
        key, rest = found.groups()
        if key == "map": cases[-1][key].append(parse_map(rest))
        elif key in ("threads", "cluster"): cases[-1][key] = int(rest)
        else:
            words = [int(w, 0) for w in rest.split()]
            cases[-1][key].append([words[i % len(words)] for i in range(LANES)])
    return cases


ELEMENTS = ["u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32"]


def parse_map(text):
    """As tests/sim/insn/ptx_map.h says."""
    fields = dict(word.split("=") for word in text.split())
    numbers = lambda key: [int(x) for x in fields[key].split(",")] if key in fields else []
    buffer, _, offset = fields["at"].partition("+")
    rank = len(numbers("dims"))
    return {"element": ELEMENTS.index(fields["element"]), "buffer": ["in", "out"].index(buffer),
            "offset": int(offset or 0), "rank": rank, "dims": numbers("dims"), "strides": numbers("strides"),
            "box": numbers("box"), "steps": numbers("steps") or [1] * rank, "lower": numbers("lower"),
            "upper": numbers("upper"), "channels": int(fields.get("channels", 0)),
            "pixels": int(fields.get("pixels", 0)), "fill": int(fields.get("fill") == "nan"),
            "swizzle": ["none", "32B", "64B", "128B"].index(fields.get("swizzle", "none"))}


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
            self.call("cuMemAlloc_v2", ctypes.byref(buffer), 1 << 20)

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

    def encode(self, m):
        """A tensor map, aligned to 64 bytes."""
        memory = ctypes.create_string_buffer(256)
        address = (ctypes.addressof(memory) + 63) // 64 * 64
        array = lambda kind, values: (kind * max(len(values), 1))(*values)
        head = [ctypes.c_void_p(address), m["element"], m["rank"],
                ctypes.c_void_p(self.buffers[m["buffer"]].value + m["offset"]),
                array(ctypes.c_uint64, m["dims"]), array(ctypes.c_uint64, m["strides"])]
        tail = [array(ctypes.c_uint32, m["steps"]), 0, m["swizzle"], 0, m["fill"]]
        if m["channels"]:
            self.call("cuTensorMapEncodeIm2col", *head, array(ctypes.c_int, m["lower"]),
                      array(ctypes.c_int, m["upper"]), m["channels"], m["pixels"], *tail)
        else: self.call("cuTensorMapEncodeTiled", *head, array(ctypes.c_uint32, m["box"]), *tail)
        return memory, address

    def launch(self, function, case):
        """cuLaunchKernelEx with a cluster, else cuLaunchKernel."""
        maps = [self.encode(m) for m in case["map"]]
        addresses = [ctypes.addressof(b) for b in self.buffers] + [address for _, address in maps]
        params = (ctypes.c_void_p * len(addresses))(*addresses)
        size = case["cluster"]
        if size == 1:
            self.call("cuLaunchKernel", function, 1, 1, 1, case["threads"], 1, 1, 0, None, params, None)
            return
        # CUlaunchConfig and one CUlaunchAttribute (cluster dimension, 4), by their layout in memory
        attribute = (ctypes.c_uint32 * 18)(4, 0, size, 1, 1)
        config = (ctypes.c_uint32 * 14)(size, 1, 1, case["threads"], 1, 1, 0)
        ctypes.c_uint64.from_buffer(config, 40).value = ctypes.addressof(attribute)
        ctypes.c_uint32.from_buffer(config, 48).value = 1
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, params, None)

    def run(self, module, case):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, case["kernel"].encode())
        words = [w for row in case["in"] for w in row] or [0]
        data = (ctypes.c_uint64 * len(words))(*words)
        result = (ctypes.c_uint64 * (LANES * len(case["out"])))()
        self.call("cuMemcpyHtoD_v2", self.buffers[0], data, ctypes.c_size_t(ctypes.sizeof(data)))
        self.call("cuMemcpyHtoD_v2", self.buffers[1], result, ctypes.c_size_t(ctypes.sizeof(result)))
        self.launch(function, case)
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
        if not re.search(rf"^\.target {args.target}\b", text, re.M) or "\n// machine: " in text:
            continue
        module = gpu.load(text)
        for case in parse_cases(text):
            kernel, inputs = case["kernel"], case["in"]
            got = gpu.run(module, case)
            want = [w for row in case["out"] for w in row]
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
