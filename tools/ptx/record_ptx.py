#!/usr/bin/env python3
"""Runs the programs of tests/ptx on a GPU and records what they give.

    python3 tools/ptx/record_ptx.py OUT [--full FILE]

Needs libcuda.so.1 and nothing else. Writes OUT/GROUP.json (tests/golden/hardware/ptx holds them): for
each kernel a digest of its text and of its results, the results themselves where they are not those
that the file names, and for scalar instructions a digest of a sweep (ptx_sweep.py): 64 launches, each
also with a byte of its own, which says where results differ. --full keeps all results of the sweeps.
"""

import argparse
import ctypes
import datetime
import json
import lzma
import multiprocessing
import pathlib
import pickle
import re
import subprocess

import ptx_sweep
from run_ptx_on_gpu import LANES, ROOT, Gpu, parse_cases

# not functions of their operands alone, or operands are addresses
NO_SWEEP = {"applypriority", "createpolicy", "cvta", "discard", "getctarank", "griddepcontrol", "isspacep", "mapa",
            "nanosleep", "pmevent", "prefetch", "prefetchu", "recursion", "alloca"}
WARP = {"elect", "match", "redux", "shfl", "vote", "activemask", "bar", "barrier"}
TENSOR = {"mma", "movmatrix", "ldmatrix", "stmatrix", "wgmma", "wgmma_exact"}
SECONDS = 20  # after which a kernel counts as hanging
SWEPT_LINE = "made by tools/ptx/make_ptx_tests.py"


def group_of(stem, text):
    opcode = stem.split("_")[0]
    if opcode == "cvt":
        return "conversion"
    if stem in TENSOR or opcode in TENSOR:
        return "tensor"
    if stem in WARP:
        return "warp"
    return "scalar" if SWEPT_LINE in text.splitlines()[0] else "memory"


def is_swept(stem, text):
    return (SWEPT_LINE in text.splitlines()[0] and stem not in NO_SWEEP) or stem in ("shfl", "redux")


def kernel_texts(text):
    """The text of each test from its `// test:` to the next."""
    parts = re.split(r"(?m)^// test: ", text)[1:]
    return {part.splitlines()[0].strip(): part for part in parts}


class Recorder:
    def __init__(self):
        self.gpu = Gpu()
        self.inputs = {}
        self.allocate()

    def allocate(self):
        self.sweep = [ctypes.c_uint64(), ctypes.c_uint64()]
        for buffer in self.sweep:
            self.gpu.call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(1 << 21))

    def facts(self):
        name, version = ctypes.create_string_buffer(100), ctypes.c_int()
        self.gpu.call("cuDeviceGetName", name, 100, 0)
        self.gpu.call("cuDriverGetVersion", ctypes.byref(version))
        facts = {"device": name.value.decode(), "date": datetime.date.today().isoformat(),
                 "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}"}
        try:
            query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
            facts["driver"] = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
        except (OSError, subprocess.CalledProcessError):
            facts["driver"] = "none"
        return facts

    def run_sweep(self, module, case):
        """All results, launch after launch."""
        num_in, num_out = max(len(case["in"]), 1), len(case["out"])
        if num_in not in self.inputs:
            words = [w for launch in ptx_sweep.operands(num_in) for w in launch]
            self.inputs[num_in] = (ctypes.c_uint64 * len(words))(*words)
        data, launches = self.inputs[num_in], ptx_sweep.COUNT // LANES
        result = (ctypes.c_uint64 * (LANES * num_out * launches))()
        function = ctypes.c_void_p()
        call = self.gpu.call
        call("cuModuleGetFunction", ctypes.byref(function), module, case["kernel"].encode())
        call("cuMemcpyHtoD_v2", self.sweep[0], data, ctypes.c_size_t(ctypes.sizeof(data)))
        call("cuMemcpyHtoD_v2", self.sweep[1], result, ctypes.c_size_t(ctypes.sizeof(result)))
        for i in range(launches):
            at = [ctypes.c_uint64(self.sweep[0].value + i * num_in * LANES * 8),
                  ctypes.c_uint64(self.sweep[1].value + i * num_out * LANES * 8)]
            params = (ctypes.c_void_p * 2)(*[ctypes.addressof(a) for a in at])
            call("cuLaunchKernel", function, 1, 1, 1, LANES, 1, 1, 0, None, params, None)
        call("cuMemcpyDtoH_v2", result, self.sweep[1], ctypes.c_size_t(ctypes.sizeof(result)))
        return list(result)

    def record(self, module, case, with_sweep):
        """The entry of a kernel, and all results of its sweep."""
        got = self.gpu.run(module, case)
        entry = {"results": f"{ptx_sweep.digest(got):016x}"}
        rows = [got[i:i + LANES] for i in range(0, len(got), LANES)]
        if rows != case["out"]:
            entry["differs"] = [" ".join(f"{w:x}" for w in row) for row in rows]
        if with_sweep and case["threads"] == LANES and case["cluster"] == 1 and not case["map"]:
            results = self.run_sweep(module, case)
            size = LANES * len(case["out"])
            digests = [ptx_sweep.digest(results[i:i + size]) for i in range(0, len(results), size)]
            entry["sweep"] = f"{ptx_sweep.digest(digests):016x}"
            entry["launches"] = "".join(f"{d & 255:02x}" for d in digests)
            return entry, bytes((ctypes.c_uint64 * len(results))(*results))
        return entry, b""


def record_all(work, pipe):
    """In a process of its own: a fault breaks the context, which no call mends, so it ends here."""
    recorder = Recorder()
    pipe.send(recorder.facts())
    loaded, module = None, None
    for path, text, case, _ in work:
        try:
            if loaded != path:
                loaded, module = path, recorder.gpu.load(text)
            pipe.send(recorder.record(module, case, is_swept(path.stem, text)))
        except RuntimeError as error:
            pipe.send(({"error": str(error).split("\n")[0]}, b""))
            return


def answers(work):
    """The facts, then an entry for each piece of work, whatever a kernel does to the process."""
    sent_facts = False
    while work:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=record_all, args=(work, theirs))
        process.start()
        theirs.close()
        try:
            facts = ours.recv()
            if not sent_facts:
                yield facts
            sent_facts = True
            while work:
                answer = ours.recv() if ours.poll(SECONDS) else ({"error": "does not end"}, b"")
                work = work[1:]
                yield answer
                if "error" in answer[0]:
                    break
        except EOFError:
            work = work[1:]
            yield {"error": "ended the process"}, b""
        process.kill()
        process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--full", type=pathlib.Path)
    parser.add_argument("--only", default="*.ptx")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    work = []
    for path in sorted((ROOT / "tests" / "ptx").glob(args.only)):
        text = path.read_text()
        if re.search(r"^\.target sm_90a\b", text, re.M) and "\n// machine: " not in text:
            texts = kernel_texts(text)
            work += [(path, text, case, texts[case["kernel"]]) for case in parse_cases(text)]
    results = answers(work)
    facts, groups, full, failed = next(results), {}, {}, 0
    for (path, text, case, own_text), (entry, swept) in zip(work, results):
        if "error" in entry:
            print(f"{path.stem} {case['kernel']}: {entry['error']}", flush=True)
            failed += 1
        entry["text"] = f"{ptx_sweep.digest(own_text.encode()):016x}"
        group = groups.setdefault(group_of(path.stem, text), {**facts, "files": {}})
        group["files"].setdefault(path.name, {})[case["kernel"]] = entry
        full.setdefault(path.stem, {})[case["kernel"]] = swept
    for name, group in groups.items():
        (args.out / f"{name}.json").write_text(json.dumps(group, indent=1) + "\n")
    if args.full:
        args.full.write_bytes(lzma.compress(pickle.dumps(full), preset=1))
    print(f"{len(work)} kernels recorded, {failed} fail")


if __name__ == "__main__":
    main()
