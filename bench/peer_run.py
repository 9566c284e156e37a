"""What bench/*_peers.py do alike: torch and our library on one GPU, the GPU's clocks, and the log of a run."""

import argparse
import ctypes
import importlib
import json
import os
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(sys.argv[0]).stem
DEVICE = "cuda:0"  # of our operators
FLUSH_BYTES = 256 << 20
WAIT_CYCLES = 400_000  # of the GPU before a timed call: longer than a host takes to enqueue one


def import_torch(without=""):
    """torch, with the primary context made, which our library shares. `without`: what else there is."""
    try:
        import torch
    except ImportError:
        sys.exit(f"{PROGRAM}: needs torch (pip install torch)")
    if not torch.cuda.is_available():
        sys.exit(f"{PROGRAM}: torch sees no GPU" + (f". {without}" if without else ""))
    torch.zeros(1, device="cuda")
    return torch


def begin_parser(text, out, rows=None, rows_help=""):
    """A parser of a program that `text` describes, with what all of them have; `out` and `rows` are defaults. A
    program that chooses by itself what it checks has no `rows`."""
    parser = argparse.ArgumentParser(description=text.split("\n\n")[0],
                                     epilog="More at the beginning of this file.")
    parser.add_argument("--out", default=out, help="log to write (%(default)s)")
    parser.add_argument("--samples", type=int, default=15, help="timed runs of each (%(default)s)")
    if rows is not None:
        parser.add_argument("--rows", type=int, default=rows, help=f"{rows_help} checked in float64 (%(default)s)")
    add_library_options(parser)
    return parser


def add_library_options(parser):
    parser.add_argument("--package", default=str(ROOT / "build/release/python"),
                        help="folder with the Python package (%(default)s)")
    parser.add_argument("--no-tilewright", action="store_true", help="peers only")


def open_package(args):
    """The module tilewright; None without."""
    if args.no_tilewright:
        return None
    if pathlib.Path(args.package).is_dir():
        sys.path.insert(0, args.package)
    try:
        return importlib.import_module("tilewright")
    except ImportError as error:
        sys.exit(f"{PROGRAM}: {error}; ./run builds the package, or pip install ., or --no-tilewright")


def workspace_of(torch, op, like):
    """Memory beside a tensor that the operator's calls use one after the other."""
    return torch.zeros(max(op.workspace_bytes, 1), dtype=torch.uint8, device=like.device)


def warm_up(torch, seconds=0.2):
    """A GPU that has had nothing to do runs at a fraction of its clock: work for it until it does not."""
    x = torch.zeros(2048, 2048, dtype=torch.bfloat16, device="cuda")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            x @ x
        torch.cuda.synchronize()


class SmClocks:
    """The clock at which SMs run between two points of the current stream, counted by them: what drivers say is an
    average that a short call does not change. None of it is within the time of events between the points."""
    SLOTS = 1024  # more than any device has SMs

    def __init__(self, torch):
        self.torch, self.driver = torch, ctypes.CDLL("libcuda.so.1")
        text = (ROOT / "src/verify/clock/sm_clocks.ptx.inc").read_text()
        ptx = text[text.index('R"ptx(') + 6:text.index(')ptx"')].encode() + b"\0"
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self._succeed("cuModuleLoadData", ctypes.byref(module), ptx)
        self._succeed("cuModuleGetFunction", ctypes.byref(self.function), module, b"sm_clocks")
        self.ctas = 4 * torch.cuda.get_device_properties(0).multi_processor_count
        self.marks = torch.zeros(2, self.SLOTS, 2, dtype=torch.int64, device="cuda")

    def _succeed(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} for the clocks of SMs: CUDA error {status}")

    def _mark(self, which):
        out, slots = ctypes.c_void_p(self.marks[which].data_ptr()), ctypes.c_uint32(self.SLOTS)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(slots))
        stream = ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        self._succeed("cuLaunchKernel", self.function, self.ctas, 1, 1, 1, 1, 1, 0, stream, arguments, None)

    def begin(self):
        self.marks.zero_()
        self._mark(0)

    def end(self):
        self._mark(1)

    def mhz(self):
        """The median of the SMs; call it when all is done."""
        return median_mhz(*self.marks.tolist())


def median_mhz(before, after):
    """From [clock, nanoseconds] of each SM, zeros where nothing was written."""
    rates = [1e3 * (b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(before, after) if a[1] != 0 and b[1] > a[1]]
    return statistics.median(rates) if rates else 0


def measure(torch, calls, samples):
    """Microseconds of `calls` (name -> function that enqueues), by events: one call of each in random order, again
    and again. Each finds a cold L2 cache, and a GPU that has waited until the whole call was enqueued."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    times = {name: [] for name in calls}
    for sample in range(samples + 1):  # the first pays for loading
        for name in random.sample(list(calls), len(calls)):
            flush.fill_(1)
            torch.cuda._sleep(WAIT_CYCLES)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            calls[name]()
            end.record()
            end.synchronize()
            if sample > 0:
                times[name].append(1e3 * begin.elapsed_time(end))
    return times


def results_of(calls, shape, check):
    """name -> function and name -> error, of those that work at a shape. `check` compares a result."""
    works, errors = {}, {}
    for name, call in calls.items():
        try:
            errors[name] = check(call())
            works[name] = call
        except Exception as error:  # a peer that refuses a shape is a line
            if name == "tilewright":
                raise
            print(f"{shape}: without {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return works, errors


def time_beside(torch, log, calls, errors, limit, problem, samples, title):
    """Lines of the log, each with ours by the fastest peer, and what is printed of them."""
    before = clocks()
    times = measure(torch, calls, samples)
    after = clocks()
    flops, num_bytes = problem.counts()
    peers = [statistics.median(times[name]) for name in times if name != "tilewright"]
    for name, of_name in times.items():
        us = statistics.median(of_name)
        line = {"source": name, "problem": problem.described(), "samples_us": of_name, "flops": flops,
                "bytes": num_bytes, "error": {"relative_rms": errors[name], "ok": errors[name] < limit},
                "clocks_before": before, "clocks_after": after}
        if name == "tilewright" and peers:
            line["ratio"] = min(peers) / us
        log["samples"].append(line)
        beside = f"  ratio {line['ratio']:5.3f}" if "ratio" in line else ""
        wrong = "" if line["error"]["ok"] else f"  WRONG, {errors[name]:.1e}"
        print(f"{title} {name[-30:]:30} {us:9.1f} us {flops / us * 1e-6:5.0f} TFLOP/s "
              f"{num_bytes / us * 1e-6:5.2f} TB/s{beside}{wrong}", flush=True)


def clocks():
    """Of the GPU now; None where nvidia-smi does not say."""
    query = "clocks.sm,clocks.mem,power.draw,temperature.gpu"
    try:
        text = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "-i", "0"],
                              capture_output=True, text=True, check=True).stdout
        names = ("sm_mhz", "memory_mhz", "power_w", "temperature_c")
        return dict(zip(names, (float(x) for x in text.strip().splitlines()[0].split(",")))) or None
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError):
        return None


def git(*words):
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def source_commit(package):
    """The commit that was measured, -dirty if it was changed: TILEWRIGHT_COMMIT of the environment, else what our
    library was built from, else that of this tree."""
    commit = os.environ.get("TILEWRIGHT_COMMIT") or (package._core.COMMIT if package else "")
    return commit or (git("rev-parse", "--short=12", "HEAD") or "unknown") + (
        "-dirty" if git("status", "--porcelain", "-uno") else "")


def begin_log(torch, kind, package=None, **more):
    """A log without samples."""
    properties = torch.cuda.get_device_properties(0)
    commit = source_commit(package)
    return {"schema": 1, "kind": kind, "tool": f"bench/{PROGRAM}.py", "commit": commit.removesuffix("-dirty"),
            "dirty": commit.endswith("-dirty"),
            "command": shlex.join(["python3", f"bench/{PROGRAM}.py"] + sys.argv[1:]),
            "started": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
            "device": {"name": properties.name, "spec": "cuda:0", "is_simulated": False,
                       "multiprocessors": properties.multi_processor_count,
                       "l2_bytes": getattr(properties, "L2_cache_size", 0)},
            "toolkit": f"torch {torch.__version__}, CUDA {torch.version.cuda}", **more, "clocks_before": clocks(),
            "samples": []}


def end_run(log, path):
    """Writes the log; the exit status: 0 if every result was right."""
    write_log(log, path)
    return 0 if all(sample["error"]["ok"] for sample in log["samples"]) else 1


def write_log(log, path):
    log["clocks_after"] = clocks()
    pathlib.Path(path).write_text(json.dumps(log, indent=1) + "\n")
    print(f"wrote {path}")
